package areacast

import (
	"github.com/voxelpopuli/voxeld/overlay"
)

// send sends a gossip to one player, unless it exceeds the rest of the cap.
func (m *Machine) send(c *contact, g *overlay.Gossip, bytes int, out *overlay.Output) (sent bool) {
	if m.opt.Improved.Cap > 0 && bytes > m.left {
		return false
	}
	c.lastSent, c.everSent = m.now, true
	m.left -= bytes
	out.Send(overlay.Message{From: m.id, To: c.last.Origin, Bytes: bytes, Payload: g})
	return true
}

// fanouts returns how many gossips of a size go to each view. Under a cap they leave room for a reminder.
func (m *Machine) fanouts(bytes int) [viewInf + 1]int {
	f := [viewInf + 1]int{m.opt.FanoutIR, m.opt.FanoutVR, m.opt.FanoutInf}
	if m.opt.Improved.Cap == 0 {
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
func (m *Machine) choose(fanouts [viewInf + 1]int, send func(*contact)) {
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
func (m *Machine) drawContacts(of []*contact, n int) int {
	n = min(n, len(of))
	for i := range n {
		j := i + m.rng.IntN(len(of)-i)
		of[i], of[j] = of[j], of[i]
	}
	return n
}

// reminding reports whether a reminder goes to a player outside of all views in this round: when it is due, and
// whenever there is no other receiver.
func (m *Machine) reminding() bool {
	if m.opt.RemindEvery == 0 {
		return false
	}
	return m.step%m.opt.RemindEvery == 0 || len(m.views[viewIR])+len(m.views[viewVR])+len(m.views[viewInf]) == 0
}

// size returns the size of a gossip on the wire, with its header.
func (m *Machine) size(g *overlay.Gossip) int {
	if m.opt.Improved.Compact {
		return m.opt.Header + g.Size()
	}
	return m.opt.Header + paperSize(len(g.Updates))
}

// dueOf returns the players of a view to whom a gossip is due.
func (m *Machine) dueOf(view []*contact) []*contact {
	if m.opt.Improved.EdgeInterval <= 1 {
		return view
	}
	due := 0
	for i, c := range view {
		if m.silence(c) >= m.opt.interval(m.at.Dist(c.last.At)) {
			view[due], view[i] = view[i], view[due]
			due++
		}
	}
	return view[:due]
}

// interval returns the number of rounds between two gossips to a player at a distance.
func (o *Options) interval(dist float64) int {
	if o.Improved.EdgeInterval <= 1 || dist > o.Vision {
		return 1
	}
	return 1 + int(float64(o.Improved.EdgeInterval-1)*(1-o.exponent(dist))+.5)
}

// silence returns for how many rounds no gossip was sent to the player; newcomers count as having waited long.
func (m *Machine) silence(c *contact) int {
	if !c.everSent {
		return forgetAfter
	}
	return min(int(m.now-c.lastSent), forgetAfter)
}

// exponent returns the weight of the age of information about a player at a distance (§3.2): 1 in interaction range,
// falling to 0 at the edge of the vision range.
func (o *Options) exponent(dist float64) float64 {
	return min(1, max(0, 1-(dist-o.Interaction)/(o.Vision-o.Interaction)))
}

// expectedSize returns the size of a full gossip.
func (m *Machine) expectedSize() int {
	if m.opt.Improved.Compact {
		return overlay.TypicalGossip(m.opt.MaxUpdatesPerGossip)
	}
	return paperSize(m.opt.MaxUpdatesPerGossip)
}
