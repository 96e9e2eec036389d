package overlay

import (
	"cmp"
	"slices"
)

// How long a player of whom nothing comes stays in the update id list, in rounds.
const (
	// forgetAfter: until then an old update of his is known to be old. After that any update is news: he, or somebody
	// else with his id, may have begun to count rounds anew.
	forgetAfter = 128
	// strayAfter: then he leaves the list. Until then a reminder may go to him.
	strayAfter = 1 << 14
)

// contact is an entry of the update id list: a player of whom the machine knows.
type contact struct {
	last  Update // the newest
	heard uint32 // the own round in which last came, or in which the player was introduced
	hops  uint8  // that last travelled; 0: the player was only introduced, and any update of his is news
	age   uint8  // hops and rounds of last, as the buffer counts them
	view  view
	slot  int // index in Areacast.order
	kept  int // index in buffer.of; -1: not there

	told  uint32 // the own round in which a gossip was last sent to the player
	spoke bool   // one was ever
}

// positionAge is the paper's PositionAge (§3.2): rounds since the update came, and the hops that it took.
func (c *contact) positionAge(now uint32) int { return int(int32(now-c.heard)) + int(c.hops) }

// take handles one message.
func (m *Areacast) take(msg *Message, out *Output) {
	switch p := msg.Payload.(type) {
	case *Gossip:
		for i := range p.Updates[:min(len(p.Updates), MaxUpdates)] {
			m.hear(&p.Updates[i], out)
		}
	case *Introduction:
		m.introduced(p, out)
	}
}

// hear handles one update of a gossip: only what is newer than all before it counts.
func (m *Areacast) hear(u *AgedUpdate, out *Output) {
	if u.Origin == m.id || u.Origin.Server() || int(u.Age) >= m.opt.MaxPositionAge {
		return
	}
	c := m.contacts[u.Origin]
	if c != nil && c.hops > 0 && !u.Newer(c.last) || !u.Valid() {
		return
	}
	if c == nil {
		c = m.add(u.Origin)
	}
	c.last, c.heard, c.hops, c.age = u.Update, m.now, u.Age+1, u.Age+1
	if c.view == viewNone {
		c.view = viewInf // refresh puts him where he belongs
	}
	m.buffer.put(c)
	out.Learned = append(out.Learned, u.Update)
}

// meet takes in a player who was introduced.
func (m *Areacast) meet(u Update) {
	if u.Origin == m.id || u.Origin.Server() || !u.Valid() {
		return
	}
	c := m.contacts[u.Origin]
	if c == nil {
		c = m.add(u.Origin)
	} else if c.view != viewNone {
		return // the own knowledge is better
	}
	c.last, c.heard, c.hops, c.view = u, m.now, 0, viewInf
	m.buffer.remove(c)
}

func (m *Areacast) add(id ID) *contact {
	c := &contact{slot: len(m.order), kept: -1}
	m.contacts[id] = c
	m.order = append(m.order, c)
	return c
}

// forget takes a player out of all lists but the views, which refresh makes anew.
func (m *Areacast) forget(c *contact) {
	m.buffer.remove(c)
	last := len(m.order) - 1
	m.order[c.slot] = m.order[last]
	m.order[c.slot].slot = c.slot
	m.order[last] = nil
	m.order = m.order[:last]
	delete(m.contacts, c.last.Origin)
}

// trim keeps the update id list bounded: the longest unheard go first.
func (m *Areacast) trim() {
	excess := len(m.order) - MaxKnown
	if excess <= 0 {
		return
	}
	oldest := slices.Clone(m.order)
	slices.SortFunc(oldest, func(a, b *contact) int {
		return cmp.Or(cmp.Compare(int32(a.heard-m.now), int32(b.heard-m.now)), cmp.Compare(a.slot, b.slot))
	})
	for _, c := range oldest[:excess] {
		m.forget(c)
	}
}
