package areacast

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/voxelpopuli/voxeld/overlay"
)

// walk is a small world of machines on a bad network: messages are lost, duplicated, delayed by some rounds, and
// reordered.
type walk struct {
	rng      *rand.Rand
	machines []overlay.Machine
	at       []overlay.Point
	inbox    []map[uint32][]overlay.Message  // by machine, by round
	learned  []map[overlay.ID]overlay.Update // by machine
	round    uint32
	side     float64

	lose, double float64
	late         int                                   // greatest delay in rounds
	cut          func(from, to overlay.ID) bool        // nil: nothing is cut
	forge        func(to overlay.ID) []overlay.Message // nil: no forged messages
	check        func(i int, m overlay.Machine, out *overlay.Output)
}

func newWalk(seed uint64, n int, side float64, machine func(overlay.ID, *rand.Rand) overlay.Machine) *walk {
	w := &walk{rng: rand.New(rand.NewPCG(seed, 1)), side: side, round: math.MaxUint32 - 40} // round wraps around
	for i := range n {
		w.machines = append(w.machines, machine(overlay.ID(i), rand.New(rand.NewPCG(seed, uint64(i)+2))))
		w.at = append(w.at, overlay.Point{X: w.rng.Float64() * side, Z: w.rng.Float64() * side})
		w.inbox = append(w.inbox, map[uint32][]overlay.Message{})
		w.learned = append(w.learned, map[overlay.ID]overlay.Update{})
		for range min(i, 3) {
			c := w.rng.IntN(i)
			w.machines[i].Introduce([]overlay.Update{{Origin: overlay.ID(c), Round: w.round, At: w.at[c]}})
		}
	}
	return w
}

func (w *walk) turn() {
	var out overlay.Output
	for i, m := range w.machines {
		w.at[i].X = min(w.side, max(0, w.at[i].X+w.rng.Float64()*10-5))
		w.at[i].Z = min(w.side, max(0, w.at[i].Z+w.rng.Float64()*10-5))
		in := overlay.Input{Round: w.round, At: w.at[i], Inbox: w.inbox[i][w.round]}
		delete(w.inbox[i], w.round)
		if w.forge != nil {
			in.Inbox = append(in.Inbox, w.forge(m.ID())...)
		}
		w.rng.Shuffle(len(in.Inbox), func(a, b int) { in.Inbox[a], in.Inbox[b] = in.Inbox[b], in.Inbox[a] })
		out.Reset()
		m.Step(&in, &out)
		for _, u := range out.Learned {
			w.learned[i][u.Origin] = u
		}
		if w.check != nil {
			w.check(i, m, &out)
		}
		for _, msg := range out.Messages {
			w.post(msg)
		}
	}
	w.round++
}

func (w *walk) post(m overlay.Message) {
	if int(m.To) >= len(w.inbox) || w.cut != nil && w.cut(m.From, m.To) || w.rng.Float64() < w.lose {
		return
	}
	for range 2 {
		at := w.round + 1 + uint32(w.rng.IntN(w.late+1))
		w.inbox[m.To][at] = append(w.inbox[m.To][at], m)
		if w.rng.Float64() >= w.double {
			return
		}
	}
}

// allFresh reports whether every machine has a recent update of every player in vision range.
func (w *walk) allFresh(vision float64, rounds uint32) bool {
	for i := range w.machines {
		for j := range w.machines {
			if i == j || w.at[i].Dist(w.at[j]) > vision*.9 { // others may be introduced next round
				continue
			}
			u, ok := w.learned[i][overlay.ID(j)]
			if !ok || w.round-u.Round > rounds {
				return false
			}
		}
	}
	return true
}

// areacastKinds lists the machines that take part in the walks.
func areacastKinds() map[string]Options {
	plain := Paper()
	plain.RemindEvery = 8
	few := plain
	few.MaxUpdatesPerGossip, few.MaxPositionAge, few.Aging = 10, 2, AgeBySending
	few.FanoutIR, few.FanoutVR, few.FanoutInf = 2, 2, 1
	hops := plain
	hops.Aging = AgeByHop
	capped := plain
	capped.Improved.Cap = 6000
	better := Improved(2000)
	better.RemindEvery = 8
	led := better
	led.Improved.Leader, led.Improved.ReportEvery, led.Improved.EdgeInterval = overlay.FirstServer, 3, 3
	return map[string]Options{"plain": plain, "few": few, "hops": hops, "capped": capped, "better": better, "led": led}
}

func TestAreacastWalksOnABadNetwork(t *testing.T) {
	const players, rounds = 25, 4000 // 100,000 steps
	for name, opt := range areacastKinds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() {
				t.Skip("100,000 steps")
			}
			w := newWalk(1, players, 600, func(id overlay.ID, rng *rand.Rand) overlay.Machine { return New(id, opt, rng) })
			w.lose, w.double, w.late = .2, .1, 3
			w.forge = forgedGossips(w)
			newest := make([]map[overlay.ID]uint32, players)
			for i := range newest {
				newest[i] = map[overlay.ID]uint32{}
			}
			w.check = func(i int, machine overlay.Machine, out *overlay.Output) {
				m := machine.(*Machine)
				if err := m.invariants(out); err != nil {
					t.Fatalf("round %d, player %d: %v", w.round, i, err)
				}
				for _, u := range out.Learned {
					if before, ok := newest[i][u.Origin]; ok && u.Origin < players && int32(u.Round-before) <= 0 {
						t.Fatalf("round %d: player %d learned of %d what is from round %d, after round %d", w.round, i, u.Origin, u.Round, before)
					}
					newest[i][u.Origin] = u.Round
				}
			}
			for range rounds {
				w.turn()
			}
			if !w.allFresh(opt.Vision, 12) {
				t.Error("at the end some machine lacks a player in its vision range")
			}
		})
	}
}

// forgedGossips forges messages: of unknown players, of impossible positions and ages, or too long ones.
func forgedGossips(w *walk) func(overlay.ID) []overlay.Message {
	return func(to overlay.ID) []overlay.Message {
		if w.rng.IntN(20) > 0 {
			return nil
		}
		n := 1 + w.rng.IntN(30)
		if w.rng.IntN(200) == 0 {
			n = 3 * overlay.MaxUpdates
		}
		g := &overlay.Gossip{}
		for range n {
			u := overlay.AgedUpdate{Update: overlay.Update{Origin: 1000 + overlay.ID(w.rng.IntN(20000)), Round: w.rng.Uint32(), At: w.at[to]}, Age: uint8(w.rng.Uint32())}
			switch w.rng.IntN(10) {
			case 0:
				u.At.X = math.NaN()
			case 1:
				u.At.Z = math.Inf(1)
			case 2:
				u.Velocity.X = 1e300
			case 3:
				u.Origin = to
			case 4:
				u.Origin += overlay.FirstServer
			}
			g.Updates = append(g.Updates, u)
		}
		return []overlay.Message{{From: 999, To: to, Payload: g}, {From: 999, To: to, Payload: &overlay.Report{}}, {From: 999, To: to}}
	}
}

// invariants checks what must hold after every step, whatever the input.
func (m *Machine) invariants(out *overlay.Output) error {
	if len(m.order) > overlay.MaxKnown || len(m.contacts) != len(m.order) || len(m.met) > overlay.MaxKnown {
		return fmt.Errorf("%d players in the list, %d in the index, %d met", len(m.order), len(m.contacts), len(m.met))
	}
	for i, c := range m.order {
		if c.slot != i || m.contacts[c.last.Origin] != c || c.last.Origin == m.id || c.last.Origin.Server() || !c.last.Valid() {
			return fmt.Errorf("entry %d is %+v", i, c)
		}
	}
	seen := map[*contact]bool{}
	for v, members := range m.views {
		for _, c := range members {
			d := m.at.Dist(c.last.At)
			fits := [...]bool{d <= m.opt.Interaction, d > m.opt.Interaction && d <= m.opt.Vision, d > m.opt.Vision}
			if seen[c] || c.view != view(v) || !fits[v] || c.positionAge(m.now) > m.opt.RemoveAfter {
				return fmt.Errorf("view %d has %+v at a distance of %v", v, c, d)
			}
			seen[c] = true
		}
	}
	for i, c := range m.buffer.of {
		if c.kept != i || int(c.age) > m.opt.MaxPositionAge || m.contacts[c.last.Origin] != c {
			return fmt.Errorf("place %d of the buffer has %+v", i, c)
		}
	}
	sent, receivers := 0, map[overlay.ID]bool{}
	for _, msg := range out.Messages {
		sent += msg.Bytes
		g, ok := msg.Payload.(*overlay.Gossip)
		if !ok {
			continue
		}
		if n := len(g.Updates); n < 1 || n > m.opt.MaxUpdatesPerGossip || receivers[msg.To] || msg.To == m.id {
			return fmt.Errorf("a gossip of %d updates to %d", n, msg.To)
		}
		receivers[msg.To] = true
		for i, u := range g.Updates {
			if (u.Origin == m.id) != (i == 0) || int(u.Age) >= m.opt.MaxPositionAge || (u.Age == 0) != (i == 0) {
				return fmt.Errorf("update %d of a gossip is %+v", i, u)
			}
		}
	}
	most := m.opt.Fanout() + 1
	if limit := m.opt.Improved.Cap; limit > 0 {
		most = len(m.order)
		if sent > limit {
			return fmt.Errorf("%d bytes sent, the cap is %d", sent, limit)
		}
	}
	if len(receivers) > most {
		return fmt.Errorf("%d gossips sent", len(receivers))
	}
	return nil
}

func TestAreacastPartitionsHeal(t *testing.T) {
	for name, opt := range areacastKinds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const players = 20
			w := newWalk(2, players, 300, func(id overlay.ID, rng *rand.Rand) overlay.Machine { return New(id, opt, rng) })
			for range 30 {
				w.turn()
			}
			if !w.allFresh(opt.Vision, 8) {
				t.Fatal("after 30 rounds some machine lacks a player in its vision range")
			}
			w.cut = func(from, to overlay.ID) bool { return (from < players/2) != (to < players/2) }
			for range 400 {
				w.turn()
			}
			if w.allFresh(opt.Vision, 8) {
				t.Fatal("there is no partition")
			}
			w.cut = nil
			rounds := 0
			for ; rounds < 100 && !w.allFresh(opt.Vision, 8); rounds++ {
				w.turn()
			}
			if rounds == 100 {
				t.Error("100 rounds after the network is whole again, the halves have not found each other")
			}
		})
	}
}

// §2.2: without reminders, as in the paper, parts that were partitioned for longer than RemoveAfter never meet again.
func TestPaperAreacastStaysApart(t *testing.T) {
	const players = 20
	opt := Paper()
	w := newWalk(2, players, 300, func(id overlay.ID, rng *rand.Rand) overlay.Machine { return New(id, opt, rng) })
	for round := range 200 {
		if round == 30 {
			w.cut = func(from, to overlay.ID) bool { return (from < players/2) != (to < players/2) }
		}
		if round == 40 {
			w.cut = nil
		}
		w.turn()
	}
	if w.allFresh(opt.Vision, 8) {
		t.Error("the halves met: RemindEvery is needless")
	}
}
