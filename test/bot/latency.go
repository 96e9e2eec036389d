package bot

import (
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/voxelpopuli/voxeld/motion"
)

// latencyProbes holds the latest latency probe of each player of this run: a move and the time at which it was sent.
// Another player who receives exactly that position can measure the delay. A player's probe is replaced about once a
// second, and a receiver measures each probe at most once: so the measurement stays cheap for large crowds.
type latencyProbes struct {
	byPlayer sync.Map // string → *atomic.Pointer[latencyProbe]
}

type latencyProbe struct {
	x, z float64
	at   time.Time
}

func (s *latencyProbes) slot(player string) *atomic.Pointer[latencyProbe] {
	p, _ := s.byPlayer.LoadOrStore(player, new(atomic.Pointer[latencyProbe]))
	return p.(*atomic.Pointer[latencyProbe])
}

// probeReader is one receiver's view of the probes. It belongs to the goroutine that reads.
type probeReader struct {
	all   *latencyProbes
	meter *meter
	known map[string]*seenProbe
}

type seenProbe struct {
	now  *atomic.Pointer[latencyProbe]
	last *latencyProbe // already measured
}

func newProbeReader(s *latencyProbes, m *meter) *probeReader {
	return &probeReader{all: s, meter: m, known: make(map[string]*seenProbe)}
}

// observe measures the delay, if the position is that of the player's probe.
func (w *probeReader) observe(player string, x, z float64, now time.Time) {
	s := w.known[player]
	if s == nil {
		s = &seenProbe{now: w.all.slot(player)}
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

// probeSender replaces one player's probe. It belongs to the goroutine that moves the player.
type probeSender struct {
	slot *atomic.Pointer[latencyProbe]
	rng  *rand.Rand
	next time.Time
}

func newProbeSender(s *latencyProbes, player string, rng *rand.Rand) *probeSender {
	return &probeSender{slot: s.slot(player), rng: rng}
}

// write makes a move that was sent at that time the probe, if the last probe is about a second old.
func (p *probeSender) write(pose motion.Pose, at time.Time) {
	if at.Before(p.next) {
		return
	}
	p.next = at.Add(time.Second/2 + time.Duration(p.rng.Int64N(int64(time.Second))))
	p.slot.Store(&latencyProbe{x: pose.X, z: pose.Z, at: at})
}
