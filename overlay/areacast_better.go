package overlay

import (
	"cmp"
	"math"
	"slices"
)

// target is a possible receiver, and the urgency of a gossip to them.
type target struct {
	to      *contact
	urgency float64
}

// exponent returns the weight of the age of information about a player at a distance (§3.2): 1 in interaction range,
// falling to 0 at the edge of the vision range.
func (o *AreacastOptions) exponent(dist float64) float64 {
	return min(1, max(0, 1-(dist-o.Interaction)/(o.Vision-o.Interaction)))
}

// interval returns the number of rounds between two gossips to a player at a distance.
func (o *AreacastOptions) interval(dist float64) int {
	if o.Better.EdgeInterval <= 1 || dist > o.Vision {
		return 1
	}
	return 1 + int(float64(o.Better.EdgeInterval-1)*(1-o.exponent(dist))+.5)
}

// silence returns for how many rounds no gossip was sent to the player; newcomers count as having waited long.
func (m *Areacast) silence(c *contact) int {
	if !c.everSent {
		return forgetAfter
	}
	return min(int(m.now-c.lastSent), forgetAfter)
}

// dueOf returns the players of a view to whom a gossip is due.
func (m *Areacast) dueOf(view []*contact) []*contact {
	if m.opt.Better.EdgeInterval <= 1 {
		return view
	}
	due := 0
	for i, c := range view {
		if m.silence(c) >= m.opt.interval(m.at.Dist(c.last.At)) {
			view[due], view[i] = view[i], view[due]
			due++
		}
	}
	return view[:due]
}

// gossipToStalest sends individual gossips to the players whose information suffers most from aging. The share of
// fanoutInf goes to random players outside the vision range, as in the paper: it keeps the network connected.
func (m *Areacast) gossipToStalest(self Update, out *Output) {
	fanouts := m.fanouts(m.opt.Header + m.expectedSize())
	send := func(c *contact) bool {
		g := m.gossipFor(c, self)
		return m.send(c, g, m.size(g), out)
	}
	m.choose([viewInf + 1]int{viewInf: fanouts[viewInf]}, func(c *contact) { send(c) })
	rank := m.ranked()
	if m.opt.Better.Cap == 0 {
		rank = rank[:min(len(rank), fanouts[viewIR]+fanouts[viewVR])]
	}
	for _, t := range rank {
		if !send(t.to) {
			break
		}
	}
}

// expectedSize returns the size of a full gossip.
func (m *Areacast) expectedSize() int {
	if m.opt.Better.Compact {
		return gossipOverhead + m.opt.MaxUpdatesPerGossip*typicalUpdate
	}
	return paperSize(m.opt.MaxUpdatesPerGossip)
}

// ranked returns the players of IR and VR to whom a gossip is due, the most urgent first. A player whose information
// has age a and exponent e loses a to the power of e per round; a gossip now reduces the sum of future losses by
// e/(1+e)·a^(1+e) (the Whittle index of that loss). Ordering by the loss of this round instead would starve players at
// the edge, who lose little in any single round.
func (m *Areacast) ranked() []target {
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
func (m *Areacast) gossipFor(c *contact, self Update) *Gossip {
	room := min(m.opt.MaxUpdatesPerGossip-1, len(m.buffer.of))
	g := &Gossip{Updates: make([]AgedUpdate, 1, 1+room)}
	g.Updates[0] = AgedUpdate{Update: self}
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
		g.Updates = append(g.Updates, AgedUpdate{Update: o.last, Age: o.age})
		if len(g.Updates) > room {
			break
		}
	}
	return g
}
