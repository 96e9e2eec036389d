package gameserver

import (
	"slices"

	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire"
)

// This file chooses the tier of each cell in view of an observer, by distance, crowd and budget.

// rings is an LOD profile: it assigns tiers to cells. Distances are in blocks, from the observer's cell to the other one, edge to
// edge; crowds are the maximum numbers of avatars in the tier's ring and all within it.
type rings struct {
	exactCrowd, tightCrowd int
	reach                  reach
}

// reach is the maximum distance, in blocks, of each tier's cells, where no finer tier applies.
type reach [distant]int32

const none = -1

// coarseness are the available profiles, the finest first. The first one within the budget is chosen. In a crowd that is too
// large for the better tiers, all cells within 24 blocks have the same one: walkers who cross between cells of different tiers
// need extra updates, which cost more than a finer tier does.
var coarseness = [...]rings{
	{128, 384, reach{exact: 48, tight: 32, near: 24, fair: 32, loose: none, far: 64}},
	{64, 192, reach{exact: 48, tight: 32, near: 24, fair: none, loose: none, far: 64}},
	{32, 96, reach{exact: 48, tight: 32, near: 24, fair: none, loose: none, far: 64}},
	{0, 0, reach{exact: none, tight: none, near: 24, fair: none, loose: none, far: 48}},
	{0, 0, reach{exact: none, tight: none, near: none, fair: 24, loose: none, far: 32}},
	{0, 0, reach{exact: none, tight: none, near: none, fair: none, loose: 24, far: 32}},
	{0, 0, reach{exact: none, tight: none, near: none, fair: none, loose: none, far: 24}},
	{0, 0, reach{exact: none, tight: none, near: none, fair: none, loose: none, far: 1}},
	{0, 0, reach{exact: none, tight: none, near: none, fair: none, loose: none, far: none}},
}

const (
	// ringSlack is how far a ring's crowd may exceed its limit before a cell that was in it leaves it.
	ringSlack = 1.25
	// budgetSlack is the fraction of the budget that a finer profile than the current one may take.
	budgetSlack = .95
	// dearest exceeds the average cost of an avatar of a crowd in any tier, in bytes a tick: a record has up to 13, but walkers
	// on hills take 2 in the tier exact.
	dearest = 8
)

// few reports whether that many avatars fit into the budget in the finest profile, however they move.
func (s *stage) few(avatars int) bool {
	cost := float64(avatars)*dearest + s.mu.extra[0].each
	return avatars <= coarseness[0].exactCrowd && cost <= budgetSlack*s.budgetATick()
}

// budgetATick is in bytes.
func (s *stage) budgetATick() float64 { return float64(s.budget) * region.TickEvery.Seconds() }

// lay applies the finest profile to an observer that sees few avatars: tiers depend on distances alone. Former reports whether
// this was so before.
func (v *vantage) lay(former bool) {
	v.coarser = 0
	for i := range v.lines {
		l := &v.lines[i]
		if former && l.former[0] != unseen {
			continue // unchanged
		}
		for c := range l.grades {
			l.grades[c] = coarseness[0].ring(l.blocks[c], 0, unseen)
		}
	}
}

// choose applies the finest profile within the budget.
func (s *stage) choose(v *vantage) {
	s.nearest = s.nearest[:0]
	for i := range v.lines {
		for c, blocks := range v.lines[i].blocks {
			s.nearest = append(s.nearest, uint64(blocks)<<32|uint64(i)<<lineShift|uint64(c))
		}
	}
	slices.Sort(s.nearest)
	for k := range coarseness {
		budget := s.budgetATick()
		if k < v.coarser {
			budget *= budgetSlack
		}
		crowd, cost := 0, s.mu.extra[k].each
		for _, near := range s.nearest {
			l, c := &v.lines[uint32(near)>>lineShift], near%wire.CellsPerChunk
			n := len(l.plot.cells[c].actors)
			crowd += n
			l.grades[c] = coarseness[k].ring(l.blocks[c], crowd, l.former[c])
			cost += float64(n) * s.mu.cost[l.grades[c]]
		}
		if cost <= budget || k == len(coarseness)-1 {
			v.coarser = k
			return
		}
	}
}

// lineShift makes room for a cell (see cellSet) below the number of a bucket view.
const lineShift = 4

// ring returns the tier of a cell at that distance, with that crowd in it and all nearer ones.
func (r *rings) ring(blocks int32, crowd int, former grade) grade {
	within := func(g grade, most int) bool {
		if former == g {
			return float64(crowd) <= ringSlack*float64(most)
		}
		return crowd <= most
	}
	g := exact
	for g < distant && blocks > r.reach[g] || g == exact && !within(exact, r.exactCrowd) || g == tight && !within(tight, r.tightCrowd) {
		g++
	}
	return g
}
