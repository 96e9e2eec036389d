package gameserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/codec"
	"github.com/voxelpopuli/voxeld/gameserver/mirror"
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
	frames := func(stall bool) (all [][]byte, h *crowdScene, sessions []*session) {
		h = newCrowdScene(players, jitter)
		desks := make([]writeBuffers, players)
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
					if tick == 5 { // it accepts this and cannot write it
						s.out.next(batch{})
					}
					continue
				}
				if len(s.out.wake) > 0 {
					if err := desks[i].clear(s.out, sinkFunc(func(data []byte) error { sent[i].Write(data); return nil })); err != nil {
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
		if n := len(s.out.mu.motion) + s.out.mu.bytes; n > 0 || !s.out.mu.missed {
			t.Fatalf("%d bytes wait for a session that does not read", n)
		}
	}
	s, view := sessions[0], newAvatarView(t)
	before := h.g.interest.Entering(grid.ChunkPos{}, h.chunk.Occupants()) // as the client had it before
	if err := view.write(sessionmsg.AppendDelta(sessionmsg.AppendTick(nil, h.g.interest.ix.Tick()), before)); err != nil {
		t.Fatal(err)
	}
	s.out.idle()
	if err := h.tick(sessions); err != nil {
		t.Fatal(err)
	}
	var d writeBuffers
	if err := d.clear(s.out, view); err != nil {
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

// Whole chunks wait until the client has accepted the earlier ones; motion does not wait behind them.
func TestLandDelaysNothing(t *testing.T) {
	o := newOutbox(func() {})
	defer o.markClosed()
	o.setCodec(codec.CBOR)
	chunkBytes := make([]byte, 5000)
	sent := 0
	for o.hasRoom(&mirror.Chunk{}) {
		o.putChunk(chunkBytes)
		sent++
	}
	if got := sent * len(chunkBytes); got < chunkWindow || got > chunkWindow+len(chunkBytes) {
		t.Fatalf("%d bytes of land are on their way, want %d", got, chunkWindow)
	}
	for range 20 {
		o.hasRoom(&mirror.Chunk{})
	}
	if o.refill() != nil {
		t.Error("more land before the first is taken")
	}
	o.putMotion(1, func(dst []byte, _ bool) []byte { return sessionmsg.AppendMotionChunk(dst, grid.ChunkPos{}) })
	var d writeBuffers
	before := 0
	if err := d.clear(o, sinkFunc(func(data []byte) error {
		if data[0] != sessionmsg.TickFrame {
			before += len(data)
		}
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	if before > chunkWindow+len(chunkBytes) {
		t.Errorf("%d bytes of land before the motion", before)
	}
	if got := len(o.refill()); got != refillChunks {
		t.Errorf("%d chunks are asked for again, want %d", got, refillChunks)
	}
}

// A JSON session that does not read gets no moves meanwhile, but everything else; when it reads again one piece contains the
// places of everybody.
func TestLateJSONSessionGetsTheNewestMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const players, ticks, edits = 50, 200, 20
		h := newCrowdScene(players, jitter)
		s := &session{g: h.g, out: newOutbox(func() {}), body: h.crowd.bodies[0], codec: codec.JSON}
		s.out.owner = s
		showChunk(h.g, grid.ChunkPos{}, s)
		discard(s.out)
		reads := make(chan struct{})
		var got []sessionmsg.Piece
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer s.out.markClosed()
			err := s.out.drain(sinkFunc(func(data []byte) error {
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
			if !errors.Is(err, errEnded) {
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
		s.out.mu.Lock()
		waits := s.out.mu.bytes
		s.out.mu.Unlock()
		if most := (lateTicks + 2) * players * 150; waits > most+edits*200 {
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
		if most := (lateTicks + 3) * players; moves > most {
			t.Errorf("%d moves were sent, want at most %d", moves, most)
		}
		for _, b := range h.chunk.Occupants() {
			if at[b.Player.String()] != b.Pose {
				t.Fatalf("%s is shown at %+v, and is at %+v", b.Name, at[b.Player.String()], b.Pose)
			}
		}
		s.out.end(nil)
		<-done
	})
}
