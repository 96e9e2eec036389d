package psense

import (
	"math"
	"slices"

	"github.com/voxelpopuli/voxeld/overlay"
)

// note records an update of an avatar. It ignores updates older than forget rounds, and those from the future.
func (m *Machine) note(u overlay.Update) {
	age := int32(m.round - u.Round)
	if u.Origin == m.id || u.Origin.Server() || !u.Valid() || age > int32(m.cfg.Forget) || age < -int32(m.cfg.Forget) {
		return
	}
	i, ok := slices.BinarySearch(m.ids, u.Origin)
	if !ok {
		if len(m.nodes) < overlay.MaxKnown {
			m.nodes = slices.Insert(m.nodes, i, node{Update: u})
			m.ids = slices.Insert(m.ids, i, u.Origin)
		}
		return
	}
	if u.Newer(m.nodes[i].Update) {
		m.nodes[i].Update = u
	}
}

// updateLists is step 2a: nodes in vision range (or soon in it) are near nodes; of the others the closest of each
// sector is its sensor node; the rest is discarded.
func (m *Machine) updateLists() {
	for i := range m.sensors {
		m.sensors[i] = -1
	}
	for i := range m.nodes {
		n := &m.nodes[i]
		n.now = n.Ahead(m.round)
		n.dist = n.now.Dist(m.self.At)
		n.reach = m.cfg.reach(m.self.Velocity, n.Velocity)
		n.near = n.dist <= n.reach
		if !n.near && !m.gone(n.Update) {
			n.sector = sectorOf(m.self.At, n.now, m.cfg.Sectors)
			if at := m.sensors[n.sector]; at < 0 || m.nodes[at].dist > n.dist {
				m.sensors[n.sector] = i
			}
		}
	}
	kept := m.nodes[:0]
	for i := range m.nodes {
		n := &m.nodes[i]
		switch {
		case m.gone(n.Update):
			m.lose(n.Update)
			continue
		case n.near:
		case m.sensors[n.sector] == i:
			m.sensors[n.sector] = len(kept)
		default:
			continue
		}
		kept = append(kept, *n)
	}
	clear(m.nodes[len(kept):])
	m.nodes, m.ids = kept, m.ids[:0]
	for i := range kept {
		m.ids = append(m.ids, kept[i].Origin)
	}
}

// gone reports whether an update is so old that its origin must have left.
func (m *Machine) gone(u overlay.Update) bool { return int32(m.round-u.Round) > int32(m.cfg.Forget) }

// sectorOf returns the sector of a circle around center that contains p.
func sectorOf(center, p overlay.Point, sectors int) int {
	turn := math.Atan2(p.Z-center.Z, p.X-center.X)/(2*math.Pi) + .5 // 0 to 1
	return min(max(int(turn*float64(sectors)), 0), sectors-1)
}

// bisector returns the direction of a sector's middle, of length 1.
func bisector(sector, sectors int) overlay.Point {
	a := ((float64(sector)+.5)/float64(sectors) - .5) * 2 * math.Pi
	return overlay.Point{X: math.Cos(a), Z: math.Sin(a)}
}

// maxLost is the most lost nodes kept for Probe.
const maxLost = 8

// lose records a node that was silent for long.
func (m *Machine) lose(u overlay.Update) {
	if m.cfg.Probe == 0 {
		return
	}
	if i := slices.IndexFunc(m.lost, func(l overlay.Update) bool { return l.Origin == u.Origin }); i >= 0 {
		m.lost[i] = u
	} else if len(m.lost) < maxLost {
		m.lost = append(m.lost, u)
	} else {
		m.lost[m.rng.IntN(maxLost)] = u
	}
}
