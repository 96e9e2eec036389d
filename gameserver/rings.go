package gameserver

import (
	"slices"

	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire"
)

// This file draws the rings of a vantage: which cell is told in which grade, by distance, crowd and budget.

// rings say which grade a cell is told in. Distances are in blocks, from a vantage's cell to the other one, edge to edge;
// crowds are how many avatars may be in the ring and all within it.
type rings struct {
	exactCrowd, tightCrowd int
	reach                  reach
}

// reach is how many blocks away cells may be to be told of in a grade, if no finer one reaches them.
type reach [distant]int32

const none = -1

// coarseness are the rings to choose from, the finest first. The first one is taken that the budget allows. In a crowd
// that is too large for the better grades all within 24 blocks have the same one: walkers who cross from cells of one grade
// into those of another have to be told of, which costs more than a finer grade does.
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
	// ringSlack is by how much a ring's crowd may be over its limit before a cell that was in it leaves it.
	ringSlack = 1.25
	// budgetSlack is how much of the budget finer rings than the present ones may take.
	budgetSlack = .95
	// dearest is more than the avatars of a crowd take on average in any grade, in bytes a tick: a record has up to 13, but walkers on
	// hills take 2 in the grade exact.
	dearest = 8
)

// few tells whether so many avatars may be told of in the finest rings, whatever they do.
func (s *stage) few(avatars int) bool {
	cost := float64(avatars)*dearest + s.mu.extra[0].each
	return avatars <= coarseness[0].exactCrowd && cost <= budgetSlack*s.budgetATick()
}

// budgetATick is in bytes.
func (s *stage) budgetATick() float64 { return float64(s.budget) * region.TickEvery.Seconds() }

// lay lays the finest rings around a vantage from which few are seen: grades follow from distances alone. Former tells whether they
// were drawn so before.
func (v *vantage) lay(former bool) {
	v.coarser = 0
	for i := range v.lines {
		l := &v.lines[i]
		if former && l.former[0] != unseen {
			continue // it has them
		}
		for c := range l.grades {
			l.grades[c] = coarseness[0].ring(l.blocks[c], 0, unseen)
		}
	}
}

// choose takes the finest rings that the budget allows.
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

// lineShift makes room for a cell (see cellSet) behind the number of a line.
const lineShift = 4

// ring is the grade of a cell, so many blocks away, with such a crowd in it and all nearer ones.
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
