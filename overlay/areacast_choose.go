package overlay

// gossip sends the round's gossip.
func (m *Areacast) gossip(self Update, out *Output) {
	if m.opt.Better.StalestFirst {
		m.gossipToStalest(self, out)
		return
	}
	drawn := m.buffer.draw(m.opt.MaxUpdatesPerGossip-1, m.rng)
	g := &Gossip{Updates: make([]AgedUpdate, 0, 1+drawn)}
	g.Updates = append(g.Updates, AgedUpdate{Update: self})
	for _, c := range m.buffer.of[:drawn] {
		g.Updates = append(g.Updates, AgedUpdate{Update: c.last, Age: c.age})
	}
	if m.opt.Aging == AgeBySending {
		m.buffer.age(drawn)
	}
	bytes := m.size(g)
	m.choose(m.fanouts(bytes), func(c *contact) { m.tell(c, g, bytes, out) })
}

// tell sends a gossip to one player, unless that is more than the cap leaves.
func (m *Areacast) tell(c *contact, g *Gossip, bytes int, out *Output) (sent bool) {
	if m.opt.Better.Cap > 0 && bytes > m.left {
		return false
	}
	c.told, c.spoke = m.now, true
	m.left -= bytes
	out.Send(Message{From: m.id, To: c.last.Origin, Bytes: bytes, Payload: g})
	return true
}

// fanouts are how many gossips of a size go to each view. Under a cap they leave room for a reminder.
func (m *Areacast) fanouts(bytes int) [viewInf + 1]int {
	f := [viewInf + 1]int{m.opt.FanoutIR, m.opt.FanoutVR, m.opt.FanoutInf}
	if m.opt.Better.Cap == 0 {
		return f
	}
	all, room := m.opt.Fanout(), max(0, m.left/bytes)
	if m.reminding() {
		room = max(0, room-1)
	}
	// Rounded so that the three make up room, and a view that has a share gets something of it as soon as may be.
	f[viewInf] = min(room, (room*f[viewInf]+all-1)/all)
	f[viewVR] = min(room-f[viewInf], (room*f[viewVR]+all-1)/all)
	f[viewIR] = room - f[viewInf] - f[viewVR]
	return f
}

// choose draws receivers out of each view, so many as its fanout, and one more who is in none if it is time to. Fanout
// that a view cannot fill spills into the next wider one.
func (m *Areacast) choose(fanouts [viewInf + 1]int, tell func(*contact)) {
	for v := range m.views {
		of := m.dueOf(m.views[v])
		drawn := m.drawContacts(of, fanouts[v])
		for _, c := range of[:drawn] {
			tell(c)
		}
		if v < int(viewInf) && !m.opt.NoSpill {
			fanouts[v+1] += fanouts[v] - drawn
		}
	}
	if m.reminding() {
		for _, c := range m.strays[:m.drawContacts(m.strays, 1)] {
			tell(c)
		}
	}
}

// drawContacts brings n random ones to the front, and says how many there are of them.
func (m *Areacast) drawContacts(of []*contact, n int) int {
	n = min(n, len(of))
	for i := range n {
		j := i + m.rng.IntN(len(of)-i)
		of[i], of[j] = of[j], of[i]
	}
	return n
}

// reminding reports whether somebody who is in no view is to be told in this round: when it is time to, and whenever there
// is nobody else.
func (m *Areacast) reminding() bool {
	if m.opt.RemindEvery == 0 {
		return false
	}
	return m.step%m.opt.RemindEvery == 0 || len(m.views[viewIR])+len(m.views[viewVR])+len(m.views[viewInf]) == 0
}
