package gameserver

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// This file imitates VoxelPopuli's released client, and the dissertation's test clients.

// packets returns the packets that have arrived since the last call, except CHUNK_DATA and TIME.
func (o *original) packets() []string {
	var all []string
	for line := range strings.Lines(o.received()) {
		if !strings.HasPrefix(line, `{"type":5,`) {
			all = append(all, strings.TrimSuffix(line, "\n"))
		}
	}
	return all
}

func (o *original) receives(t *testing.T, what string, want ...string) {
	t.Helper()
	if got := o.packets(); !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

// stream returns a channel whose texts are sent without waiting for the server, as by a socket. The caller closes it.
func (o *original) stream() chan<- string {
	queue := make(chan string, 1<<10)
	go func() {
		for text := range queue {
			for len(queue) > 0 {
				text += <-queue
			}
			o.send(text)
		}
	}()
	return queue
}

// The client is silent on the chunks around its own, and on the dht connection between two borders.
func TestOriginalsMayBeSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		dht := r.dial()
		ask := func(text, want string) {
			t.Helper()
			go io.WriteString(dht, text) //nolint:errcheck // the response shows errors
			got := make([]byte, len(want))
			if _, err := io.ReadFull(dht, got); err != nil || string(got) != want {
				t.Errorf("%q is answered %q (%v), want %q", text, got, err, want)
			}
		}
		ask(`{"type":"dht"}`, "ok")
		ann := r.connect("ann")
		ann.received()
		pass(time.Hour + 90*time.Second)
		ask("\x00[3,-2]", `{"ip":"192.0.2.7","port":4002}`+"\n")
		bob := r.connect("bob")
		bob.send(`{"type":1,"args":[0,0],"player":"bob"}` + "\n")
		pass(time.Second)
		if got := ann.packets(); ann.mu.ended || len(got) == 0 {
			t.Errorf("after a silent hour the connection has ended: %v, and received %q", ann.mu.ended, got)
		}
	})
}

// The client's screen has 240 frames a second, and each sends a move. The newest is relayed each time that the
// connection is read; the regions of this test have no ticks.
func TestOriginalsMoveEveryFrame(t *testing.T) {
	const minutes, rate = 5, 240
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		ann, bob := r.connect("ann"), r.connect("bob")
		ann.send(`{"type":1,"args":[0,0],"player":"ann"}` + "\n")
		bob.received()
		const frame, speed = time.Second / rate, 4.
		sent := make(map[string]bool)
		stream := ann.stream()
		x, step := 2., speed/rate
		for i := range minutes * 60 * rate {
			if x += step; x < 2 || x > 30 {
				step = -step
			}
			move := fmt.Sprintf(`{"type":3,"args":[%v,25,6,0],"player":"ann"}`, x)
			sent[move] = true
			stream <- move + "\n"
			<-time.After(frame)
			if i == 0 {
				pass(time.Second)
			}
		}
		close(stream)
		pass(time.Second)
		last := fmt.Sprintf(`{"type":3,"args":[%v,25,6,0],"player":"ann"}`, x)
		got := bob.packets()
		if ann.mu.ended || len(got) < minutes*60*20 || len(got) > minutes*60*40 || got[len(got)-1] != last {
			t.Fatalf("after %d minutes the connection has ended: %v; of %d moves %d were relayed, the last one %q, want %q",
				minutes, ann.mu.ended, minutes*60*rate, len(got), got[len(got)-1], last)
		}
		for _, move := range got[2:] { // the first two are of the register
			if !sent[move] {
				t.Fatalf("%s was relayed, and never sent", move)
			}
		}
	})
}

// A player walks over a border each second for ten minutes. Others see the same avatar all the time, whichever of the
// two connections is read first; and the player's own client never sees it.
func TestOriginalsWalkOverBorders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		west, east := grid.ChunkPos{X: -1}, grid.ChunkPos{}
		links := map[grid.ChunkPos]*original{west: r.connectFrom("192.0.2.1", "ann", west), east: r.connectFrom("192.0.2.1", "ann", east)}
		watcher := r.join("eve", 2)
		at := east
		links[at].send(`{"type":1,"args":[0,0],"player":"ann"}` + "\n" + `{"type":3,"args":[0.5,25,4],"player":"ann"}` + "\n")
		pass(time.Second)
		watcher.look(func() {
			if len(watcher.mu.avatars) != 2 {
				t.Fatalf("%d avatars are seen, want eve and ann", len(watcher.mu.avatars))
			}
		})
		for i := range 600 {
			next, x := west, -.5
			if at == west {
				next, x = east, .5
			}
			register := fmt.Sprintf(`{"type":1,"args":[%d,0],"player":"ann"}`+"\n"+`{"type":3,"args":[%v,25,4],"player":"ann"}`+"\n", next.X, x)
			deregister := fmt.Sprintf(`{"type":2,"args":[%d,0],"player":"ann"}`+"\n", at.X)
			if i%2 == 0 {
				links[at].send(deregister)
				links[next].send(register)
			} else { // the two arrive over different connections
				links[next].send(register)
				pass(20 * time.Millisecond)
				links[at].send(deregister)
			}
			at = next
			pass(time.Second)
		}
		watcher.look(func() {
			for _, a := range watcher.mu.avatars {
				if a.Name != "ann" && a.Name != "eve" {
					t.Errorf("an avatar is called %s", a.Name)
				}
			}
			if len(watcher.mu.avatars) != 2 {
				t.Errorf("%d avatars are seen, want eve and ann", len(watcher.mu.avatars))
			}
		})
		for at, o := range links {
			if got := o.packets(); o.mu.ended || slices.ContainsFunc(got, func(p string) bool { return strings.Contains(p, `"ann`) }) {
				t.Errorf("the client's connection with chunk %v has ended: %v, and brings %.300q", at, o.mu.ended, got)
			}
		}
	})
}

// The released client's name is in its source: two of them meet, at two addresses and at one.
func TestNamesakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		const first, second = "192.0.2.1", "192.0.2.2"
		other, third := player.Namesake("Abrasam", second, 0), player.Namesake("Abrasam", second, 1)
		clients := make([]*original, 0, 3)
		for i, address := range []string{first, second, second} {
			o := r.connectFrom(address, "Abrasam", grid.ChunkPos{})
			o.received()
			o.send(`{"type":1,"args":[0,0],"player":"Abrasam"}` + "\n" + fmt.Sprintf(`{"type":3,"args":[%d,25,4,0],"player":"Abrasam"}`, 4+i) + "\n")
			pass(time.Second)
			clients = append(clients, o)
		}
		sees := func(what string, i int, want ...string) {
			t.Helper()
			var got []string
			for _, p := range clients[i].packets() {
				name := p[strings.LastIndex(p, `:"`)+2 : len(p)-2]
				if strings.HasPrefix(p, `{"type":3,`) && !slices.Contains(got, name) {
					got = append(got, name)
				}
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%s: client %d sees %q move, want %q", what, i, got, want)
			}
		}
		sees("all have come", 0, other, third)
		for i := range clients {
			clients[i].received()
		}
		for i, o := range clients {
			o.send(fmt.Sprintf(`{"type":3,"args":[%d,25,6,0],"player":"Abrasam"}`, 4+i) + "\n")
		}
		pass(time.Second)
		sees("all move", 0, other, third)
		sees("all move", 1, "Abrasam", third)
		sees("all move", 2, "Abrasam", other)

		// A session cannot take a name that is in use, and a client that takes a session's gets a suffix.
		late := newClient(t, r.dial())
		late.open(sessionmsg.Join{Version: 1, Name: "Abrasam", View: 1, Encoding: "json"})
		pass(time.Second)
		if late.mu.failure.Code != wire.FailNameTaken {
			t.Errorf("a session called Abrasam is answered %+v", late.mu.failure)
		}
		bob := r.join("bob", 1)
		o := r.connectFrom(first, "bob", grid.ChunkPos{})
		o.send(`{"type":1,"args":[0,0],"player":"bob"}` + "\n")
		pass(time.Second)
		bob.look(func() {
			for _, a := range bob.mu.avatars {
				if a.Name == "bob" && a.Player != guestID("bob").String() {
					t.Errorf("two avatars are called bob")
				}
			}
		})
		if _, registered := r.registered(player.Namesake("bob", first, 0)); !registered {
			t.Error("the second bob has no suffix")
		}
		// The second one disconnects, connects again, and is the same player.
		clients[1].conn.Close()
		pass(time.Second)
		again := r.connectFrom(second, "Abrasam", grid.ChunkPos{})
		again.send(`{"type":1,"args":[0,0],"player":"Abrasam"}` + "\n")
		pass(time.Second)
		if _, registered := r.registered(other); !registered {
			t.Error("who came again is somebody else")
		}
	})
}

// registered returns where a player of an original client is, and reports whether they are registered.
func (r *harness) registered(name string) (pose motion.Pose, registered bool) {
	for _, p := range r.g.legacy.AppendPlayers(nil) {
		if p.Player == guestID(name) {
			return p.Pose, true
		}
	}
	return pose, false
}

// Of two namesakes at one address one quits, and the other one crosses a border: they stay the same player, and build.
func TestNamesakesStayTheSamePlayer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		const address = "192.0.2.2"
		west, east := grid.ChunkPos{X: -1}, grid.ChunkPos{}
		second := player.Namesake("P", address, 0)
		quits := r.connectFrom(address, "P", east)
		quits.send(`{"type":1}` + "\n" + `{"type":3,"args":[2.5,25,4]}` + "\n")
		pass(time.Second)
		stays := map[grid.ChunkPos]*original{east: r.connectFrom(address, "P", east), west: r.connectFrom(address, "P", west)}
		stays[east].send(`{"type":1}` + "\n" + `{"type":3,"args":[1.5,25,4]}` + "\n")
		pass(time.Second)
		quits.send(`{"type":2}` + "\n")
		pass(time.Second)
		for from, i := east, 0; i < 3; i++ {
			to, x := west, -1.5
			if from == west {
				to, x = east, 1.5
			}
			stays[from].send(`{"type":2}` + "\n")
			stays[to].send(`{"type":1}` + "\n" + fmt.Sprintf(`{"type":3,"args":[%v,25,4]}`, x) + "\n")
			pass(2 * time.Second)
			if pose, registered := r.registered(second); !registered || pose.Chunk() != to {
				t.Fatalf("whoever came to %v is not %s", to, second)
			}
			for at, o := range stays { // on the connection whose chunk contains the block
				pos := grid.Pos{X: 1, Y: 26, Z: 6}
				if at == west {
					pos.X = -2
				}
				block := 1 + r.lands.truth(at).Get(chunk.At(pos))%2
				o.send(fmt.Sprintf(`{"type":7,"args":[%d,%d,%d,%d]}`, pos.X, pos.Y, pos.Z, block) + "\n")
				pass(time.Second)
				if got := r.lands.truth(at).Get(chunk.At(pos)); got != block {
					t.Errorf("the player in %v does not build in %v", to, at)
				}
			}
			from = to
		}
	})
}

// After a reset the client connects again, and does not register before the next border. It builds meanwhile.
func TestOriginalsBuildAfterAReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		ann := r.connect("ann")
		ann.send(`{"type":7,"args":[5,26,5,1]}` + "\n")
		pass(time.Second)
		if got := r.lands.truth(grid.ChunkPos{}).Get(chunk.IndexOf(5, 26, 5)); got != chunk.Stone {
			t.Errorf("the block is %v, want stone", got)
		}
	})
}

// A player comes back to where they were, also while a namesake plays; and nobody begins below the floor.
func TestWhereNamesakesComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		const first, second = "192.0.2.1", "192.0.2.2"
		var last *original
		for i, address := range []string{first, second} {
			last = r.connectFrom(address, "P", grid.ChunkPos{})
			last.send(`{"type":1}` + "\n" + fmt.Sprintf(`{"type":3,"args":[%d,25,6]}`, 3+17*i) + "\n")
			pass(time.Second)
		}
		last.conn.Close()
		pass(time.Second)
		now := time.Now().UnixMilli()
		deep := nodemsg.PlayerRecord{
			Player: guestID("deep"), Name: "deep", Guest: true, Seq: uint64(now), Pose: motion.Pose{X: 1, Y: -20, Z: 1}, Gateway: "peerOther", SavedAt: now,
		}
		if err := r.network.PutPlayer(t.Context(), deep); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct{ address, name, want string }{
			{second, "P", `{"x":20,"y":25,"z":6}`},
			{first, "P", `{"x":3,"y":25,"z":6}`},
			{"192.0.2.3", "P", `{"x":3,"y":25,"z":6}`}, // beside somebody of that name
			{first, "deep", `{"x":1,"y":32,"z":1}`},
		} {
			dht := r.dialFrom(&net.TCPAddr{IP: net.ParseIP(c.address), Port: 7})
			go fmt.Fprintf(dht, "{\"type\":\"dht\"}\x01{\"name\":%q}", c.name)
			got := make([]byte, len("ok")+len(c.want))
			if _, err := io.ReadFull(dht, got); err != nil || string(got) != "ok"+c.want {
				t.Errorf("%s at %s is sent to %q (%v), want %s", c.name, c.address, got, err, c.want)
			}
		}
	})
}

// A player who had a suffix on another node until recently keeps it, and one who joins while another node has the name
// gets one.
func TestNamesakesOfOtherNodes(t *testing.T) {
	const address = "192.0.2.2"
	suffixed := player.Namesake("Abrasam", address, 0)
	near, far := motion.Pose{X: 33, Y: 25, Z: 1}, motion.Pose{X: 999, Y: 25, Z: 1}
	minutes := func(n int) time.Duration { return time.Duration(n) * time.Minute }
	type saved struct {
		name string
		at   motion.Pose
		ago  time.Duration
	}
	for name, c := range map[string]struct {
		known []saved
		want  string
	}{
		"unknown":                      {nil, "Abrasam"},
		"came over the border":         {[]saved{{"Abrasam", near, 0}}, "Abrasam"},
		"came, and had a suffix once":  {[]saved{{"Abrasam", near, 0}, {suffixed, near, minutes(5)}}, "Abrasam"},
		"came, and has a suffix":       {[]saved{{"Abrasam", near, minutes(1)}, {suffixed, near, 0}}, suffixed},
		"another one is far away":      {[]saved{{"Abrasam", far, minutes(1)}}, suffixed},
		"another one was there, once":  {[]saved{{"Abrasam", far, minutes(11)}}, "Abrasam"},
		"had a suffix, quite long ago": {[]saved{{suffixed, near, minutes(11)}}, "Abrasam"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newHarness(t)
				for _, s := range c.known {
					at := time.Now().Add(-s.ago).UnixMilli()
					record := nodemsg.PlayerRecord{
						Player: guestID(s.name), Name: s.name, Guest: true, Seq: uint64(at), Pose: s.at, Gateway: "peerOther", SavedAt: at,
					}
					if err := r.network.PutPlayer(t.Context(), record); err != nil {
						t.Fatal(err)
					}
				}
				o := r.connectFrom(address, "Abrasam", grid.ChunkPos{})
				o.send(`{"type":1,"args":[0,0],"player":"Abrasam"}` + "\n")
				pass(time.Second)
				if _, registered := r.registered(c.want); !registered || r.g.sessions.Reserved() != 1 {
					t.Errorf("they are not called %s", c.want)
				}
			})
		})
	}
}

// When another node leads a region, its connections end, so that clients query dht again.
func TestOriginalsFollowTheirRegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		ann, bob := r.connect("ann"), r.connectFrom("127.0.0.1", "bob", grid.ChunkPos{X: 16})
		ann.send(`{"type":1,"args":[0,0],"player":"ann"}` + "\n")
		pass(time.Second)
		r.lands.cut()
		pass(5 * time.Second)
		if ann.mu.ended || bob.mu.ended {
			t.Fatal("a broken link ends connections")
		}
		r.lands.leader = "peerOther"
		r.lands.cut()
		pass(5 * time.Second)
		if !ann.mu.ended || !bob.mu.ended {
			t.Errorf("the region is led elsewhere; ann's connection has ended: %v, bob's: %v", ann.mu.ended, bob.mu.ended)
		}
		if _, saved := saved(r.disk, guestID("ann")); !saved {
			t.Error("ann is not saved")
		}
	})
}

// Players of the original protocol are guests.
func TestOriginalsAreGuests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, func(o *Options) { o.Admission.Guests = false })
		conn := r.dial()
		go io.WriteString(conn, `{"type":"connect","chunk":[0,0],"player":"ann"}`) //nolint:errcheck // the response shows errors
		if got, err := io.ReadAll(conn); err != nil || string(got) != "no" {
			t.Errorf("connect is answered %q (%v), want no", got, err)
		}
	})
}

// What the dissertation's test clients send, and what others see of it.
func TestOriginalTranscripts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		eve := r.connect("eve")
		eve.received()
		bot := r.connect("test client")
		for _, step := range []struct {
			text string
			want []string
		}{
			{`{"type":1,"args":[4.5,25,6.5],"player":"dummy 7"}`, []string{
				`{"type":1,"args":[0,0],"player":"dummy_7"}`,
				fmt.Sprintf(`{"type":3,"args":[16.5,%d,16.5,0],"player":"dummy_7"}`, ground().Surface(16, 16)),
			}},
			{`{"type":3,"args":[4.5,25,6.5],"player":"somebody else"}`, []string{`{"type":3,"args":[4.5,25,6.5,0],"player":"dummy_7"}`}},
			{`{"type":3,"args":[4.5,25,7.5,90,"extra"],"player":""}`, []string{`{"type":3,"args":[4.5,25,7.5,90],"player":"dummy_7"}`}},
			{`{"type":3,"args":[5.5],"player":"dummy 7"}`, nil},
			{`{"type":4,"args":[1,2,3],"player":"dummy 7"}`, nil},
			{`{"type":99}`, nil},
			{`{"type":5,"args":[0,0],"player":""}`, nil},
			{`{"type":6,"args":[12]}`, nil},
			{`{"type":1,"args":["again"],"player":"dummy 8"}`, nil},
			{`{"type":2,"args":[],"player":"dummy 9"}`, []string{`{"type":2,"args":[0,0],"player":"dummy_7"}`}},
			{`{"type":2,"args":[],"player":"dummy 9"}`, nil},
		} {
			bot.send(step.text + "\n")
			pass(time.Second)
			eve.receives(t, step.text, step.want...)
		}
		if bot.mu.ended {
			t.Error("the test client's connection has ended")
		}
	})
}

// There is ground below everybody: the lowest layer that these clients see is solid, and stays so.
func TestOriginalsHaveAFloor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, func(o *Options) { o.World.Sections, o.World.OriginalBase = 1, 0 })
		ann := r.connect("ann")
		ann.send(`{"type":1,"args":[0,0],"player":"ann"}` + "\n" + `{"type":3,"args":[4.5,3,4.5]}` + "\n")
		ann.received()
		was := r.lands.truth(grid.ChunkPos{}).Get(chunk.IndexOf(5, 0, 5))
		for _, block := range []int{0, 1, 3} {
			ann.send(fmt.Sprintf(`{"type":7,"args":[5,0,5,%d]}`+"\n", block))
		}
		pass(time.Second)
		if got := r.lands.truth(grid.ChunkPos{}).Get(chunk.IndexOf(5, 0, 5)); got != was {
			t.Errorf("the lowest block is %v, and was %v", got, was)
		}
		// Coordinates are rounded down.
		ann.send(`{"type":7,"args":[6.9,2.2,5.5,0]}` + "\n")
		pass(time.Second)
		if got := r.lands.truth(grid.ChunkPos{}).Get(chunk.IndexOf(6, 2, 5)); got != chunk.Air {
			t.Errorf("block 6, 2, 5 is %v, want air", got)
		}
	})
}
