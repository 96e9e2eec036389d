package overlay

import (
	"cmp"
	"slices"
)

// How long a silent player stays in the update id list, in rounds.
const (
	// forgetAfter: until then, an older update of the player is recognised as old. Afterwards any update counts as new:
	// the player, or another one with the same id, may have restarted their round counter.
	forgetAfter = 128
	// dropAfter: then the player leaves the list. Until then they may receive a reminder.
	dropAfter = 1 << 14
)

// contact is an entry of the update id list: a known player.
type contact struct {
	last       Update // the newest
	receivedAt uint32 // the machine's round in which last arrived, or in which the player was introduced
	hops       uint8  // that last travelled; 0: the player was only introduced, and any update from them counts as new
	age        uint8  // hops and rounds of last, as counted by the buffer
	view       view
	slot       int // index in Areacast.order
	kept       int // index in buffer.of; -1: not in the buffer

	lastSent uint32 // the machine's round of the last gossip to the player
	everSent bool   // a gossip was sent to the player at least once
}

// positionAge returns the paper's PositionAge (§3.2): rounds since the update arrived, plus its hops.
func (c *contact) positionAge(now uint32) int { return int(int32(now-c.receivedAt)) + int(c.hops) }

// receive handles one message.
func (m *Areacast) receive(msg *Message, out *Output) {
	switch p := msg.Payload.(type) {
	case *Gossip:
		for i := range p.Updates[:min(len(p.Updates), MaxUpdates)] {
			m.receiveUpdate(&p.Updates[i], out)
		}
	case *Introduction:
		m.introduced(p, out)
	}
}

// receiveUpdate handles one update of a gossip: it counts only if it is newer than all before it.
func (m *Areacast) receiveUpdate(u *AgedUpdate, out *Output) {
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
	c.last, c.receivedAt, c.hops, c.age = u.Update, m.now, u.Age+1, u.Age+1
	if c.view == viewNone {
		c.view = viewInf // refresh moves it to its view
	}
	m.buffer.put(c)
	out.Learned = append(out.Learned, u.Update)
}

// meet adds an introduced player.
func (m *Areacast) meet(u Update) {
	if u.Origin == m.id || u.Origin.Server() || !u.Valid() {
		return
	}
	c := m.contacts[u.Origin]
	if c == nil {
		c = m.add(u.Origin)
	} else if c.view != viewNone {
		return // the machine has a newer update
	}
	c.last, c.receivedAt, c.hops, c.view = u, m.now, 0, viewInf
	m.buffer.remove(c)
}

func (m *Areacast) add(id ID) *contact {
	c := &contact{slot: len(m.order), kept: -1}
	m.contacts[id] = c
	m.order = append(m.order, c)
	return c
}

// drop removes a player from all lists but the views, which refresh rebuilds.
func (m *Areacast) drop(c *contact) {
	m.buffer.remove(c)
	last := len(m.order) - 1
	m.order[c.slot] = m.order[last]
	m.order[c.slot].slot = c.slot
	m.order[last] = nil
	m.order = m.order[:last]
	delete(m.contacts, c.last.Origin)
}

// trim keeps the update id list bounded: players who were silent longest go first.
func (m *Areacast) trim() {
	excess := len(m.order) - MaxKnown
	if excess <= 0 {
		return
	}
	oldest := slices.Clone(m.order)
	slices.SortFunc(oldest, func(a, b *contact) int {
		return cmp.Or(cmp.Compare(int32(a.receivedAt-m.now), int32(b.receivedAt-m.now)), cmp.Compare(a.slot, b.slot))
	})
	for _, c := range oldest[:excess] {
		m.drop(c)
	}
}
