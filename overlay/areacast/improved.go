package areacast

import (
	"cmp"
	"math"
	"slices"

	"github.com/voxelpopuli/voxeld/overlay"
)

// gossipToStalest sends individual gossips to the players whose information suffers most from aging. The share of
// fanoutInf goes to random players outside the vision range, as in the paper: it keeps the network connected.
func (m *Machine) gossipToStalest(self overlay.Update, out *overlay.Output) {
	fanouts := m.fanouts(m.opt.Header + m.expectedSize())
	send := func(c *contact) bool {
		g := m.gossipFor(c, self)
		return m.send(c, g, m.size(g), out)
	}
	m.choose([viewInf + 1]int{viewInf: fanouts[viewInf]}, func(c *contact) { send(c) })
	rank := m.ranked()
	if m.opt.Improved.Cap == 0 {
		rank = rank[:min(len(rank), fanouts[viewIR]+fanouts[viewVR])]
	}
	for _, t := range rank {
		if !send(t.to) {
			break
		}
	}
}

// ranked returns the players of IR and VR to whom a gossip is due, the most urgent first. A player whose information
// has age a and exponent e loses a to the power of e per round; a gossip now reduces the sum of future losses by
// e/(1+e)·a^(1+e) (the Whittle index of that loss). Ordering by the loss of this round instead would starve players at
// the edge, who lose little in any single round.
func (m *Machine) ranked() []target {
	m.rank = m.rank[:0]
	for _, v := range []view{viewIR, viewVR} {
		for _, c := range m.dueOf(m.views[v]) {
			e := m.opt.exponent(m.at.Dist(c.last.At))
			m.rank = append(m.rank, target{c, (e + .05) * math.Pow(float64(m.silence(c)), 1+e)})
		}
	}
	slices.SortFunc(m.rank, func(a, b target) int {
		return cmp.Or(cmp.Compare(b.urgency, a.urgency), cmp.Compare(a.to.last.Origin, b.to.last.Origin))
	})
	return m.rank
}

// soonInSight is how many times the vision range a player may be away for their update to be included: a player must be
// known before they come into sight.
const soonInSight = 1.25

// gossipFor returns a gossip for one player: the own update, and buffered updates of players whom they see or soon
// will.
func (m *Machine) gossipFor(c *contact, self overlay.Update) *overlay.Gossip {
	room := min(m.opt.MaxUpdatesPerGossip-1, len(m.buffer.of))
	g := &overlay.Gossip{Updates: make([]overlay.AgedUpdate, 1, 1+room)}
	g.Updates[0] = overlay.AgedUpdate{Update: self}
	if room == 0 {
		return g
	}
	reach2 := m.opt.Vision * m.opt.Vision * soonInSight * soonInSight
	start := m.rng.IntN(len(m.buffer.of))
	for i := range m.buffer.of {
		o := m.buffer.of[(start+i)%len(m.buffer.of)]
		if o == c || o.last.At.Dist2(c.last.At) > reach2 {
			continue
		}
		g.Updates = append(g.Updates, overlay.AgedUpdate{Update: o.last, Age: o.age})
		if len(g.Updates) > room {
			break
		}
	}
	return g
}
