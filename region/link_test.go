package region

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Players of two gateways on two nodes see each other join, move and leave. When a link ends, its players leave.
func TestBodiesOverTwoNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		a, b := net.start("A", newDisk()), net.start("B", newDisk())
		near, far := a.follow(here), b.follow(here)
		near.send(nodemsg.ToRegion{Enter: []nodemsg.Body{body(alice, here)}})
		near.state(here)
		if s := far.state(here); len(s.Bodies) != 1 || s.Bodies[0] != body(alice, here) {
			t.Fatalf("the other node sees %+v", s.Bodies)
		}
		far.send(nodemsg.ToRegion{Enter: []nodemsg.Body{body(bob, here)}, Chat: []nodemsg.ChatEvent{{Player: bob, Name: "x", Chunk: here, Text: "hi"}}})
		came := until(near, func(f nodemsg.FromRegion) (nodemsg.ChunkDelta, bool) { return f.Chunks[0], len(f.Chunks[0].Enter) > 0 })
		if came.Enter[0] != body(bob, here) || len(came.Chat) != 1 {
			t.Errorf("news %+v", came)
		}
		pose := body(bob, here).Pose
		pose.Y = 11
		far.send(nodemsg.ToRegion{Moves: []nodemsg.BodyMove{{Player: bob, Pose: pose}}})
		moved := until(near, func(f nodemsg.FromRegion) (nodemsg.ChunkDelta, bool) { return f.Chunks[0], len(f.Chunks[0].Moves) > 0 })
		if moved.Moves[0].Pose != pose {
			t.Errorf("news %+v", moved)
		}
		if err := far.Close(); err != nil {
			t.Fatal(err)
		}
		left := until(near, func(f nodemsg.FromRegion) (nodemsg.ChunkDelta, bool) { return f.Chunks[0], len(f.Chunks[0].Leave) > 0 })
		if left.Leave[0] != bob {
			t.Errorf("news %+v", left)
		}
	})
}

// For movement a gateway gets at most one frame per tick, and no frame when nothing changes.
func TestTickLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newNetwork(t).start("A", newDisk()).follow(here)
		g.send(nodemsg.ToRegion{Enter: []nodemsg.Body{body(alice, here)}})
		g.state(here)
		g.silent(func(nodemsg.FromRegion) bool { return true })
		<-time.After(TickEvery / 2) // so that no tick happens while moves are being sent
		start, last := time.Now(), uint64(0)
		for step := range 20 {
			pose := body(alice, here).Pose
			for range 5 {
				pose.Y += float64(step + 1)
				g.send(nodemsg.ToRegion{Moves: []nodemsg.BodyMove{{Player: alice, Pose: pose}}})
			}
			frame := until(g, func(f nodemsg.FromRegion) (nodemsg.FromRegion, bool) { return f, true })
			moves := frame.Chunks[0].Moves
			if len(moves) != 1 || moves[0].Pose != pose || frame.Tick <= last {
				t.Fatalf("step %d: tick %d after %d, moves %+v", step, frame.Tick, last, moves)
			}
			last = frame.Tick
		}
		if took := time.Since(start); took < 19*TickEvery || took > 21*TickEvery {
			t.Errorf("20 ticks took %v", took)
		}
	})
}

// wander moves a body in the given number of ticks.
func wander(g gateway, ticks int) {
	g.send(nodemsg.ToRegion{Enter: []nodemsg.Body{body(alice, here)}})
	g.state(here)
	for step := range ticks {
		pose := body(alice, here).Pose
		pose.Y += float64(step % 7)
		g.send(nodemsg.ToRegion{Moves: []nodemsg.BodyMove{{Player: alice, Pose: pose}}})
		until(g, func(f nodemsg.FromRegion) (bool, bool) { return true, len(f.Chunks) > 0 && len(f.Chunks[0].Moves) > 0 })
	}
}

// A gateway that does not read its frames loses its link, gets the reason, and may come again.
func TestSlowGatewayIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newNetwork(t).start("A", newDisk())
		slow, quick := a.follow(here), a.follow(here)
		slow.send(nodemsg.ToRegion{Enter: []nodemsg.Body{body(bob, here)}})
		slow.state(here)
		wander(quick, linkBacklog+10)
		if why := slow.closed(); why == "" {
			t.Error("no reason is given")
		}
		if _, err := slow.Receive(t.Context()); !errors.Is(err, actor.ErrLinkClosed) {
			t.Errorf("after the end: %v", err)
		}
		if err := slow.Send(nodemsg.ToRegion{}); !errors.Is(err, actor.ErrLinkClosed) {
			t.Errorf("sending after the end: %v", err)
		}
		if s := a.follow(here).state(here); len(s.Bodies) != 1 || s.Bodies[0].Player != alice {
			t.Errorf("its player is still there: %+v", s.Bodies)
		}
	})
}

// A stream that accepts no more bytes is given up, whatever its other end does.
func TestStuckStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newNetwork(t).start("A", newDisk())
		stream := a.greeted("X")
		if _, err := wire.ReadFrame[nodemsg.FromRegion](bufio.NewReader(stream), wire.MaxFrame); err != nil {
			t.Fatal(err) // the greeting; nothing is read after it
		}
		write(t, stream, nodemsg.ToRegion{Watch: []grid.ChunkPos{here}, Enter: []nodemsg.Body{body(bob, here)}})
		ended := make(chan struct{})
		go func() { a.net.streams.Wait(); close(ended) }()
		select {
		case <-ended:
		case <-time.After(2 * 10 * time.Second):
			t.Fatal("the link still hangs")
		}
		if s := a.follow(here).state(here); len(s.Bodies) != 0 {
			t.Errorf("its player is still there: %+v", s.Bodies)
		}
	})
}

func write(t testing.TB, stream net.Conn, v interface{ Valid() error }) {
	t.Helper()
	if err := wire.WriteFrame(stream, v); err != nil {
		t.Fatal(err)
	}
}

// A region without gateways is unloaded, and comes back with every edit.
func TestUnloadAndReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newNetwork(t).start("A", newDisk())
		g := a.follow(here)
		for seq := range uint64(50) {
			if r := g.edit(stone(seq))[seq]; r.Refused != "" {
				t.Fatal(r)
			}
		}
		l := g.loop()
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		closed := time.Now()
		<-l.Done()
		if after := time.Since(closed); after < idleTicks*TickEvery || after > (idleTicks+10)*TickEvery {
			t.Errorf("unloaded after %v", after)
		}
		if all := a.Regions(t.Context()); len(all) != 0 {
			t.Errorf("still loaded: %+v", all)
		}
		g = a.follow(here)
		if s := g.state(here); len(s.Edits) != 50 {
			t.Errorf("%d edits of 50 came back", len(s.Edits))
		}
		if r := g.edit(stone(49))[49]; r.Refused != "" {
			t.Errorf("the retry of an edit from before: %+v", r)
		}
	})
}

// A gateway that comes while a region is being unloaded gets a working link.
func TestFollowWhileUnloading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newNetwork(t).start("A", newDisk())
		g := a.follow(here)
		if r := g.edit(stone(1))[1]; r.Refused != "" {
			t.Fatal(r)
		}
		l := g.loop()
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		for l.Enqueue(func(actor.Tx) {}) {
			<-time.After(time.Millisecond)
		} // it has decided to end; now all gateways come at once
		const n = 10
		links := make(chan Link, n)
		for range n {
			go func() {
				link, _, err := a.Follow(context.Background(), here)
				if err != nil {
					t.Error(err)
				}
				links <- link
			}()
		}
		for range n {
			g := gateway{<-links, t}
			if s := g.state(here); len(s.Edits) != 1 {
				t.Errorf("the land is %+v", s)
			}
			if err := g.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A gateway that comes in the last idle tick keeps the region loaded.
func TestFollowInTheLastTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newNetwork(t).start("A", newDisk())
		g := a.follow(here)
		g.state(here)
		l := g.loop()
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		held, goOn := make(chan struct{}), make(chan struct{})
		<-time.After((idleTicks - 1) * TickEvery)
		l.Enqueue(func(actor.Tx) {
			close(held)
			<-goOn
		})
		<-held
		comes := a.following(here)
		synctest.Wait()
		close(goOn)
		late := <-comes
		if late.state(here); late.loop() != l {
			t.Error("the region was loaded anew")
		}
	})
}

// An attach that is in the mailbox when the loop ends is answered: its caller does not wait for ever.
func TestAttachAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newNetwork(t).start("A", newDisk())
		g := a.follow(here)
		g.state(here)
		l := g.loop()
		held, stopping := make(chan struct{}), make(chan struct{})
		l.Enqueue(func(actor.Tx) { close(held); <-stopping }) // holds up the loop in its tick
		<-held
		refused := make(chan error)
		attach := func() {
			link, _, err := a.Follow(context.Background(), here)
			for err == nil {
				var frame nodemsg.FromRegion
				if frame, err = link.Receive(context.Background()); frame.Closed != "" {
					break
				}
			}
			refused <- err
		}
		go attach()
		synctest.Wait()
		go a.stop()
		synctest.Wait()
		go attach()
		synctest.Wait()
		close(stopping)
		if why := g.closed(); why == "" {
			t.Error("no reason is given")
		}
		for range 2 {
			if err := <-refused; errors.Is(err, actor.ErrLinkClosed) {
				t.Error("no reason is given to whoever came late")
			}
		}
	})
}

func TestHostileStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newNetwork(t).start("A", newDisk())
		good := a.follow(here)
		good.state(here)
		_, info, err := a.Follow(t.Context(), here)
		if err != nil {
			t.Fatal(err)
		}
		hello := nodemsg.Hello{Region: info.ID, Cell: info.Cell}
		other := grid.CellAt(grid.ChunkPos{X: 100}, grid.FoundingLabel)
		huge := binary.BigEndian.AppendUint32(nil, wire.MaxFrame+1)
		for name, c := range map[string]struct {
			hello   nodemsg.Hello // not sent if it is zero
			bytes   []byte
			refused bool // whether a reason is sent
		}{
			"silence":         {},
			"garbage":         {bytes: []byte("GET / HTTP/1.1\r\n\r\n")},
			"long hello":      {bytes: binary.BigEndian.AppendUint32(nil, wire.MaxHandshake+1)},
			"wrong cell":      {hello: nodemsg.Hello{Region: info.ID, Cell: other}, refused: true},
			"child cell":      {hello: nodemsg.Hello{Region: info.ID, Cell: grid.CellAt(here, 6)}, refused: true},
			"unknown region":  {hello: nodemsg.Hello{Region: 99, Cell: info.Cell}, refused: true},
			"unfounded":       {hello: nodemsg.Hello{Region: 99, Cell: other}, refused: true},
			"the catalog":     {hello: nodemsg.Hello{Region: 1, Cell: info.Cell}, refused: true},
			"oversized frame": {hello: hello, bytes: huge},
			"empty frame":     {hello: hello, bytes: []byte{0, 0, 0, 0}},
			"no message":      {hello: hello, bytes: []byte{0, 0, 0, 2, 0xff, 0xff}},
		} {
			stream := a.serve("X")
			if c.hello.Region != 0 {
				write(t, stream, c.hello)
			}
			if len(c.bytes) > 0 {
				// It may be refused before it is read completely.
				stream.Write(c.bytes) //nolint:errcheck // see above
			}
			in := bufio.NewReader(stream)
			frame, err := wire.ReadFrame[nodemsg.FromRegion](in, wire.MaxFrame)
			for err == nil && frame.Closed == "" { // a greeting, or the acceptance
				frame, err = wire.ReadFrame[nodemsg.FromRegion](in, wire.MaxFrame)
			}
			if c.refused != (err == nil && frame.Closed != "") {
				t.Errorf("%s: told %+v, %v", name, frame, err)
			}
			if _, err := in.ReadByte(); err == nil {
				t.Errorf("%s: the stream goes on", name)
			}
		}
		if all := a.Regions(t.Context()); len(all) != 1 || all[0].Links != 2 {
			t.Errorf("left behind: %+v", all)
		}
		groups, err := a.Replicas.Groups()
		if err != nil || len(groups) != 2 {
			t.Errorf("groups %v, %v: want the catalog and one region", groups, err)
		}
		if r := good.edit(stone(1))[1]; r.Refused != "" {
			t.Errorf("the good gateway: %+v", r)
		}
	})
}

// Messages about chunks of other regions have no effect, and the link stays open.
func TestOutOfCellMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		net.start("A", newDisk())
		g := net.start("B", newDisk()).follow(here)
		away := grid.ChunkPos{X: 100}
		g.send(nodemsg.ToRegion{
			Watch: []grid.ChunkPos{away}, Unwatch: []grid.ChunkPos{away}, Enter: []nodemsg.Body{body(alice, away)},
			Moves: []nodemsg.BodyMove{{Player: bob, Pose: body(bob, away).Pose}}, Leave: []player.ID{bob},
			Chat: []nodemsg.ChatEvent{{Player: bob, Name: "x", Chunk: away, Text: "hi"}},
		})
		edit := stone(1)
		edit.Pos = at(away, 1)
		if r := g.edit(edit)[1]; r.Refused != wire.RefusedOutOfWorld || r.Block != chunk.Air {
			t.Errorf("an edit elsewhere: %+v", r)
		}
		if s := g.state(here); len(s.Bodies)+len(s.Edits) > 0 {
			t.Errorf("the land is %+v", s)
		}
	})
}

// A region sends empty frames three times as often while a player edits.
func TestCalmRegionSendsFewAliveFrames(t *testing.T) {
	const aliveEvery, calmEvery, eagerFor = 250 * time.Millisecond, 750 * time.Millisecond, 5 * time.Second // as package transport has them
	synctest.Test(t, func(t *testing.T) {
		a := newNetwork(t).start("A", newDisk())
		stream := a.greeted("X")
		in := bufio.NewReader(stream)
		alive := func(until time.Duration) (n int) {
			for end := time.Now().Add(until); time.Now().Before(end); {
				f, err := wire.ReadFrame[nodemsg.FromRegion](in, wire.MaxFrame)
				if err != nil {
					t.Fatal(err)
				}
				if f.Alive {
					n++
				}
			}
			return n
		}
		alive(2 * time.Second) // the greeting, and the acceptance
		if n := alive(6 * calmEvery); n != 6 {
			t.Errorf("it said %d times that it lives in %v", n, 6*calmEvery)
		}
		write(t, stream, nodemsg.ToRegion{Watch: []grid.ChunkPos{here}, Edits: []nodemsg.Intent{stone(1)}})
		alive(time.Second) // the answer
		if n := alive(6 * aliveEvery); n != 6 {
			t.Errorf("after an edit it said %d times that it lives in %v", n, 6*aliveEvery)
		}
		alive(2 * eagerFor)
		if n := alive(6 * calmEvery); n != 6 {
			t.Errorf("long after the edit it said %d times that it lives in %v", n, 6*calmEvery)
		}
	})
}
