package gameserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/codec"
	"github.com/voxelpopuli/voxeld/gameserver/outbox"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// Of 500 clients 100 stop reading. What the others are sent, tick for tick, is the same to the byte as if those read; for those
// that do not read nothing is encoded or kept; and when one reads again, one frame contains the full state.
func TestStalledSessionsCostTheOthersNothing(t *testing.T) {
	const players, stalled, ticks = 500, 100, 60
	release := make(chan struct{})
	var stuck sync.WaitGroup
	frames := func(stall bool) (all [][]byte, h *crowdScene, sessions []*session) {
		h = newCrowdScene(players, jitter)
		desks := make([]outbox.Writer, players)
		var sent [players]bytes.Buffer
		for i := range players {
			sessions = append(sessions, h.addSession(i))
		}
		if err := h.begin(); err != nil {
			t.Fatal(err)
		}
		for tick := range ticks {
			for i, s := range sessions {
				s.place.moveTo(h.crowd.bodies[i].Pose)
			}
			if err := h.tick(sessions); err != nil {
				t.Fatal(err)
			}
			for i, s := range sessions {
				if stall && i < stalled && tick >= 5 {
					if tick == 5 { // its writer takes this and cannot write it
						writing := make(chan struct{})
						stuck.Go(func() {
							if err := desks[i].WriteNext(s.out, sinkFunc(func([]byte) error { close(writing); <-release; return nil })); err != nil {
								t.Error(err)
							}
						})
						<-writing
					}
					continue
				}
				if s.out.Woken() {
					if err := desks[i].WriteNext(s.out, sinkFunc(func(data []byte) error { sent[i].Write(data); return nil })); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		for i := range sent {
			all = append(all, sent[i].Bytes())
		}
		return all, h, sessions
	}
	calm, _, _ := frames(false)
	hurt, h, sessions := frames(true)
	for i := stalled; i < players; i++ {
		if !bytes.Equal(calm[i], hurt[i]) {
			t.Fatalf("session %d was sent %d bytes, and %d beside stalled ones", i, len(calm[i]), len(hurt[i]))
		}
	}
	for _, s := range sessions[:stalled] {
		if n := s.out.Backlog(); n > 0 {
			t.Fatalf("%d bytes wait for a session that does not read", n)
		}
	}
	s, view := sessions[0], newAvatarView(t)
	before := h.g.interest.Entering(grid.ChunkPos{}, h.chunk.Occupants()) // as the client had it before
	if err := view.Send(sessionmsg.AppendDelta(sessionmsg.AppendTick(nil, h.g.interest.ix.Tick()), before)); err != nil {
		t.Fatal(err)
	}
	close(release)
	stuck.Wait()
	if err := h.tick(sessions); err != nil {
		t.Fatal(err)
	}
	var d outbox.Writer
	if err := d.WriteNext(s.out, view); err != nil {
		t.Fatal(err)
	}
	if view.frames != 2 || view.records != players {
		t.Errorf("%d frames with %d avatars, want one with all %d", view.frames-1, view.records, players)
	}
	far := 132. / sessionmsg.TickVelocityUnit // no cell of the chunk is in a coarser tier than one with 100/128 block, and 32/128 more is tolerated for a while
	places := view.places(h.g.interest.ix.Tick())
	for _, b := range h.crowd.bodies {
		x, z := places[b.Player].X, places[b.Player].Z
		p := h.chunk.Occupants().Of(b.Player).Pose
		if math.Abs(x-p.X) > far || math.Abs(z-p.Z) > far {
			t.Fatalf("%s is shown at %v, %v, and is at %v, %v", b.Name, x, z, p.X, p.Z)
		}
	}
}

// A JSON session that does not read gets no moves meanwhile, but everything else; when it reads again one piece contains the
// places of everybody.
func TestLateJSONSessionGetsTheNewestMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const players, ticks, edits = 50, 200, 20
		h := newCrowdScene(players, jitter)
		s := &session{g: h.g, out: outbox.New(func() {}), body: h.crowd.bodies[0], codec: codec.JSON}
		s.out.Owner = s
		showChunk(h.g, grid.ChunkPos{}, s)
		discard(s.out)
		reads := make(chan struct{})
		var got []sessionmsg.Piece
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer s.out.MarkClosed()
			err := s.out.Drain(sinkFunc(func(data []byte) error {
				<-reads
				m, err := sessionmsg.DecodeServer(data)
				if frame, ok := m.(sessionmsg.Frame); ok {
					for _, raw := range frame.Chunks {
						var p sessionmsg.Piece
						err = errors.Join(err, json.Unmarshal(raw, &p))
						got = append(got, p)
					}
				}
				return err
			}))
			if !errors.Is(err, outbox.ErrEnded) {
				t.Error(err)
			}
		}()
		if err := h.begin(); err != nil {
			t.Fatal(err)
		}
		for tick := range ticks {
			h.frame.Chunks[0].Blocks = nil
			if tick%(ticks/edits) == 0 {
				h.frame.Chunks[0].Blocks = []nodemsg.BlockAt{{At: chunk.Index(tick), Block: chunk.Stone}}
			}
			pass(region.TickEvery)
			if err := h.tick(nil); err != nil {
				t.Fatal(err)
			}
		}
		waits := s.out.Backlog()
		if most := (outbox.LateTicks + 2) * players * 150; waits > most+edits*200 {
			t.Errorf("%d bytes wait for a session that does not read, want a few ticks' %d and the edits", waits, most)
		}
		close(reads)
		pass(time.Second)
		blocks, moves, at := 0, 0, make(map[string]motion.Pose)
		for _, p := range got {
			blocks, moves = blocks+len(p.Blocks), moves+len(p.Moves)
			for _, m := range p.Moves {
				at[m.Player] = m.Pose
			}
		}
		if blocks != edits {
			t.Errorf("%d blocks were sent, want %d", blocks, edits)
		}
		if most := (outbox.LateTicks + 3) * players; moves > most {
			t.Errorf("%d moves were sent, want at most %d", moves, most)
		}
		for _, b := range h.chunk.Occupants() {
			if at[b.Player.String()] != b.Pose {
				t.Fatalf("%s is shown at %+v, and is at %+v", b.Name, at[b.Player.String()], b.Pose)
			}
		}
		s.out.End(nil)
		<-done
	})
}

// sinkFunc is a sink that does not buffer.
type sinkFunc func([]byte) error

func (f sinkFunc) Send(data []byte) error { return f(data) }
func (f sinkFunc) Flush() error           { return nil }

func TestLastWordsAreShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		here, there := net.Pipe() // whose other end never reads
		defer here.Close()
		line := &streamConn{Conn: there, framing: lines{}}
		o := outbox.New(line.cut)
		began := time.Now()
		o.Put([]byte("hello"))
		o.End(sessionmsg.Notice{Text: "bye"})
		r.g.runWriter(t.Context(), o, line)
		if took := time.Since(began); took != outbox.CloseTimeout {
			t.Errorf("took %v, want %v", took, outbox.CloseTimeout)
		}
	})
}

// Clients that do not read do not affect the others: their connections end, and nobody else misses anything.
func TestStalledClientsHurtNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		const all, stalled = 50, 10
		var players []*client
		for i := range all {
			name := fmt.Sprintf("p%d", i)
			if i%(all/stalled) == 0 { // joins, and never reads a byte
				c := newClient(t, r.dial())
				c.send(sessionmsg.Join{Version: sessionmsg.SessionVersion, Name: name, View: 1, Encoding: "json"})
				continue
			}
			players = append(players, r.join(name, 1))
		}
		if got := len(r.g.Online()); got != all {
			t.Fatalf("%d players online, want %d", got, all)
		}
		place := under(players[0])
		for i := range 40 {
			for n, c := range players {
				c.goTo(.5+float64(n)*.1, 25, .5+float64(i)*.05)
			}
			before := time.Now()
			seq := players[i%len(players)].put(place, 11+blockOf(i))
			pass(100 * time.Millisecond)
			if waited := time.Since(before); waited != 100*time.Millisecond {
				t.Fatalf("the players waited %v", waited)
			}
			if ack := players[i%len(players)].answer(seq); ack.Error != "" {
				t.Fatalf("edit is refused: %+v", ack)
			}
		}
		pass(writeTimeout)
		if got := len(r.g.Online()); got != all-stalled {
			t.Errorf("%d players online, want %d", got, all-stalled)
		}
		for n, c := range players {
			c.sees(r.lands, 1)
			if len(c.mu.avatars) != all-stalled {
				t.Errorf("player %d sees %d avatars, want %d", n, len(c.mu.avatars), all-stalled)
			}
			a := c.mu.avatars[players[0].mu.welcome.Player]
			if want := .5 + 39*.05; math.Abs(a.Z-want) > halfUnit {
				t.Errorf("player %d sees the first one at %v, want %v", n, a.Z, want)
			}
		}
	})
}

// slowLine is a connection whose other end reads 50 KB a second.
type slowLine struct{ net.Conn }

func (l slowLine) Read(p []byte) (int, error) {
	time.Sleep(20 * time.Millisecond)
	return l.Conn.Read(p[:min(len(p), 1000)])
}

// A player on a slow line who is brought elsewhere gets the land there, without doing anything: not after the land that they have
// left, and not only when something else is sent.
func TestLandArrivesAfterATeleport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const view, all = 6, (2*6 + 1) * (2*6 + 1)
		world := newPeople()
		r := newHarness(t, func(o *Options) { o.People, o.Admission.MaxView = world, view })
		world.operate(t, "setwarp far 5000 26 5000")
		ann := newClient(t, slowLine{r.dial()})
		ann.open(sessionmsg.Join{Version: sessionmsg.SessionVersion, Name: "ann", View: view, Encoding: r.encoding})
		pass(1500 * time.Millisecond)
		before := 0
		ann.look(func() { before = ann.mu.wholes })
		if before == 0 || before > all/2 {
			t.Fatalf("%d of %d chunks have arrived before the teleport", before, all)
		}
		ann.send(sessionmsg.Command{Text: "warp far"})
		pass(silence - 5*time.Second) // she sends nothing
		ann.sees(r.lands, view)
		ann.look(func() {
			if ann.mu.reason != teleported || ann.mu.chunks[grid.Pos{X: 5000, Z: 5000}.Chunk()] == nil {
				t.Errorf("she was not brought there: reason %q", ann.mu.reason)
			}
			if old := ann.mu.wholes - before - all; old > all/4 {
				t.Errorf("%d chunks of the land that she has left were sent after the command", old)
			}
		})
	})
}
