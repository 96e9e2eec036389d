package actor

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// script is a group whose deliveries a test writes.
type script struct {
	ready    chan struct{}
	proposed [][]byte
	full     error // returned by Propose
	mail     []replica.Delivery
	index    uint64
	applied  uint64
	closed   bool
	land     *land // everything is committed in its newest term

	campaigns int
}

func (s *script) Propose(entry []byte) error {
	if s.full == nil {
		s.proposed = append(s.proposed, entry)
	}
	return s.full
}

func (s *script) Ready() <-chan struct{} { return s.ready }

func (s *script) Dequeue() []replica.Delivery {
	taken := s.mail
	s.mail = nil
	return taken
}

func (s *script) ReportApplied(index uint64, _ []kv.Write) { s.applied = index }

func (s *script) Campaign() { s.campaigns++ }

func (s *script) Close() error {
	s.closed = true
	return nil
}

// commit commits everything that is proposed.
func (s *script) commit() {
	for _, entry := range s.proposed {
		s.index++
		s.mail = append(s.mail, replica.Committed{Index: s.index, Term: s.land.edits.term, Entry: entry})
	}
	s.proposed = nil
}

var (
	here  = grid.ChunkPos{X: 1, Z: 1}
	alice = player.GuestID("alice")
	bob   = player.GuestID("bob")
)

func at(pos grid.ChunkPos, y int32) grid.Pos {
	p := pos.Origin()
	return grid.Pos{X: p.X + 3, Y: 1 + y, Z: p.Z + 4}
}

func body(id player.ID, pos grid.ChunkPos) nodemsg.Body {
	p := at(pos, 10)
	return nodemsg.Body{Player: id, Name: "x", Pose: motion.Pose{X: float64(p.X), Y: 10, Z: float64(p.Z)}}
}

// guest returns an edit of a guest.
func guest(name string, seq uint64, pos grid.Pos, block chunk.Block) nodemsg.Intent {
	return nodemsg.Intent{Player: player.GuestID(name), Proof: nodemsg.Proof{Name: name}, Seq: seq, Pos: pos, Block: block}
}

func stone(seq uint64) nodemsg.Intent {
	return guest("alice", seq, at(here, int32(seq)%60), chunk.Stone)
}

// scripted returns a land that the test steps itself.
func scripted() (*land, *script) {
	g := &script{index: 1, mail: []replica.Delivery{replica.Leadership{Leader: "A", Self: true, Term: 2}}}
	cell := grid.CellAt(here, grid.FoundingLabel)
	base := Options{
		Self: nodemsg.Member{Peer: "A"}, Logger: slog.New(slog.DiscardHandler), Metrics: NewMetrics(prometheus.NewRegistry()),
		Changed: func(nodemsg.Region) {},
	}
	o := LandOptions{
		Hash: func(pos grid.ChunkPos, found func([32]byte, *Fault)) {
			found([32]byte{byte(pos.X), byte(pos.Z), 1}, nil)
		},
		Pinned: func([]nodemsg.BaseOf) {},
	}
	l := NewLand(base, o, nodemsg.Region{ID: 7, Cell: cell}, g, world.NewLand(7, cell, 64), false).land
	g.land = l
	l.step()
	return l, g
}

func newLink(l *land) *Subscription {
	link := l.handle.Subscribe("peer", false)
	l.runInbox()
	return link
}

// commitEdit has the land commit an edit, or refuse it, and returns why.
func commitEdit(t *testing.T, l *land, g *script, link *Subscription, edit nodemsg.Intent) (refused string) {
	t.Helper()
	send(l, link, nodemsg.ToRegion{Edits: []nodemsg.Intent{edit}})
	steps(l)
	g.commit()
	l.step()
	results, _ := received(link)
	if len(results) != 1 {
		t.Fatalf("%d results", len(results))
	}
	return results[0].Refused
}

// send has the land handle a message from the link.
func send(l *land, link *Subscription, msg nodemsg.ToRegion) {
	if link.Send(msg) == nil {
		l.runInbox()
	}
}

// drain returns everything that waits at the link's end, and reports whether the link is still open.
func drain(link *Subscription) (frames []nodemsg.FromRegion, open bool) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for {
		frame, err := link.Receive(ended)
		if err != nil {
			return frames, !errors.Is(err, ErrLinkClosed)
		}
		frames = append(frames, frame)
	}
}

// received returns everything that the link has received.
func received(link *Subscription) (results []nodemsg.EditResult, closed string) {
	frames, _ := drain(link)
	for _, f := range frames {
		results = append(results, f.Results...)
		if f.Closed != "" {
			closed = f.Closed
		}
	}
	return results, closed
}

// steps lets the loop propose what has come in: one tick requests the terrain hash, the next one has it.
func steps(l *land) {
	l.step()
	l.step()
}

func TestNewTermProposesAgain(t *testing.T) {
	l, g := scripted()
	link := newLink(l)
	send(l, link, nodemsg.ToRegion{Edits: []nodemsg.Intent{stone(1), stone(2)}})
	steps(l)
	if len(g.proposed) != 1 {
		t.Fatalf("%d entries proposed", len(g.proposed))
	}
	g.proposed = nil // lost with the old term
	send(l, link, nodemsg.ToRegion{Edits: []nodemsg.Intent{stone(3)}})
	g.full = replica.ErrNotLeader
	l.step()
	g.full = nil
	cause := errors.New("disk full")
	g.mail = []replica.Delivery{replica.Leadership{Term: 2, Cause: cause}}
	l.step()
	if r, _ := received(link); len(r) != 1 || r[0].Seq != 3 || r[0].Refused != wire.RefusedUnavailable {
		t.Errorf("at the stall: %+v, want edit 3 refused, and the others in doubt", r)
	}
	g.mail = []replica.Delivery{replica.Leadership{Term: 2}, replica.Leadership{Self: true, Term: 3}, replica.Leadership{Term: 3, Cause: cause}}
	l.step() // another stall before they are proposed: still in doubt, so still not refused
	if r, _ := received(link); len(r) != 0 {
		t.Errorf("at the second stall: %+v", r)
	}
	g.mail = []replica.Delivery{replica.Leadership{Term: 3}, replica.Leadership{Self: true, Term: 4}}
	l.step()
	g.commit()
	l.step()
	r, closed := received(link)
	if len(r) != 2 || r[0].Seq != 1 || r[1].Seq != 2 || r[0].Refused+r[1].Refused+closed != "" {
		t.Errorf("in the end: %+v %q", r, closed)
	}
	if !l.unloadable() || len(l.edits.bases) != 0 {
		t.Errorf("left: %d pending, %d waiting, %d bases", len(l.edits.pending), len(l.edits.waiting), len(l.edits.bases))
	}
}

func TestLostLeadershipDismisses(t *testing.T) {
	l, g := scripted()
	link := newLink(l)
	send(l, link, nodemsg.ToRegion{Edits: []nodemsg.Intent{stone(1)}})
	steps(l)
	g.mail = []replica.Delivery{replica.Leadership{Leader: "B", Term: 3}}
	l.step()
	if _, closed := received(link); closed == "" {
		t.Error("the gateway gets no reason")
	}
	if !l.unloadable() || l.hub.len() != 0 {
		t.Errorf("left: %d pending, %d waiting, %d proposed, %d subscribers", len(l.edits.pending), len(l.edits.waiting), len(l.edits.proposed), l.hub.len())
	}
	g.commit() // it had reached the new leader
	l.step()
	if l.contents.land.Edits() != 1 || g.applied != g.index {
		t.Errorf("%d edits, applied up to %d of %d", l.contents.land.Edits(), g.applied, g.index)
	}
}

func TestFailedGroupEndsTheLoop(t *testing.T) {
	l, g := scripted()
	link := newLink(l)
	g.mail = []replica.Delivery{replica.Failed{Err: errors.New("damaged")}}
	l.step()
	if l.failure == nil {
		t.Fatal("the loop goes on")
	}
	l.core.end("the region's storage failed")
	if _, closed := received(link); closed == "" || !g.closed {
		t.Errorf("closed %v, told %q", g.closed, closed)
	}
}

// A snapshot whose land cannot be read ends the loop. Nothing of the previous land overwrites the snapshot's rows:
// neither unreported rows, nor results of the entries that follow.
func TestUnreadableSnapshotIsLeftAlone(t *testing.T) {
	l, g := scripted()
	g.mail = []replica.Delivery{replica.Leadership{Leader: "B", Term: 3}}
	l.step()
	l.Reload = func(nodemsg.Region) (*world.Land, error) { return nil, errors.New("a flipped bit") }
	entry := func(seq uint64) []byte {
		return world.Batch{Time: 1e12, Pins: []world.Pin{{Chunk: here}}, Edits: []nodemsg.Intent{stone(seq)}}.Encode()
	}
	g.mail = []replica.Delivery{
		replica.Committed{Index: 5, Term: 3, Entry: entry(1)},
		replica.Restored{Index: 9},
		replica.Committed{Index: 10, Term: 3, Entry: entry(2)},
	}
	before := g.applied
	l.step()
	l.report() // as isolate does
	if l.failure == nil || g.applied != before {
		t.Errorf("failed %v, and entry %d was reported", l.failure != nil, g.applied)
	}
}

// An overloaded group accepts edits later, in order, and none is lost.
func TestOverloadedGroup(t *testing.T) {
	l, g := scripted()
	link := newLink(l)
	g.full = replica.ErrOverloaded
	var all []nodemsg.Intent
	for seq := range uint64(maxBatch + 50) {
		all = append(all, guest(fmt.Sprint("guest", seq), seq, stone(seq).Pos, chunk.Stone))
	}
	send(l, link, nodemsg.ToRegion{Edits: all})
	steps(l)
	g.full = nil
	for range 2 { // the rest goes when the first entry is committed
		l.step()
		if len(g.proposed) != 1 {
			t.Fatalf("%d entries proposed", len(g.proposed))
		}
		g.commit()
	}
	l.step()
	results, _ := received(link)
	if len(results) != len(all) {
		t.Fatalf("%d results of %d", len(results), len(all))
	}
	for i, r := range results {
		if r.Seq != uint64(i) || r.Refused != "" {
			t.Fatalf("result %d: %+v", i, r)
		}
	}
}

// A gateway cannot make the region queue more results for it than the bound.
func TestEditFlood(t *testing.T) {
	l, g := scripted()
	link := newLink(l)
	g.full = replica.ErrOverloaded
	closed, seq := "", uint64(0)
	for range 50 {
		edits := make([]nodemsg.Intent, wire.MaxBodies)
		for i := range edits {
			seq++
			edits[i] = stone(seq)
		}
		send(l, link, nodemsg.ToRegion{Edits: edits})
		send(l, link, nodemsg.ToRegion{Edits: edits})
		l.step()
		frames, _ := drain(link)
		for _, f := range frames {
			if err := f.Valid(); err != nil {
				t.Fatal(err)
			}
			closed = f.Closed
		}
		if len(l.edits.waiting) > maxWaiting || len(l.edits.pending) > maxWaiting {
			t.Fatalf("%d waiting, %d pending", len(l.edits.waiting), len(l.edits.pending))
		}
		if closed != "" {
			return
		}
	}
	t.Error("the flood goes on")
}

// Whatever valid message a gateway sends: there is no panic, every frame is valid, every edit is answered once, and a
// gateway that leaves leaves nothing behind.
func FuzzReceive(f *testing.F) {
	seed := func(msg nodemsg.ToRegion) {
		var b bytes.Buffer
		if err := wire.WriteFrame(&b, msg); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes(), b.Bytes())
	}
	seed(nodemsg.ToRegion{})
	seed(nodemsg.ToRegion{
		Watch: []grid.ChunkPos{here, {X: 500}}, Enter: []nodemsg.Body{body(alice, here)}, Leave: []player.ID{alice},
		Moves: []nodemsg.BodyMove{{Player: alice, Pose: body(alice, grid.ChunkPos{X: 2}).Pose}},
		Edits: []nodemsg.Intent{stone(1), stone(1), guest("bob", 1, at(grid.ChunkPos{X: 99}, 511), chunk.Dirt)},
		Chat:  []nodemsg.ChatEvent{{Player: bob, Name: "x", Chunk: here, Text: "hi"}},
	})
	f.Fuzz(func(t *testing.T, first, second []byte) {
		l, g := scripted()
		watcher, link := newLink(l), newLink(l)
		send(l, watcher, nodemsg.ToRegion{Watch: []grid.ChunkPos{here}})
		asked, results := make(map[edit]bool), 0
		for _, data := range [][]byte{first, second} {
			msg, err := wire.ReadFrame[nodemsg.ToRegion](bufio.NewReader(bytes.NewReader(data)), wire.MaxFrame)
			if err != nil {
				continue
			}
			for _, e := range msg.Edits {
				asked[edit{e.Player, e.Seq}] = true
			}
			send(l, link, msg)
			steps(l)
			g.commit()
			steps(l)
		}
		for len(g.proposed) > 0 { // one entry at a time
			g.commit()
			steps(l)
		}
		for _, end := range []*Subscription{watcher, link} {
			frames, _ := drain(end)
			for _, frame := range frames {
				if err := frame.Valid(); err != nil {
					t.Fatalf("frame %+v: %v", frame, err)
				}
				for _, r := range frame.Results {
					results++
					if !asked[edit{r.Player, r.Seq}] {
						t.Fatalf("nobody asked for %+v", r)
					}
				}
			}
		}
		if results < len(asked) || !l.unloadable() {
			t.Fatalf("%d results for %d edits, %d pending", results, len(asked), len(l.edits.pending))
		}
		link.Close()
		l.runInbox()
		if l.contents.crowd.Len() != 0 || l.hub.len() != 1 {
			t.Fatalf("left behind: %d bodies, %d subscribers", l.contents.crowd.Len(), l.hub.len())
		}
	})
}

// The leader takes no edit of a new place in a chunk that is full, whatever a gateway sends; places that are edited can
// be changed.
func TestFullChunkTakesNoNewPlace(t *testing.T) {
	l, g := scripted()
	l.contents.land = world.NewLand(7, grid.CellAt(here, grid.FoundingLabel), 1024)
	link := newLink(l)
	seq := uint64(time.Now().UnixMicro())
	edit := func(at chunk.Index) string {
		t.Helper()
		seq++
		return commitEdit(t, l, g, link, guest("alice", seq, at.Pos(here), chunk.Stone))
	}
	const layer = 32 * 32                      // the first is bedrock
	if refused := edit(layer); refused != "" { // pins the chunk
		t.Fatal(refused)
	}
	for first := uint64(0); first < world.MaxEdits; first += 4096 {
		batch := world.Batch{Time: 1e12}
		for i := range uint64(4096) {
			batch.Edits = append(batch.Edits, guest("bob", first+i+1, chunk.Index(first+i).Pos(here), chunk.Stone))
		}
		if _, err := l.contents.land.Apply(1, batch.Encode()); err != nil {
			t.Fatal(err)
		}
	}
	if refused := edit(world.MaxEdits); refused != wire.RefusedFull {
		t.Errorf("a new place: %q", refused)
	}
	if refused := edit(layer + 1); refused != "" {
		t.Errorf("an edited place: %q", refused)
	}
}
