package psense

import (
	"math"

	"github.com/voxelpopuli/voxeld/overlay"
)

// ask is step 2b (ii): it asks each sensor node for a better one for its sector. For a sector without a sensor node it
// asks the farthest near node in the sector, or else the node closest to the sector (§3.3).
func (m *Machine) ask(out *overlay.Output) {
	turn := (m.round + uint32(m.id)) % uint32(m.cfg.SensorEvery)
	if turn == 0 {
		for sector, at := range m.sensors {
			if at < 0 {
				at = m.substitute(sector)
			}
			if at >= 0 {
				m.request(out, m.nodes[at].Origin, sector, m.nodes[at].dist)
			}
		}
	}
	if m.cfg.Probe > 0 && (m.round+uint32(m.id))%uint32(m.cfg.Probe) == 0 && len(m.lost) > 0 {
		u := m.lost[m.rng.IntN(len(m.lost))]
		m.request(out, u.Origin, sectorOf(m.self.At, u.At, m.cfg.Sectors), math.Inf(1))
	}
}

func (m *Machine) request(out *overlay.Output, to overlay.ID, sector int, dist float64) {
	m.send(out, to, &overlay.SensorRequest{Self: m.outward(m.self), Sector: uint8(sector), Compact: m.compactAt(dist)})
}

// substitute returns the node to ask about a sector without a sensor node, or -1.
func (m *Machine) substitute(sector int) int {
	best, far := -1, -1.
	middle := bisector(sector, m.cfg.Sectors)
	closest, along := -1, math.Inf(-1)
	for i := range m.nodes {
		n := &m.nodes[i]
		offset := n.now.Sub(m.self.At)
		if n.near && n.dist > far && sectorOf(m.self.At, n.now, m.cfg.Sectors) == sector {
			best, far = i, n.dist
		}
		if cos := (offset.X*middle.X + offset.Z*middle.Z) / max(n.dist, 1e-9); cos > along {
			closest, along = i, cos
		}
	}
	if best >= 0 {
		return best
	}
	return closest
}

// suggest answers a request with the node closest to its sender that is in the sector and outside of the sender's
// vision range. If there is none, it suggests its own avatar, if that is outside of the range too.
func (m *Machine) suggest(out *overlay.Output, to overlay.ID, q *overlay.SensorRequest) {
	if int(q.Sector) >= m.cfg.Sectors {
		return
	}
	vision := m.cfg.Vision
	best, dist := m.self, math.Inf(1)
	found := false
	consider := func(u overlay.Update, at overlay.Point) {
		d := at.Dist(q.Self.At)
		if u.Origin != to && d > vision && d < dist && sectorOf(q.Self.At, at, m.cfg.Sectors) == int(q.Sector) {
			best, dist, found = u, d, true
		}
	}
	consider(m.self, m.self.At)
	for i := range m.nodes {
		consider(m.nodes[i].Update, m.nodes[i].now)
	}
	if found || m.self.At.Dist(q.Self.At) > vision {
		compact := m.compactAt(best.At.Dist(q.Self.At))
		m.send(out, to, &overlay.SensorSuggestion{Node: m.outward(best), Sector: q.Sector, Compact: compact})
	}
}
