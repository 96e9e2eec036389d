package gameserver

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/elsewhere"
	"github.com/voxelpopuli/voxeld/gameserver/players"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// command sends a command, and returns what the player is told meanwhile.
func (c *client) command(text string) string {
	before := 0
	c.look(func() { before = len(c.mu.notices) })
	c.send(sessionmsg.Command{Text: text})
	pass(1500 * time.Millisecond) // commands are limited to one a second
	var told []string
	c.look(func() { told = slices.Clone(c.mu.notices[before:]) })
	return strings.Join(told, "; ")
}

// seenAt returns where somebody sees a player.
func (c *client) placeOf(who *client) (x, z float64) {
	c.look(func() {
		a := c.mu.avatars[who.mu.welcome.Player]
		x, z = a.X, a.Z
	})
	return x, z
}

// Players go to their home and to warps, moderators to players and places; moves that a client sent before it was
// brought elsewhere bring it no correction.
func TestTravel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world := newPeople()
		r := newHarness(t, func(o *Options) { o.People = world })
		world.operate(t, "setwarp market 40 26 -3")
		ann, bob := r.join("ann", 2), r.join("bob", 2)
		where := func(what string, wantX, wantZ float64) {
			t.Helper()
			if x, z := bob.placeOf(ann); x != wantX || z != wantZ {
				t.Errorf("%s: ann is seen at (%v, %v)", what, x, z)
			}
		}
		if got := ann.command("home"); !strings.HasPrefix(got, "You have no home yet") {
			t.Error(got)
		}
		ann.goTo(5.5, 26, 7.5)
		pass(time.Second)
		if got := ann.command("sethome"); !strings.HasPrefix(got, "This is your home now") {
			t.Error(got)
		}
		if got := ann.command("warps"); got != "market" {
			t.Error(got)
		}
		if got := ann.command("warp mars"); got != "There is no warp mars: /warps lists them." {
			t.Error(got)
		}
		ann.send(sessionmsg.Command{Text: "warp Market"})
		ann.goTo(5.5, 26, 8) // on its way before the client knows
		pass(1500 * time.Millisecond)
		where("warp", 40.5, -2.5)
		if ann.mu.corrections != 1 || ann.mu.reason != teleported {
			t.Errorf("%d corrections, the last one %q", ann.mu.corrections, ann.mu.reason)
		}
		ann.goTo(40.5, 26, -2)
		pass(3 * time.Second)
		ann.goTo(5.5, 26, 8) // this one breaks the rules
		pass(time.Second)
		if ann.mu.corrections != 2 {
			t.Errorf("%d corrections of a jump without a command", ann.mu.corrections)
		}
		ann.command("home")
		where("home", 5.5, 7.5)
		ann.goTo(5.5, 26, 7.5)
		ann.goTo(5.5, 26, 11)
		ann.send(sessionmsg.Command{Text: "home"})
		ann.goTo(5.5, 26, 13) // on its way too, and near enough to be a move from there
		pass(3 * time.Second)
		corrections := ann.mu.corrections
		ann.goTo(5.5, 26, 13.5) // as if the client had not received the correction
		pass(time.Second)
		where("home", 5.5, 7.5)
		if ann.mu.corrections != corrections+1 || ann.mu.reason != teleported {
			t.Errorf("%d corrections instead of one more than %d, the last one %q", ann.mu.corrections, corrections, ann.mu.reason)
		}
		ann.goTo(5.5, 26, 8)
		ann.sees(r.lands, 2)
		if got := ann.command("tp bob"); got != "/tp is not for the role builder." {
			t.Error(got)
		}
		for _, text := range []string{"warp", "msg bob", "msg b@d hello"} {
			if got := ann.command(text); !strings.HasPrefix(got, "Usage: /") {
				t.Errorf("/%s is answered %q", text, got)
			}
		}
		bob.send(sessionmsg.Command{Text: "visit 7 26 9"})
		pass(1500 * time.Millisecond)
		if x, z := ann.placeOf(bob); x != 7.5 || z != 9.5 {
			t.Errorf("visit: bob is seen at (%v, %v)", x, z)
		}
		if got := bob.command("visit 8 26 9"); got != "You may visit one place after joining." {
			t.Error(got)
		}
		for range travelsInTest {
			ann.send(sessionmsg.Command{Text: "home"})
		}
		if got := ann.command("home"); !strings.Contains(got, "You travel too often") {
			t.Error(got)
		}
	})
}

const travelsInTest = 6 // more than are allowed at once

// A home is kept with the player, on the disk and for other gateways.
func TestHomesAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		ann := r.join("ann", 1)
		ann.goTo(3.5, 26, 4.5)
		pass(2 * time.Second)
		ann.command("sethome")
		pass(2 * time.Second) // saved, though she stands still
		id := guestID("ann")
		row, err := r.disk.Get(players.Table, id[:])
		if err != nil {
			t.Fatal(err)
		}
		if record, err := nodemsg.DecodePlayerRecord(row); err != nil || record.Home == nil || record.Home.X != 3.5 {
			t.Errorf("on the disk is %+v, %v", record, err)
		}
		ann.conn.Close()
		pass(time.Second)
		again := r.join("ann", 1)
		again.goTo(.5, 26, .5)
		pass(time.Second)
		again.command("home")
		if x := r.g.Online()[0].Pose.X; x != 3.5 {
			t.Errorf("home is at x = %v", x)
		}
		again.conn.Close()
		pass(time.Second)
		if record, err := r.network.Player(t.Context(), id); err != nil || record.Home == nil || record.Home.X != 3.5 {
			t.Errorf("other gateways know %+v, %v", record, err)
		}
	})
}

// A guest who comes with a client of the original protocol keeps the home that they have set in the page.
func TestOriginalsKeepTheirHome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		ann := r.join("ann", 1)
		ann.goTo(3.5, 26, 4.5)
		pass(time.Second)
		ann.command("sethome")
		ann.conn.Close()
		pass(time.Second)
		original := r.connect("ann")
		for range 2 { // the second time they are known
			original.send(`{"type":1}` + "\n" + `{"type":3,"args":[1.5,25,4]}` + "\n")
			pass(2 * time.Second)
			original.send(`{"type":2}` + "\n")
			pass(time.Second)
			if record, err := r.network.Player(t.Context(), guestID("ann")); err != nil || record.Pose.X != 1.5 || record.Home == nil || record.Home.X != 3.5 {
				t.Errorf("published is %+v, %v", record, err)
			}
		}
	})
}

// The border stops moves, edits and commands of players. Those who are outside when it is set are brought inside, on
// top of what is there.
func TestBorder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world := newPeople()
		r := newHarness(t, func(o *Options) { o.People = world })
		world.operate(t, "setwarp far 90 26 0")
		ann := r.join("ann", 2)
		old := r.connect("old")
		ann.goTo(12.5, 25, .5)
		pass(time.Second)
		ann.put(grid.Pos{X: 8, Y: 25, Z: 0}, chunk.Brick)
		ann.put(grid.Pos{X: 8, Y: 26, Z: 0}, chunk.Brick)
		pass(time.Second)
		world.operate(t, "set border 8")
		pass(100 * time.Millisecond)
		ann.send(sessionmsg.Ping{Nonce: 1})
		pass(100 * time.Millisecond)
		if got := r.g.sessions.All()[0].place.pose(); got.X != 8.5 || got.Y != 27 || got.Z != .5 || ann.mu.reason != teleported {
			t.Errorf("who was outside is at %+v, after a correction for %q", got, ann.mu.reason)
		}
		if got := ann.mu.notices; len(got) == 0 || got[len(got)-1] != "The world ends here: you were brought back inside its border." {
			t.Errorf("who was outside reads %q", got)
		}
		ann.goTo(8.5, 27, .5)
		pass(time.Second)
		steps := func(x float64, refused bool) {
			t.Helper()
			before := ann.mu.corrections
			ann.goTo(x, 27, .5)
			pass(time.Second)
			if got := ann.mu.corrections > before; got != refused || got && ann.mu.reason != wire.RefusedOutsideBorder {
				t.Errorf("a step to x = %v is corrected: %t (%s)", x, got, ann.mu.reason)
			}
		}
		steps(8.9, false)
		steps(9.1, true)
		outside, inside := grid.Pos{X: 9, Y: 25, Z: 3}, grid.Pos{X: 8, Y: 25, Z: 3}
		refused, applied := ann.put(outside, chunk.Brick), ann.put(inside, chunk.Brick)
		pass(time.Second)
		if got := ann.answer(refused).Error; got != wire.RefusedOutsideBorder {
			t.Errorf("an edit outside is answered %q", got)
		}
		if got := ann.answer(applied).Error; got != "" {
			t.Errorf("an edit inside is answered %q", got)
		}
		if got := ann.command("warp far"); got != "That is outside the border of the world." {
			t.Error(got)
		}
		old.send(`{"type":7,"args":[9,25,4,1]}` + "\n")
		old.send(`{"type":7,"args":[8,25,4,1]}` + "\n")
		pass(time.Second)
		if land := r.lands.truth(grid.ChunkPos{}); land.Get(chunk.At(grid.Pos{X: 9, Y: 25, Z: 4})) == 1 || land.Get(chunk.At(grid.Pos{X: 8, Y: 25, Z: 4})) != 1 {
			t.Error("a client of the original protocol builds outside, or does not build inside")
		}
	})
}

// A role has a rate of edits of its own, at once; clients of the original protocol are not served any more when that is
// switched off.
func TestSettingsOfRoles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world := newPeople()
		r := newHarness(t, func(o *Options) { o.People = world })
		ann, old := r.join("ann", 1), r.connect("old")
		s := r.g.sessions.All()[0]
		for _, c := range []struct {
			text string
			want float64
		}{{"set edits builder 3", 3}, {"set edits visitor 7", 3}, {"set guests visitor", 7}, {"set edits visitor default", 20}} {
			world.operate(t, c.text)
			pass(100 * time.Millisecond)
			if got := float64(s.limits.edit.Limit()); got != c.want {
				t.Errorf("after %q a guest may change %v blocks a second", c.text, got)
			}
		}
		world.operate(t, "set original off")
		pass(100 * time.Millisecond)
		if !old.mu.ended || ann.mu.ended {
			t.Errorf("ended: the original client %t, the other %t", old.mu.ended, ann.mu.ended)
		}
		for _, handshake := range []string{`{"type":"connect","chunk":[0,0],"player":"old"}`, `{"type":"generate","chunk":[0,0]}`} {
			if got := r.shake(handshake); got != "no" {
				t.Errorf("%s is answered %q", handshake, got)
			}
		}
		world.operate(t, "set original on")
		if got := r.shake(`{"type":"connect","chunk":[0,0],"player":"old"}`); got != "ok" {
			t.Errorf("switched on again, a client is answered %q", got)
		}
	})
}

// shake sends a handshake of the original protocol, and returns the answer.
func (r *harness) shake(handshake string) string {
	c := r.dial()
	go func() { c.Write([]byte(handshake)) }() //nolint:errcheck // the read below reports it
	answer := make([]byte, 2)
	c.Read(answer) //nolint:errcheck // the read below reports it
	return string(answer)
}

// Private lines, /who and /tp reach players on other nodes. Who is muted writes nobody, and only the receiver reads a
// line.
func TestPlayersElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world := newPeople()
		elsewhereOf := func(peer string, r **harness) func(*Options) {
			return func(o *Options) {
				o.Nodes, o.People = otherNode{peer, r}, world
			}
		}
		var first, second *harness
		first = newHarness(t, elsewhereOf("second", &second))
		notify := world.changed
		second = newHarness(t, elsewhereOf("first", &first))
		changed := world.changed
		world.changed = func() { notify(); changed() }
		ann, cid, bob := first.join("ann", 1), first.join("cid", 1), second.join("Bob", 1)
		if got := ann.command("who"); got != "On this node: ann, cid.; On other nodes: Bob." {
			t.Error(got)
		}
		if got, want := first.g.surroundings.People(t.Context()), (sessionmsg.People{Names: []string{"Bob", "ann", "cid"}, Players: 3}); !reflect.DeepEqual(got, want) {
			t.Errorf("people %+v, want %+v", got, want)
		}
		for _, c := range []struct {
			text, told string
			to         *client
			shown      string
		}{
			{"msg bob hi there", "To Bob: hi there", bob, "From ann: hi there"},
			{"msg CID hi  you", "To cid: hi  you", cid, "From ann: hi  you"},
		} {
			if got := ann.command(c.text); got != c.told {
				t.Errorf("/%s is answered %q", c.text, got)
			}
			if got := strings.Join(c.to.mu.notices, "; "); got != c.shown {
				t.Errorf("after /%s they have read %q", c.text, got)
			}
		}
		if got := ann.command("msg zoe hi"); got != "Nobody called zoe is playing here, or on the nodes that this node can ask (64 at most)." {
			t.Error(got)
		}
		world.operate(t, "mute ann")
		if got := ann.command("msg bob hi"); !strings.HasPrefix(got, "You are muted") {
			t.Error(got)
		}
		line := nodemsg.PrivateLine{From: guestID("ann"), Name: "ann", Guest: true, To: guestID("Bob"), Text: "hi"} // from a gateway that lies
		if (here{second.g}).ShowLine(line) {
			t.Error("a line of a muted player was shown")
		}
		if len(bob.mu.notices) != 1 || len(cid.mu.notices) != 1 {
			t.Errorf("they have read %q and %q", bob.mu.notices, cid.mu.notices)
		}
		bob.send(sessionmsg.Move{Pose: motion.Pose{X: 9.5, Y: 26, Z: 3.5}})
		pass(time.Second)
		if it, err := first.g.Elsewhere.Find(t.Context(), "BOB"); err != nil || it.Pose.X != 9.5 {
			t.Errorf("bob is found at %+v, %v", it, err)
		}
	})
}

// otherNode is one other node, which starts later.
type otherNode struct {
	peer string
	of   **harness
}

func (n otherNode) Connected() []string { return []string{n.peer, "older"} }

func (n otherNode) Ask(ctx context.Context, peer, protocol string, question []byte) ([]byte, error) {
	if peer != n.peer || protocol != elsewhere.Protocol {
		return nil, errors.New("not served")
	}
	return (*n.of).g.Elsewhere.Answer(ctx, peer, question)
}

// Who sends lines too fast is warned, then muted for a minute on this node, also after joining again; then banned, if
// the policy says so.
func TestFloods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world := newPeople()
		r := newHarness(t, func(o *Options) { o.People = world })
		eve, ann := r.join("eve", 1), r.join("ann", 1)
		flood := func() (told string) {
			before := len(eve.mu.notices)
			for i := range chatAtOnce + 5 { // five beyond those that are allowed
				eve.send(sessionmsg.Chat{Text: fmt.Sprint("buy ", i)})
			}
			pass(100 * time.Millisecond)
			eve.look(func() { told = strings.Join(eve.mu.notices[before:], "; ") })
			return told
		}
		if got := flood(); got != "You write too fast; that was not sent. Go on like that, and you are muted for a minute.; You write too fast, and are muted for a minute." {
			t.Errorf("a flood is answered: %s", got)
		}
		eve.conn.Close()
		pass(2 * time.Second)
		eve = r.join("eve", 1)
		pass(8 * time.Second)
		read := len(ann.mu.said)
		eve.send(sessionmsg.Chat{Text: "hello again"})
		pass(2 * time.Second)
		if got := strings.Join(eve.mu.notices, "; "); !strings.HasPrefix(got, "You are muted by this node (5") || len(ann.mu.said) != read {
			t.Errorf("after joining again a muted player is told: %s; others read %q", got, ann.mu.said[read:])
		}
		pass(30 * time.Second)
		eve.goTo(1, 25, 1) // who is silent for a minute is gone
		ann.goTo(2, 25, 1)
		pass(30 * time.Second)
		eve.send(sessionmsg.Chat{Text: "sorry"})
		pass(2 * time.Second)
		if len(ann.mu.said) != read+1 {
			t.Errorf("after a minute others read %q", ann.mu.said[read:])
		}
		flood()
		pass(20 * time.Second)
		if got := flood(); eve.mu.ended || !strings.HasPrefix(got, "You are muted by this node (") {
			t.Errorf("a flooder who is muted is answered: %s; banned: %t", got, eve.mu.ended)
		}
		world.operate(t, "set floodban 1h")
		pass(20 * time.Second)
		if flood(); eve.mu.failure.Code != wire.FailBanned {
			t.Errorf("a flooder who was muted is answered %+v", eve.mu.failure)
		}
		again := newClient(t, r.dial())
		again.open(sessionmsg.Join{Version: sessionmsg.SessionVersion, Name: "eve", View: 1, Encoding: r.encoding})
		pass(time.Second)
		if again.mu.failure.Code != wire.FailBanned || again.mu.failure.Message != "You are banned from this node (1 hour left): flooding the chat." {
			t.Errorf("joining again is answered %+v", again.mu.failure)
		}
		pass(time.Hour)
		r.join("eve", 1)
	})
}

// The alarm on vandals knows the fastest of the new players who remove blocks, within 30 seconds, and forgets them
// after a minute.
func TestNewPlayersWhoRemoveBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		ann, bob, old := r.join("ann", 1), r.join("bob", 1), r.connect("old")
		peak := func() float64 { return counted(t, r.g, "voxeld_newcomer_removals_peak") }
		spot := func(n int) grid.Pos { return grid.Pos{X: 2, Y: 25, Z: int32(n)} }
		for i := range 12 {
			ann.put(spot(i%4), chunk.Brick)
			ann.put(spot(i%4), chunk.Air)
			pass(200 * time.Millisecond)
		}
		bob.put(spot(6), chunk.Brick)
		bob.put(spot(6), chunk.Air)
		old.send(`{"type":7,"args":[3,25,7,1]}` + "\n" + `{"type":7,"args":[3,25,7,0]}` + "\n")
		pass(time.Second)
		if got := peak(); got != 12 {
			t.Errorf("the fastest has removed %v blocks", got)
		}
		if removed := counted(t, r.g, "voxeld_newcomer_edits_total", "removed"); removed != 14 {
			t.Errorf("all have removed %v blocks", removed)
		}
		pass(30 * time.Second)
		if got := peak(); got != 12 {
			t.Errorf("of the half minute before %v is left", got)
		}
		pass(time.Minute)
		if got := peak(); got != 0 {
			t.Errorf("after 90 seconds %v is left", got)
		}
	})
}

// Players of original clients go no faster than others, and not beyond the border: such a move is ignored, as the
// protocol has no correction.
func TestOriginalsMoveByTheRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world := newPeople()
		r := newHarness(t, func(o *Options) { o.People = world })
		old := r.connect("old")
		old.send(`{"type":1,"args":[0,0]}` + "\n")
		moves := func(x, wantX float64) {
			t.Helper()
			old.send(fmt.Sprintf(`{"type":3,"args":[%v,25,4.5]}`+"\n", x))
			pass(time.Second)
			if it, ok := (here{r.g}).FindPlayer("old"); !ok || it.Pose.X != wantX {
				t.Errorf("after a move to x = %v the player is at %v, %t", x, it.Pose.X, ok)
			}
		}
		moves(4.5, 4.5)
		moves(4.5+300*grid.ChunkSize, 4.5)
		moves(9.5, 9.5)
		world.operate(t, "set border 10")
		pass(time.Second)
		moves(12.5, 9.5)
		moves(8.5, 8.5)
		if fast, outside := counted(t, r.g, "voxeld_move_corrections_total", "too_fast"), counted(t, r.g, "voxeld_move_corrections_total", "outside_border"); fast != 1 || outside != 1 {
			t.Errorf("%v moves were too fast, %v led outside", fast, outside)
		}
		for x := 11.5; x < 60; x += 3 { // they go on outside, where nobody sees them
			moves(x, 8.5)
		}
		moves(9.5, 9.5)
	})
}
