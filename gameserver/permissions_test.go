package gameserver

import (
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// Clients of the original protocol are guests, under the same rules: bans by address and name, the role of guests,
// registered names.
func TestOriginalsAreModerated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world := newPeople()
		r := newHarness(t, func(o *Options) { o.People = world })
		ann := r.join("ann", 1)
		bob, eve := r.connect("bob"), r.connectFrom("203.0.113.9", "eve", grid.ChunkPos{})
		spot := grid.Pos{X: 3, Y: 26, Z: 3}
		builds := func(by *original) bool {
			at := chunk.At(spot)
			block := 1 + r.lands.truth(grid.ChunkPos{}).Get(at)%2
			by.send(fmt.Sprintf(`{"type":7,"args":[%d,%d,%d,%d]}`+"\n", spot.X, spot.Y, spot.Z, block))
			pass(100 * time.Millisecond)
			return r.lands.truth(grid.ChunkPos{}).Get(at) == block
		}
		if !builds(bob) {
			t.Error("a guest may not build")
		}
		world.operate(t, "set guests visitor")
		if builds(bob) {
			t.Error("a visitor builds")
		}
		world.operate(t, "set guests builder")
		world.operate(t, "ban 203.0.113.0/24")
		pass(100 * time.Millisecond)
		if !eve.mu.ended || bob.mu.ended {
			t.Errorf("connections ended: of a banned address %t, of another %t", eve.mu.ended, bob.mu.ended)
		}
		for address, name := range map[string]string{"203.0.113.77": "anybody", "198.51.100.1": "mallory"} {
			world.operate(t, "ban mallory")
			c := r.dialFrom(&net.TCPAddr{IP: net.ParseIP(address), Port: 1})
			fmt.Fprintf(c, `{"type":"connect","chunk":[0,0],"player":%q}`, name)
			answer := make([]byte, 2)
			if _, err := io.ReadFull(c, answer); err != nil || string(answer) != "no" {
				t.Errorf("%s from %s is answered %q (%v)", name, address, answer, err)
			}
		}
		world.register(t, "zoe")
		zoe, other := r.connect("quinn"), r.connect("quinn") // as a client has more than one connection
		zoe.send(`{"type":1,"args":[0,0],"player":"zoe"}` + "\n")
		pass(time.Second)
		label := ""
		ann.look(func() {
			for _, a := range ann.mu.avatars {
				if a.Name == "zoe" || !strings.HasPrefix(a.Name, "zoe-") && a.Name != "ann" {
					t.Errorf("a guest is called %q", a.Name)
				}
				if a.Name != "ann" {
					label = a.Name
				}
			}
		})
		if !builds(other) {
			t.Error("a guest may not build over another connection")
		}
		world.operate(t, "ban "+label)
		pass(100 * time.Millisecond)
		if !zoe.mu.ended || builds(other) {
			t.Errorf("%s is banned: their connection ended: %t, or they build over another one", label, zoe.mu.ended)
		}
	})
}

// A ban ends the session of a player who is here, and a line for all reaches everybody else.
func TestSessionsAreModerated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world := newPeople()
		r := newHarness(t, func(o *Options) { o.People = world })
		ann, eve := r.join("ann", 1), r.join("eve", 1)
		world.operate(t, "kick eve spamming")
		world.operate(t, "say be kind")
		pass(time.Second)
		if eve.mu.failure.Code != wire.FailBanned || eve.mu.failure.Message != "You were kicked by an operator: spamming." {
			t.Errorf("her session ended with %+v", eve.mu.failure)
		}
		if got := strings.Join(ann.mu.notices, "; "); got != "an operator: be kind" {
			t.Errorf("others read %q", got)
		}
		pass(time.Minute)
		r.join("eve", 1) // again
		bob, old := r.join("bob", 1), r.connect("old")
		old.send(`{"type":1,"args":[0,0],"player":"old"}` + "\n")
		pass(time.Second)
		if _, known := (here{r.g}).FindPlayer("old"); !known {
			t.Error("a guest is not found")
		}
		world.changed = func() {}
		world.register(t, "old")
		if it, known := (here{r.g}).FindPlayer("old"); known {
			t.Errorf("a guest is found under somebody else's name: %+v", it)
		}
		world.changed = r.g.enforcer.Changed.Set
		world.register(t, "bob")
		pass(time.Second)
		if bob.mu.failure.Code != wire.FailNameTaken {
			t.Errorf("a guest whose name somebody else has registered: %+v", bob.mu.failure)
		}
	})
}

// A client of the original protocol whose name somebody else registers is disconnected. What it does after that, over
// whichever connection, it does under another name.
func TestOriginalsWhoseNameIsRegistered(t *testing.T) {
	for what, does := range map[string]string{"builds": `{"type":7,"args":[9,26,9,2]}`, "registers": `{"type":1,"args":[0,0],"player":"old"}`} {
		synctest.Test(t, func(t *testing.T) {
			world := newPeople()
			r := newHarness(t, func(o *Options) { o.People = world })
			old, twin := r.connect("old"), r.connect("old") // as a client has more than one connection
			old.send(`{"type":1,"args":[0,0],"player":"old"}` + "\n")
			pass(time.Second)
			world.register(t, "old")
			pass(time.Second)
			if !old.mu.ended || twin.mu.ended {
				t.Fatalf("connections ended: of the player %t, the other one %t", old.mu.ended, twin.mu.ended)
			}
			twin.send(does + "\n")
			pass(time.Second)
			is := func(name string) bool {
				_, registered := r.registered(name)
				return registered || r.lands.edits(name) > 0
			}
			if other := player.Namesake("old", "127.0.0.1", 0); is("old") || !is(other) {
				t.Errorf("who %s is old: %t, and %s: %t", what, is("old"), other, is(other))
			}
		})
	}
}

// register registers a name to a key of the tests.
func (p *people) register(t *testing.T, name string) {
	t.Helper()
	p.command(t, name, "register")
}

// command carries out a command of the player with a key of the tests.
func (p *people) command(t *testing.T, name, text string) {
	t.Helper()
	key := ed25519.NewKeyFromSeed([]byte(fmt.Sprintf("%-32s", name)))
	act := nodemsg.Act{Key: key.Public().(ed25519.PublicKey), Seq: uint64(time.Now().UnixMicro()) + p.state.Acts(), Name: name, Text: text}
	act.Signature = ed25519.Sign(key, policy.SignedText(p.world, act))
	if _, err := p.Enter(t.Context(), act, nil); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// A claim is shown to those near it. Guests and clients of the original protocol may not build in it, nor enter it if
// it is for members only.
func TestClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world := newPeople()
		r := newHarness(t, func(o *Options) { o.People = world })
		ann, bob := r.join("ann", 2), r.connect("bob")
		ann.goTo(.5, 25, .5)
		pass(time.Second)
		if ann.look(func() {}); ann.mu.claims != nil {
			t.Errorf("without claims ann is sent %+v", ann.mu.claims)
		}
		world.register(t, "zoe")
		world.command(t, "zoe", "claim 0,0 9,9 home")
		pass(time.Second)
		shown := func() (text string) {
			ann.look(func() { text = fmt.Sprintf("%+v", ann.mu.claims) })
			return text
		}
		box := "Name:home Min:0,0,0 Max:9,1023,9 Member:false "
		if got := shown(); got != "[{Owner:zoe "+box+"Build:false Enter:true}]" {
			t.Errorf("ann is sent %s", got)
		}
		spot := grid.Pos{X: 3, Y: 26, Z: 3}
		builds := func() (session string, original bool) {
			seq := ann.put(spot, chunk.Brick+chunk.Block(ann.seq%2))
			pass(time.Second)
			before := r.lands.truth(grid.ChunkPos{}).Get(chunk.At(spot))
			bob.send(fmt.Sprintf(`{"type":7,"args":[%d,%d,%d,%d]}`+"\n", spot.X, spot.Y, spot.Z, 1+before%2))
			pass(time.Second)
			return ann.answer(seq).Error, r.lands.truth(grid.ChunkPos{}).Get(chunk.At(spot)) != before
		}
		if session, original := builds(); session != wire.RefusedClaimed || original {
			t.Errorf("a session is answered %q, an original client builds: %t", session, original)
		}
		world.command(t, "zoe", "flag home build all")
		pass(time.Second)
		if session, original := builds(); session != "" || !original {
			t.Errorf("where all may build, a session is answered %q, an original client builds: %t", session, original)
		}
		world.command(t, "zoe", "flag home build members")
		world.command(t, "zoe", "flag home enter members")
		pass(time.Second)
		ann.goTo(.5, 25, 5.5) // ann is in it, and may go on and leave
		pass(time.Second)
		ann.goTo(-2.5, 25, 5.5)
		pass(time.Second)
		if ann.mu.corrections > 0 {
			t.Errorf("ann was corrected because of %q", ann.mu.reason)
		}
		ann.goTo(.5, 25, 5.5)
		pass(time.Second)
		if ann.mu.corrections != 1 || ann.mu.reason != wire.RefusedClaimed {
			t.Errorf("%d corrections, the last because of %q", ann.mu.corrections, ann.mu.reason)
		}
		if got := shown(); got != "[{Owner:zoe "+box+"Build:false Enter:false}]" {
			t.Errorf("ann is sent %s", got)
		}
		ann.send(sessionmsg.Command{Text: "claims zoe"})
		pass(time.Second)
		if got := ann.mu.notices[len(ann.mu.notices)-1]; got != "zoe/home: 0,0 to 9,9, only members may enter" {
			t.Error(got)
		}
		if spawn := r.g.spawnPose(); !(grid.Box{Max: grid.Pos{X: 9, Y: 1023, Z: 9}}).Contains(spawn.Block()) {
			t.Fatalf("the spawn at %+v is not in the claim", spawn)
		}
		if got := ann.command("spawn"); strings.Contains(got, "claim") || ann.mu.reason != teleported {
			t.Errorf("/spawn into a private claim is answered %q, ann was corrected because of %q", got, ann.mu.reason)
		}
		bob.send(`{"type":1,"args":[0,0],"player":"bob"}` + "\n")
		pass(time.Second)
		for x := 18.; x > 2; x -= .5 {
			bob.send(fmt.Sprintf(`{"type":3,"args":[%v,26,5.5,0]}`+"\n", x))
			pass(200 * time.Millisecond)
		}
		pass(time.Second)
		ann.look(func() {
			if x := ann.mu.avatars[player.GuestID("bob").String()].X; x < 10 || x > 11 {
				t.Errorf("an original client went to x=%v", x)
			}
		})
		world.command(t, "zoe", "claim 12,12 20,20 hall")
		world.command(t, "zoe", "flag hall enter members")
		pass(time.Second)
		east := r.connectFrom("127.0.0.1", "bob", grid.ChunkPos{X: 1})
		bob.send(`{"type":2,"args":[0,0]}` + "\n")
		east.send(`{"type":1,"args":[1,0],"player":"bob"}` + "\n" + `{"type":3,"args":[33,26,16.5,0]}` + "\n")
		pass(time.Second)
		east.send(`{"type":2,"args":[1,0]}` + "\n")
		bob.send(`{"type":1,"args":[0,0],"player":"bob"}` + "\n") // its middle is in the claim
		pass(time.Second)
		bob.send(`{"type":3,"args":[14,26,16.5,0]}` + "\n")
		pass(time.Second)
		ann.look(func() {
			if x := ann.mu.avatars[player.GuestID("bob").String()].X; x < 15 {
				t.Errorf("an original client came to x=%v over a border of chunks", x)
			}
		})
		world.command(t, "zoe", "unclaim hall")
		world.operate(t, "unclaim zoe/home")
		pass(time.Second)
		if got := shown(); got != "[]" {
			t.Errorf("without the claim ann is sent %s", got)
		}
	})
}

// A player who asks for it is brought back to the spawn, also into another chunk, and goes on from there.
func TestSpawnCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		ann, bob := r.join("ann", 2), r.join("bob", 2)
		start := ann.mu.welcome.Pose
		for x := start.X; x < start.X+40; x += .5 {
			ann.send(sessionmsg.Move{Pose: motion.Pose{X: x, Y: start.Y + 1, Z: start.Z}})
			pass(100 * time.Millisecond)
		}
		where := func() (x float64) {
			bob.look(func() { x = bob.mu.avatars[ann.mu.welcome.Player].X })
			return x
		}
		if x := where(); x < start.X+30 || ann.mu.corrections > 0 {
			t.Fatalf("ann is at %v, after %d corrections (%s)", x, ann.mu.corrections, ann.mu.reason)
		}
		ann.send(sessionmsg.Command{Text: "spawn"})
		pass(time.Second)
		if x := where(); x != start.X || ann.mu.reason != teleported {
			t.Errorf("others see ann at %v, she was corrected because of %q", x, ann.mu.reason)
		}
		ann.send(sessionmsg.Move{Pose: motion.Pose{X: start.X + .3, Y: start.Y, Z: start.Z}})
		pass(time.Second)
		if ann.mu.corrections != 1 {
			t.Errorf("%d corrections, the last one because of %q", ann.mu.corrections, ann.mu.reason)
		}
		ann.sees(r.lands, 2)
	})
}

// Who logs in on another day than that on which they registered their name, has used it, whatever client they have.
func TestLoginConfirmsName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		people := newPeople()
		r := newHarness(t, func(o *Options) { o.People = people })
		people.world = r.g.World.ID()
		people.register(t, "ann")
		key := ed25519.NewKeyFromSeed([]byte(fmt.Sprintf("%-32s", "ann")))
		id := player.IDOf(key.Public().(ed25519.PublicKey))
		for _, c := range []struct {
			after     time.Duration
			confirmed bool
		}{{time.Hour, false}, {24 * time.Hour, true}} {
			pass(c.after)
			conn := r.dial()
			ann := newClient(t, conn)
			ann.send(sessionmsg.Join{Version: 1, Name: "ann", View: 1, Encoding: "json", Key: hex.EncodeToString(key.Public().(ed25519.PublicKey))})
			m, err := sessionmsg.DecodeServer([]byte(readLine(t, conn)))
			if err != nil {
				t.Fatal(err)
			}
			challenge := m.(sessionmsg.Challenge)
			ann.send(sessionmsg.Prove{Signature: hex.EncodeToString(ed25519.Sign(key, player.ProofText(challenge.Nonce, challenge.World)))})
			go ann.listen()
			pass(time.Second)
			conn.Close()
			pass(time.Second)
			people.Read(func(s *policy.State) {
				if s.Unconfirmed(id, time.Now().Add(time.Hour*48)) == c.confirmed {
					t.Errorf("after %v the name is confirmed: %t", c.after, !c.confirmed)
				}
			})
		}
	})
}
