package bot

import (
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/voxelpopuli/voxeld/wire"
)

// stamps records when each player of this run last sent a stamped move, so that another player who receives that
// exact position can measure the delay. There is one stamp per player, replaced about once a second, and a receiver
// measures each stamp at most once: so the measurement stays cheap for large crowds.
type stamps struct {
	byPlayer sync.Map // string → *atomic.Pointer[stamp]
}

type stamp struct {
	x, z float64
	at   time.Time
}

func (s *stamps) of(player string) *atomic.Pointer[stamp] {
	p, _ := s.byPlayer.LoadOrStore(player, new(atomic.Pointer[stamp]))
	return p.(*atomic.Pointer[stamp])
}

// stampReader is one receiver's view of the stamps. It belongs to the goroutine that reads.
type stampReader struct {
	stamps *stamps
	meter  *meter
	known  map[string]*seenStamp
}

type seenStamp struct {
	now  *atomic.Pointer[stamp]
	last *stamp // already measured
}

func newStampReader(s *stamps, m *meter) *stampReader {
	return &stampReader{stamps: s, meter: m, known: make(map[string]*seenStamp)}
}

// observe measures the delay, if the position is the one in the player's stamp.
func (w *stampReader) observe(player string, x, z float64, now time.Time) {
	s := w.known[player]
	if s == nil {
		s = &seenStamp{now: w.stamps.of(player)}
		w.known[player] = s
	}
	st := s.now.Load()
	// Sessions in CBOR round positions to 1/32 of a block.
	const near = 1./64 + 1e-9
	if st == nil || st == s.last || math.Abs(st.x-x) > near || math.Abs(st.z-z) > near {
		return
	}
	s.last = st
	w.meter.seen(now.Sub(st.at))
}

// stamper writes one player's stamps. It belongs to the goroutine that moves the player.
type stamper struct {
	slot *atomic.Pointer[stamp]
	rng  *rand.Rand
	next time.Time
}

func newStamper(s *stamps, player string, rng *rand.Rand) *stamper {
	return &stamper{slot: s.of(player), rng: rng}
}

// write stamps a move that was sent at that time, if the last stamp is about a second old.
func (p *stamper) write(pose wire.Pose, at time.Time) {
	if at.Before(p.next) {
		return
	}
	p.next = at.Add(time.Second/2 + time.Duration(p.rng.Int64N(int64(time.Second))))
	p.slot.Store(&stamp{x: pose.X, z: pose.Z, at: at})
}
