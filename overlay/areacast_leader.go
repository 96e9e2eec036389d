package overlay

// report tells the leader where the avatar is, so that he names those who come near.
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

// introduced takes in whom the leader names. His word is two hops old: it is news to the game, and it is not forwarded.
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
		c.last, c.heard, c.hops = u, m.now, 2
		if c.view == viewNone {
			c.view = viewInf
		}
		out.Learned = append(out.Learned, u)
	}
}
