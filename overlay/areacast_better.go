package overlay

import (
	"cmp"
	"math"
	"slices"
)

// target is a player to tell, and how urgent that is.
type target struct {
	to      *contact
	urgency float64
}

// exponent is how much the age of what one knows of the other matters at a distance (§3.2): 1 in interaction range,
// falling to 0 at the edge of the vision range.
func (o *AreacastOptions) exponent(dist float64) float64 {
	return min(1, max(0, 1-(dist-o.Interaction)/(o.Vision-o.Interaction)))
}

// interval is every how many rounds a player at a distance is told.
func (o *AreacastOptions) interval(dist float64) int {
	if o.Better.EdgeInterval <= 1 || dist > o.Vision {
		return 1
	}
	return 1 + int(float64(o.Better.EdgeInterval-1)*(1-o.exponent(dist))+.5)
}

// silence is for how many rounds the player has not been told; newcomers have waited long.
func (m *Areacast) silence(c *contact) int {
	if !c.spoke {
		return forgetAfter
	}
	return min(int(m.now-c.told), forgetAfter)
}

// dueOf are the players of a view whom it is time to tell.
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

// gossipToStalest sends gossips of their own to those who lose most by hearing nothing. The share of fanoutInf goes
// to random players outside the vision range, as in the paper: it holds the network together.
func (m *Areacast) gossipToStalest(self Update, out *Output) {
	fanouts := m.fanouts(m.opt.Header + m.expectedSize())
	tell := func(c *contact) bool {
		g := m.gossipFor(c, self)
		return m.tell(c, g, m.size(g), out)
	}
	m.choose([viewInf + 1]int{viewInf: fanouts[viewInf]}, func(c *contact) { tell(c) })
	rank := m.ranked()
	if m.opt.Better.Cap == 0 {
		rank = rank[:min(len(rank), fanouts[viewIR]+fanouts[viewVR])]
	}
	for _, t := range rank {
		if !tell(t.to) {
			break
		}
	}
}

// expectedSize is the size of a gossip that is full.
func (m *Areacast) expectedSize() int {
	if m.opt.Better.Compact {
		return gossipOverhead + m.opt.MaxUpdatesPerGossip*typicalUpdate
	}
	return paperSize(m.opt.MaxUpdatesPerGossip)
}

// ranked orders the players of IR and VR who are due, the most urgent first. What somebody loses whose knowledge is of age
// a and of exponent e is a to the power of e a round; telling him now takes away e/(1+e)·a^(1+e) of the sum to come
// (the Whittle index of that loss). The sum, not the loss of this round, is what to order by: else those at the edge, who
// lose little in any round, would never have their turn.
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

// soonInSight is how many times the vision range somebody may be away to be worth telling of: who comes into sight must
// have been heard of before.
const soonInSight = 1.25

// gossipFor is a gossip for one player: the own update, and buffered ones of players whom he sees or soon will.
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
