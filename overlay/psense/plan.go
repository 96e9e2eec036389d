package psense

import (
	"slices"

	"github.com/voxelpopuli/voxeld/overlay"
)

// plan fills the queue: the own update to near nodes and sensor nodes, then forwarded updates.
func (m *Machine) plan() {
	p := &m.planned
	p.batches, p.entries = p.batches[:0], p.entries[:0]
	p.batches = append(p.batches, batch{update: m.outward(m.self), hops: 1, own: true, short: m.cfg.Compact})
	p.resting = p.resting[:0]
	for i := range m.nodes {
		n := &m.nodes[i]
		if m.due(n) {
			m.add(entry{batch: 0, to: i, list: m.cfg.Forwarders == 0, receiver: n.near})
		} else if n.near {
			p.resting = append(p.resting, m.listID(n.Origin))
		}
	}
	p.batches[0].prior = p.resting // nobody needs to forward to them
	if m.cfg.Forwarders > 0 {
		m.chooseForwarders()
	}
	for i := range m.queue {
		m.forward(&m.queue[i])
	}
}

func (m *Machine) add(e entry) {
	p := &m.planned
	e.far = !m.compactAt(p.batches[e.batch].update.At.Dist(m.nodes[e.to].now))
	p.entries = append(p.entries, e)
	b := &p.batches[e.batch]
	b.kept++
	if e.list {
		b.listed++
	}
	if e.receiver {
		b.receivers++
	}
	if e.far {
		b.far++
	}
}

// listID returns the form of an id in the receiver lists of this machine.
func (m *Machine) listID(id overlay.ID) overlay.ID {
	if m.cfg.Compact {
		return overlay.ShortID(id)
	}
	return id
}

// due reports whether the node gets an own update in this round.
func (m *Machine) due(n *node) bool {
	if !n.wasSent || !m.slows() {
		return true
	}
	return m.round-n.sent >= m.interval(n)
}

func (m *Machine) slows() bool { return m.cfg.Falling > 0 || m.cfg.Lead > 0 }

// interval returns the rounds from one own update to the next. A node that approaches the vision range gets one by the
// time it could arrive there.
func (m *Machine) interval(n *node) uint32 {
	switch {
	case !n.near:
		return uint32(m.cfg.SensorEvery)
	case n.dist > m.cfg.Vision:
		rounds := (n.dist - m.cfg.Vision) / max(n.reach-m.cfg.Vision, 1e-9) * m.cfg.Lead
		return uint32(min(max(rounds, 1), mostInterval))
	}
	every := 1
	if m.cfg.Falling > 0 {
		for every < mostInterval && n.dist >= m.falling[every+1] {
			every++
		}
	}
	return uint32(every)
}

// chooseForwarders sends the receiver list to a few of the own update's receivers: sensor nodes first, because they
// detect approaching avatars, and random near nodes.
func (m *Machine) chooseForwarders() {
	entries := m.planned.entries
	few := m.cfg.Forwarders
	if m.cfg.ListEvery > 1 && (m.round+uint32(m.id))%uint32(m.cfg.ListEvery) != 0 {
		few = 0
	}
	for range min(few, len(entries)) {
		if e := &entries[m.rng.IntN(len(entries))]; !e.list {
			e.list = true
			m.planned.batches[0].listed++
		}
	}
	for i := range entries {
		if e := &entries[i]; !e.receiver && !e.list {
			e.list = true
			m.planned.batches[0].listed++
		}
	}
}

// forward plans the forwarding of an update (step 2b (iii)): to all known neighbors of its origin that are not in its
// receiver list. A node that knows no such neighbor passes the update on to the node closest to the origin, if that is
// closer than itself.
func (m *Machine) forward(a *arrival) {
	p := &m.planned
	p.reached = slices.Grow(p.reached[:0], len(m.nodes))[:len(m.nodes)]
	m.setReached(a)
	at := len(p.batches)
	list := m.cfg.Forwarders == 0
	origin := a.Update.Ahead(m.round)
	knows := origin.Dist2(m.self.At) <= m.cfg.Vision*m.cfg.Vision // the machine's avatar is a neighbor itself
	closest, closestDist := -1, origin.Dist2(m.self.At)
	for i := range m.nodes {
		n := &m.nodes[i]
		if n.Origin == a.Update.Origin {
			continue
		}
		reach := m.cfg.reach(a.Update.Velocity, n.Velocity)
		d := origin.Dist2(n.now)
		switch {
		case d <= reach*reach:
			knows = true
			if p.reached[i] || n.Origin == a.from {
				continue
			}
			if at == len(p.batches) {
				p.batches = append(p.batches, m.onward(a))
			}
			m.add(entry{batch: at, to: i, list: list, receiver: true})
		case d < closestDist && !p.reached[i] && n.Origin != a.from:
			closest, closestDist = i, d
		}
	}
	if !knows && closest >= 0 {
		p.batches = append(p.batches, m.onward(a))
		m.add(entry{batch: at, to: closest, list: true, receiver: false})
	}
}

// onward returns the batch of a received update.
func (m *Machine) onward(a *arrival) batch {
	b := batch{update: m.outward(a.Update), hops: a.Hops + 1, prior: a.Receivers, short: a.Short || m.cfg.Compact}
	if b.short && !a.Short {
		b.prior = make([]overlay.ID, len(a.Receivers))
		for i, id := range a.Receivers {
			b.prior[i] = overlay.ShortID(id)
		}
		slices.Sort(b.prior)
		b.prior = slices.Compact(b.prior)
	}
	return b
}

// setReached sets reached for the nodes in the receiver list.
func (m *Machine) setReached(a *arrival) {
	reached, list := m.planned.reached, a.Receivers
	if a.Short {
		for i := range m.nodes {
			_, reached[i] = slices.BinarySearch(list, overlay.ShortID(m.nodes[i].Origin))
		}
		return
	}
	for i := range m.nodes { // both are sorted
		id := m.nodes[i].Origin
		for len(list) > 0 && list[0] < id {
			list = list[1:]
		}
		reached[i] = len(list) > 0 && list[0] == id
	}
}

// ship sends what the cap allows. All messages of a batch with a list share one payload, and so do those without.
func (m *Machine) ship(out *overlay.Output) {
	p := &m.planned
	slices.SortStableFunc(p.entries, func(a, b entry) int { return a.batch - b.batch })
	for at := 0; at < len(p.entries); {
		end := at
		for end < len(p.entries) && p.entries[end].batch == p.entries[at].batch {
			end++
		}
		m.shipBatch(out, &p.batches[p.entries[at].batch], p.entries[at:end])
		at = end
	}
}

func (m *Machine) shipBatch(out *overlay.Output, b *batch, entries []entry) {
	var list []overlay.ID
	if b.listed > 0 {
		list = m.receivers(b, entries)
	}
	var forms [4]overlay.Message // by form: bit 0 listed, bit 1 short; created on first use
	for _, e := range entries {
		n := &m.nodes[e.to]
		if b.own {
			n.sent, n.wasSent = m.round, true
		}
		p := overlay.Position{Update: b.update, Hops: b.hops, Compact: m.compactAt(b.update.At.Dist(n.now))}
		form := 0
		if e.list {
			form |= 1
			p.Listed, p.Short, p.Receivers = true, b.short, list
		}
		if p.Compact {
			form |= 2
		}
		if forms[form].Payload == nil {
			forms[form] = overlay.Message{From: m.id, Bytes: m.cfg.Header + overlay.PayloadBytes(m.id, &p), Payload: &p}
		}
		msg := forms[form]
		msg.To = n.Origin
		out.Send(msg)
	}
}

// receivers returns the previous receivers of the update and those who get it now.
func (m *Machine) receivers(b *batch, entries []entry) []overlay.ID {
	list := make([]overlay.ID, 0, len(b.prior)+b.receivers)
	list = append(list, b.prior...)
	for _, e := range entries {
		if e.receiver && len(list) < overlay.MaxReceivers {
			id := m.nodes[e.to].Origin
			if b.short {
				id = overlay.ShortID(id)
			}
			list = append(list, id)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
