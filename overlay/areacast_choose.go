package overlay

// gossip sends the gossip of the round.
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
	m.choose(m.fanouts(bytes), func(c *contact) { m.send(c, g, bytes, out) })
}

// send sends a gossip to one player, unless it exceeds the rest of the cap.
func (m *Areacast) send(c *contact, g *Gossip, bytes int, out *Output) (sent bool) {
	if m.opt.Better.Cap > 0 && bytes > m.left {
		return false
	}
	c.lastSent, c.everSent = m.now, true
	m.left -= bytes
	out.Send(Message{From: m.id, To: c.last.Origin, Bytes: bytes, Payload: g})
	return true
}

// fanouts returns how many gossips of a size go to each view. Under a cap they leave room for a reminder.
func (m *Areacast) fanouts(bytes int) [viewInf + 1]int {
	f := [viewInf + 1]int{m.opt.FanoutIR, m.opt.FanoutVR, m.opt.FanoutInf}
	if m.opt.Better.Cap == 0 {
		return f
	}
	all, room := m.opt.Fanout(), max(0, m.left/bytes)
	if m.reminding() {
		room = max(0, room-1)
	}
	// Round so that the three add up to room, and every view with a share gets a gossip as soon as possible.
	f[viewInf] = min(room, (room*f[viewInf]+all-1)/all)
	f[viewVR] = min(room-f[viewInf], (room*f[viewVR]+all-1)/all)
	f[viewIR] = room - f[viewInf] - f[viewVR]
	return f
}

// choose draws as many receivers from each view as its fanout, plus one outside of all views if a reminder is due.
// Fanout that a view cannot fill spills into the next wider one.
func (m *Areacast) choose(fanouts [viewInf + 1]int, send func(*contact)) {
	for v := range m.views {
		of := m.dueOf(m.views[v])
		drawn := m.drawContacts(of, fanouts[v])
		for _, c := range of[:drawn] {
			send(c)
		}
		if v < int(viewInf) && !m.opt.NoSpill {
			fanouts[v+1] += fanouts[v] - drawn
		}
	}
	if m.reminding() {
		for _, c := range m.dormant[:m.drawContacts(m.dormant, 1)] {
			send(c)
		}
	}
}

// drawContacts moves up to n random contacts to the front and returns their number.
func (m *Areacast) drawContacts(of []*contact, n int) int {
	n = min(n, len(of))
	for i := range n {
		j := i + m.rng.IntN(len(of)-i)
		of[i], of[j] = of[j], of[i]
	}
	return n
}

// reminding reports whether a reminder goes to a player outside of all views in this round: when it is due, and
// whenever there is no other receiver.
func (m *Areacast) reminding() bool {
	if m.opt.RemindEvery == 0 {
		return false
	}
	return m.step%m.opt.RemindEvery == 0 || len(m.views[viewIR])+len(m.views[viewVR])+len(m.views[viewInf]) == 0
}
