package psense

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/voxelpopuli/voxeld/overlay"
)

var strollSteps = flag.Int("overlay.steps", 100_000, "steps that each walk takes, all its machines together")

// stroll is a small crowd on a field. Messages are lost, duplicated, delayed and reordered, and from time to time the
// crowd is partitioned in two.
type stroll struct {
	t         *testing.T
	rng       *rand.Rand
	machines  []overlay.Machine // avatars first
	avatars   int
	at, v     []overlay.Point
	flying    [][]overlay.Message // by rounds until arrival
	round     uint32
	split     bool // messages between even and odd ids are lost
	severe    bool
	delivered map[[2]overlay.ID]uint32 // the newest round of an origin that was delivered to a receiver's game
	check     func(overlay.Machine)
}

const (
	strollField  = 500.
	strollVision = 120.
	strollDelay  = 3
)

func newStroll(t *testing.T, seed uint64, avatars int, machine func(overlay.ID, *rand.Rand) overlay.Machine) *stroll {
	w := &stroll{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), avatars: avatars, flying: make([][]overlay.Message, strollDelay+1),
		delivered: map[[2]overlay.ID]uint32{}, check: func(overlay.Machine) {},
		round: math.MaxUint32 - 300, // the round counter wraps around during the walk
	}
	for i := range avatars {
		w.machines = append(w.machines, machine(overlay.ID(i), rand.New(rand.NewPCG(seed, uint64(i)+2))))
		w.at = append(w.at, overlay.Point{X: w.rng.Float64() * strollField, Z: w.rng.Float64() * strollField})
		w.v = append(w.v, overlay.Point{})
	}
	for i := 1; i < avatars; i++ {
		old := w.rng.IntN(i)
		w.machines[i].Introduce([]overlay.Update{{Origin: overlay.ID(old), Round: w.round, At: w.at[old]}})
	}
	return w
}

func (w *stroll) index(id overlay.ID) int {
	if id.Server() {
		return w.avatars + int(id-overlay.FirstServer)
	}
	return int(id)
}

func (w *stroll) step() {
	w.round++
	arrived := w.flying[0]
	w.flying = append(w.flying[1:], nil)
	inboxes := make([][]overlay.Message, len(w.machines))
	for _, m := range arrived {
		if i := w.index(m.To); i >= 0 && i < len(inboxes) {
			inboxes[i] = append(inboxes[i], m)
		}
	}
	for i, m := range w.machines {
		in := overlay.Input{Round: w.round, Inbox: inboxes[i]}
		if i < w.avatars {
			w.move(i)
			in.At, in.Velocity, in.GameData = w.at[i], w.v[i], uint64(i)
		}
		w.rng.Shuffle(len(in.Inbox), func(i, j int) { in.Inbox[i], in.Inbox[j] = in.Inbox[j], in.Inbox[i] })
		if w.severe && w.rng.Float64() < .02 {
			in.Inbox = append(in.Inbox, w.nonsense(m.ID()))
		}
		var out overlay.Output
		m.Step(&in, &out)
		w.post(&out)
		w.recordDelivered(m.ID(), &out)
		w.check(m)
	}
}

func (w *stroll) move(i int) {
	if w.rng.Float64() < .1 {
		a := w.rng.Float64() * 2 * math.Pi
		w.v[i] = overlay.Point{X: 4 * math.Cos(a), Z: 4 * math.Sin(a)}
	}
	next := w.at[i].Add(w.v[i])
	if next.X < 0 || next.Z < 0 || next.X > strollField || next.Z > strollField {
		w.v[i] = overlay.Point{}
		return
	}
	w.at[i] = next
}

func (w *stroll) post(out *overlay.Output) {
	if len(out.Messages) > 20*len(w.machines) {
		w.t.Fatalf("round %d: %d messages of one machine", w.round, len(out.Messages))
	}
	for _, m := range out.Messages {
		if m.Bytes <= 0 || m.To == m.From {
			w.t.Fatalf("round %d: a message %+v", w.round, m)
		}
		if w.split && !m.To.Server() && !m.From.Server() && m.To%2 != m.From%2 {
			continue
		}
		copies := 1
		if w.severe {
			switch p := w.rng.Float64(); {
			case p < .1:
				copies = 0
			case p < .2:
				copies = 2
			}
		}
		for range copies {
			delay := 0
			if w.severe && w.rng.Float64() < .2 {
				delay = 1 + w.rng.IntN(strollDelay-1)
			}
			w.flying[delay] = append(w.flying[delay], m)
		}
	}
}

func (w *stroll) recordDelivered(receiver overlay.ID, out *overlay.Output) {
	for _, u := range out.Learned {
		key := [2]overlay.ID{receiver, u.Origin}
		if last, ok := w.delivered[key]; ok && int32(u.Round-last) <= 0 {
			w.t.Fatalf("round %d: %d learned round %d of %d after round %d", w.round, receiver, u.Round, u.Origin, last)
		}
		if u.Origin == receiver || !u.Valid() {
			w.t.Fatalf("round %d: %d learned %+v", w.round, receiver, u)
		}
		w.delivered[key] = u.Round
	}
}

// nonsense returns a forged message.
func (w *stroll) nonsense(to overlay.ID) overlay.Message {
	number := func() float64 {
		return []float64{math.NaN(), math.Inf(1), -1e300, 0, strollField * w.rng.Float64()}[w.rng.IntN(5)]
	}
	u := overlay.Update{Origin: overlay.ID(w.rng.Uint32()), Round: w.round + uint32(w.rng.IntN(100)) - 50, At: overlay.Point{X: number(), Z: number()}, Velocity: overlay.Point{X: number(), Z: number()}}
	from := overlay.ID(w.rng.IntN(w.avatars))
	list := make([]overlay.ID, w.rng.IntN(overlay.MaxReceivers+10))
	for i := range list {
		list[i] = overlay.ID(i)
	}
	return overlay.Message{From: from, To: to, Bytes: 1, Payload: []overlay.Payload{
		&overlay.Position{Update: u, Hops: uint8(w.rng.IntN(20)), Listed: true, Receivers: list},
		&overlay.SensorRequest{Self: u, Sector: uint8(w.rng.IntN(256))}, &overlay.SensorSuggestion{Node: u, Sector: 255},
		&overlay.Introduction{Updates: []overlay.Update{u, u}}, &overlay.Report{Update: u}, nil,
	}[w.rng.IntN(6)]}
}

// stale returns the share of pairs well within vision range without an update of each other in the last old rounds.
func (w *stroll) stale(old uint32) float64 {
	pairs, bad := 0, 0
	for i := range w.avatars {
		for j := range w.avatars {
			if i == j || w.at[i].Dist(w.at[j]) > strollVision*.8 {
				continue
			}
			pairs++
			if last, ok := w.delivered[[2]overlay.ID{overlay.ID(i), overlay.ID(j)}]; !ok || w.round-last > old {
				bad++
			}
		}
	}
	return float64(bad) / float64(max(pairs, 1))
}

// run walks for so many steps: 400 rounds with faults, 60 of them partitioned, then 100 rounds without, after which
// every avatar must know its neighbors again.
func (w *stroll) run() {
	rounds := *strollSteps / w.avatars
	stale, samples := 0., 0
	for r := range rounds {
		phase := r % 500
		w.severe = phase < 400
		w.split = phase >= 200 && phase < 260
		w.step()
		if phase == 499 {
			stale += w.stale(8)
			samples++
		}
	}
	if mean := stale / float64(max(samples, 1)); samples == 0 || mean > .02 {
		w.t.Errorf("in %d times of peace %.1f %% of the neighbors were not known", samples, 100*mean)
	}
}

// sound checks the invariants of a pSense machine.
func (m *Machine) sound() error {
	switch {
	case !slices.IsSortedFunc(m.nodes, func(a, b node) int { return int(int64(a.Origin) - int64(b.Origin)) }):
		return fmt.Errorf("nodes out of order")
	case len(m.nodes) > overlay.MaxKnown || len(m.delivered) > overlay.MaxKnown || len(m.lost) > maxLost || len(m.queue) != 0 || len(m.requests) != 0:
		return fmt.Errorf("%d nodes, %d learned, %d lost, %d in the queue", len(m.nodes), len(m.delivered), len(m.lost), len(m.queue))
	}
	for sector, at := range m.sensors {
		if at >= len(m.nodes) || at >= 0 && (m.nodes[at].near || m.nodes[at].sector != sector) {
			return fmt.Errorf("sensor node %d of sector %d", at, sector)
		}
	}
	for i := range m.nodes {
		n := &m.nodes[i]
		if n.Origin == m.id || !n.Valid() || !n.near && m.sensors[n.sector] != i || i > 0 && n.Origin == m.nodes[i-1].Origin {
			return fmt.Errorf("node %+v", *n)
		}
	}
	return nil
}

func TestWalkPSense(t *testing.T) {
	plain := Paper(strollVision)
	plain.Probe = 16 // without it, partitions that dropped each other stay apart
	improved := Improved(strollVision, overlay.FirstServer)
	alone := improved
	alone.Introductions = false
	for name, cfg := range map[string]Options{"plain": plain, "improved": improved, "improved without a leader": alone} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg.Cap = 3000
			w := newStroll(t, 7, 25, func(id overlay.ID, rng *rand.Rand) overlay.Machine { return New(cfg, id, rng) })
			most := 0
			w.check = func(m overlay.Machine) {
				if m, ok := m.(*Machine); ok {
					if err := m.sound(); err != nil {
						t.Fatalf("round %d: machine %d: %v", w.round, m.id, err)
					}
					most = max(most, len(m.nodes))
				}
			}
			w.run()
			if most > 200 {
				t.Errorf("a machine kept %d nodes of 25 and a few made up", most)
			}
		})
	}
}

// silent is a machine that sends nothing.
type silent overlay.ID

func (m silent) ID() overlay.ID                     { return overlay.ID(m) }
func (silent) Introduce([]overlay.Update)           {}
func (silent) Step(*overlay.Input, *overlay.Output) {}

// A node leaves silently: others stop sending to it, and the rest stays connected (§3.4).
func TestPSenseSilentLeave(t *testing.T) {
	w := newStroll(t, 3, 12, func(id overlay.ID, rng *rand.Rand) overlay.Machine { return New(Paper(strollVision*2), id, rng) })
	for range 60 {
		w.step()
	}
	gone := w.machines[5].ID()
	w.machines[5] = silent(gone)
	for range DefaultForget + 3*DefaultLifetime {
		w.step()
	}
	for _, m := range w.machines {
		if m, ok := m.(*Machine); ok {
			if ids := m.sensorIDs(m.nearIDs(nil)); slices.Contains(ids, gone) || len(ids) == 0 {
				t.Errorf("machine %d has the nodes %v", m.id, ids)
			}
		}
	}
}

// nearIDs appends the ids of the near nodes, sorted.
func (m *Machine) nearIDs(ids []overlay.ID) []overlay.ID {
	for i := range m.nodes {
		if m.nodes[i].near {
			ids = append(ids, m.nodes[i].Origin)
		}
	}
	return ids
}

// sensorIDs appends the ids of the sensor nodes.
func (m *Machine) sensorIDs(ids []overlay.ID) []overlay.ID {
	for _, at := range m.sensors {
		if at >= 0 && at < len(m.nodes) {
			ids = append(ids, m.nodes[at].Origin)
		}
	}
	return ids
}
