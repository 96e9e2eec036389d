package overlay

// report sends the avatar's position to the leader, so that the leader introduces players who come near.
func (m *Areacast) report(self Update, out *Output) {
	every := m.opt.Better.ReportEvery
	if every == 0 || m.step%every != 0 {
		return
	}
	p := &Report{Update: self, Compact: m.opt.Better.Compact}
	bytes := m.opt.Header + PayloadBytes(m.id, p)
	m.left -= bytes
	out.Send(Message{From: m.id, To: m.opt.Better.Leader, Bytes: bytes, Payload: p})
}

// introduced adds the players whom the leader introduces. Their updates are two hops old: they are delivered to the
// game, but not forwarded.
func (m *Areacast) introduced(p *Introduction, out *Output) {
	for _, u := range p.Updates[:min(len(p.Updates), MaxUpdates)] {
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
