package psense

import (
	"github.com/voxelpopuli/voxeld/overlay"
)

// Introduce implements Machine (§3.4: a new node must only know one node of the network).
func (m *Machine) Introduce(contacts []overlay.Update) {
	for _, u := range contacts {
		if !m.stepped { // before the first step the machine has no round of its own
			m.round = u.Round
		}
		m.note(u)
	}
}

// Step implements Machine.
func (m *Machine) Step(in *overlay.Input, out *overlay.Output) {
	last, stepped := m.self, m.stepped
	m.round, m.self, m.stepped = in.Round, in.Self(m.id), true
	if stepped && m.self.Velocity == (overlay.Point{}) && in.Round == last.Round+1 {
		m.self.Velocity = in.At.Sub(last.At) // without a given velocity, derive it from the last two positions
	}
	if m.cfg.Compact {
		m.self = overlay.Quantise(m.self)
	}
	m.receive(in.Inbox, out)
	m.updateLists()

	first := len(out.Messages)
	m.ask(out)
	for _, q := range m.requests {
		m.suggest(out, q.from, q.SensorRequest)
	}
	m.report(out)
	used := 0
	for _, msg := range out.Messages[first:] { // sensor messages are never deleted
		used += msg.Bytes
	}
	m.plan()
	m.fit(used)
	m.ship(out)

	clear(m.queue)
	clear(m.requests)
	m.queue, m.requests = m.queue[:0], m.requests[:0]
	m.sweep()
}

// receive is step 1. A position that is a duplicate, or older than a previous one, is discarded.
func (m *Machine) receive(inbox []overlay.Message, out *overlay.Output) {
	for _, msg := range inbox[:min(len(inbox), overlay.MaxInbox)] {
		switch p := msg.Payload.(type) {
		case *overlay.Position:
			if m.deliver(p.Update, out) {
				m.note(p.Update)
				if p.Listed && len(p.Receivers) <= overlay.MaxReceivers && int(p.Hops) < m.cfg.Lifetime {
					m.queue = append(m.queue, arrival{msg.From, p})
				}
			}
		case *overlay.SensorRequest:
			if p.Self.Origin == msg.From && p.Self.Valid() {
				m.note(p.Self)
				m.requests = append(m.requests, asked{msg.From, p})
			}
		case *overlay.SensorSuggestion:
			m.note(p.Node)
		case *overlay.Introduction:
			if m.cfg.Introductions && msg.From == m.cfg.Leader {
				for _, u := range p.Updates {
					m.note(u)
				}
			}
		}
	}
}

// deliver passes an update to the game if it is new.
func (m *Machine) deliver(u overlay.Update, out *overlay.Output) bool {
	age := int32(m.round - u.Round)
	if u.Origin == m.id || u.Origin.Server() || !u.Valid() || age > int32(m.cfg.Forget) || age < -int32(m.cfg.Forget) {
		return false
	}
	last, ok := m.delivered[u.Origin]
	if ok && int32(u.Round-last.round) <= 0 || !ok && len(m.delivered) >= overlay.MaxKnown {
		return false
	}
	m.delivered[u.Origin] = delivery{u.Round, m.round}
	out.Learned = append(out.Learned, u)
	return true
}

// sweep occasionally removes entries of origins that have fallen silent. Updates older than Forget rounds are refused
// anyway.
func (m *Machine) sweep() {
	if (m.round+uint32(m.id))%32 != 0 {
		return
	}
	for id, d := range m.delivered {
		if int32(m.round-d.at) > 2*int32(m.cfg.Forget) {
			delete(m.delivered, id)
		}
	}
}

// report sends the avatar's position to the leader.
func (m *Machine) report(out *overlay.Output) {
	if m.cfg.Introductions && (m.round+uint32(m.id))%uint32(m.cfg.ReportEvery) == 0 {
		m.send(out, m.cfg.Leader, &overlay.Report{Update: m.outward(m.self), Compact: m.cfg.Compact})
	}
}
