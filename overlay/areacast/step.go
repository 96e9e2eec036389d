package areacast

import (
	"github.com/voxelpopuli/voxeld/overlay"
)

// Introduce implements Machine: the contacts enter a view at the next step, and must send an update within RemoveAfter
// rounds.
func (m *Machine) Introduce(contacts []overlay.Update) {
	m.met = append(m.met, contacts[:min(len(contacts), overlay.MaxKnown-min(len(m.met), overlay.MaxKnown))]...)
}

// Step implements Machine.
func (m *Machine) Step(in *overlay.Input, out *overlay.Output) {
	m.now, m.at = in.Round, in.At
	for _, u := range m.met {
		m.meet(u)
	}
	m.met = m.met[:0]
	for i := range in.Inbox[:min(len(in.Inbox), overlay.MaxInbox)] {
		m.receive(&in.Inbox[i], out)
	}
	m.buffer.drop(m.opt.MaxPositionAge)
	m.trim()
	m.refresh()

	self := in.Self(m.id)
	if m.opt.Improved.Compact {
		self = self.Grained()
	}
	m.left = m.opt.Improved.Cap
	m.report(self, out)
	m.gossip(self, out)
	if m.opt.Aging == AgeByRound {
		m.buffer.age(len(m.buffer.of))
	}
	m.step++
}

// gossip sends the gossip of the round.
func (m *Machine) gossip(self overlay.Update, out *overlay.Output) {
	if m.opt.Improved.StalestFirst {
		m.gossipToStalest(self, out)
		return
	}
	drawn := m.buffer.draw(m.opt.MaxUpdatesPerGossip-1, m.rng)
	g := &overlay.Gossip{Updates: make([]overlay.AgedUpdate, 0, 1+drawn)}
	g.Updates = append(g.Updates, overlay.AgedUpdate{Update: self})
	for _, c := range m.buffer.of[:drawn] {
		g.Updates = append(g.Updates, overlay.AgedUpdate{Update: c.last, Age: c.age})
	}
	if m.opt.Aging == AgeBySending {
		m.buffer.age(drawn)
	}
	bytes := m.size(g)
	m.choose(m.fanouts(bytes), func(c *contact) { m.send(c, g, bytes, out) })
}

// report sends the avatar's position to the leader, so that the leader introduces players who come near.
func (m *Machine) report(self overlay.Update, out *overlay.Output) {
	every := m.opt.Improved.ReportEvery
	if every == 0 || m.step%every != 0 {
		return
	}
	p := &overlay.Report{Update: self, Compact: m.opt.Improved.Compact}
	bytes := m.opt.Header + overlay.PayloadBytes(m.id, p)
	m.left -= bytes
	out.Send(overlay.Message{From: m.id, To: m.opt.Improved.Leader, Bytes: bytes, Payload: p})
}
