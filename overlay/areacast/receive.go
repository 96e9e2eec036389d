package areacast

import (
	"cmp"
	"slices"

	"github.com/voxelpopuli/voxeld/overlay"
)

// receive handles one message.
func (m *Machine) receive(msg *overlay.Message, out *overlay.Output) {
	switch p := msg.Payload.(type) {
	case *overlay.Gossip:
		for i := range p.Updates[:min(len(p.Updates), overlay.MaxUpdates)] {
			m.receiveUpdate(&p.Updates[i], out)
		}
	case *overlay.Introduction:
		m.introduced(p, out)
	}
}

// receiveUpdate handles one update of a gossip: it counts only if it is newer than all before it.
func (m *Machine) receiveUpdate(u *overlay.AgedUpdate, out *overlay.Output) {
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
func (m *Machine) meet(u overlay.Update) {
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

func (m *Machine) add(id overlay.ID) *contact {
	c := &contact{slot: len(m.order), kept: -1}
	m.contacts[id] = c
	m.order = append(m.order, c)
	return c
}

// drop removes a player from all lists but the views, which refresh rebuilds.
func (m *Machine) drop(c *contact) {
	m.buffer.remove(c)
	last := len(m.order) - 1
	m.order[c.slot] = m.order[last]
	m.order[c.slot].slot = c.slot
	m.order[last] = nil
	m.order = m.order[:last]
	delete(m.contacts, c.last.Origin)
}

// trim keeps the update id list bounded: players who were silent longest go first.
func (m *Machine) trim() {
	excess := len(m.order) - overlay.MaxKnown
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

// introduced adds the players whom the leader introduces. Their updates are two hops old: they are delivered to the
// game, but not forwarded.
func (m *Machine) introduced(p *overlay.Introduction, out *overlay.Output) {
	for _, u := range p.Updates[:min(len(p.Updates), overlay.MaxUpdates)] {
		if u.Origin == m.id || u.Origin.Server() || !u.Valid() {
			continue
		}
		c := m.contacts[u.Origin]
		if c == nil {
			c = m.add(u.Origin)
		} else if c.hops > 0 && !u.Newer(c.last) {
			continue
		}
		m.buffer.remove(c)
		c.last, c.receivedAt, c.hops = u, m.now, 2
		if c.view == viewNone {
			c.view = viewInf
		}
		out.Learned = append(out.Learned, u)
	}
}
