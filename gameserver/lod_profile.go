package gameserver

import (
	"slices"

	"github.com/voxelpopuli/voxeld/wire/sessionmsg"

	"github.com/voxelpopuli/voxeld/region"
)

// This file chooses the tier of each cell in view of an observer, by distance, crowd and budget.

// lodProfile is an LOD profile: it assigns tiers to cells. Distances are in blocks, from the observer's cell to the other one,
// edge to edge; crowds are the maximum numbers of avatars in the tier's ring and all within it.
type lodProfile struct {
	exactCrowd, tightCrowd int
	reach                  reach
}

// reach is the maximum distance, in blocks, of each tier's cells, where no finer tier applies.
type reach [distant]int32

const none = -1

// lodProfiles are the available profiles, the finest first. The first one within the budget is chosen. In a crowd that is too
// large for the better tiers, all cells within 24 blocks have the same one: walkers who cross between cells of different tiers
// need extra updates, which cost more than a finer tier does.
var lodProfiles = [...]lodProfile{
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
	// profileSlack is how far a ring's crowd may exceed its limit before a cell that was in it leaves it.
	profileSlack = 1.25
	// budgetSlack is the fraction of the budget that a finer profile than the current one may take.
	budgetSlack = .95
	// maxAvatarCost exceeds the average cost of an avatar of a crowd in any tier, in bytes a tick: a record has up to 13, but
	// walkers on hills take 2 in the tier exact.
	maxAvatarCost = 8
)

// fitsFinest reports whether that many avatars fit into the budget in the finest profile, however they move.
func (ix *interestIndex) fitsFinest(avatars int) bool {
	cost := float64(avatars)*maxAvatarCost + ix.mu.extra[0].each
	return avatars <= lodProfiles[0].exactCrowd && cost <= budgetSlack*ix.budgetATick()
}

// budgetATick is in bytes.
func (ix *interestIndex) budgetATick() float64 {
	return float64(ix.budget) * region.TickEvery.Seconds()
}

// applyFinest applies the finest profile to an observer that sees few avatars: tiers depend on distances alone. Former reports
// whether this was so before.
func (obs *observer) applyFinest(former bool) {
	obs.profile = 0
	for i := range obs.views {
		bv := &obs.views[i]
		if former && bv.former[0] != unseen {
			continue // unchanged
		}
		for c := range bv.tiers {
			bv.tiers[c] = lodProfiles[0].tier(bv.blocks[c], 0, unseen)
		}
	}
}

// chooseProfile applies the finest profile within the budget.
func (ix *interestIndex) chooseProfile(obs *observer) {
	ix.nearest = ix.nearest[:0]
	for i := range obs.views {
		for c, blocks := range obs.views[i].blocks {
			ix.nearest = append(ix.nearest, uint64(blocks)<<32|uint64(i)<<viewShift|uint64(c))
		}
	}
	slices.Sort(ix.nearest)
	for k := range lodProfiles {
		budget := ix.budgetATick()
		if k < obs.profile {
			budget *= budgetSlack
		}
		crowd, cost := 0, ix.mu.extra[k].each
		for _, near := range ix.nearest {
			bv, c := &obs.views[uint32(near)>>viewShift], near%sessionmsg.CellsPerChunk
			n := len(bv.bucket.cells[c].actors)
			crowd += n
			bv.tiers[c] = lodProfiles[k].tier(bv.blocks[c], crowd, bv.former[c])
			cost += float64(n) * ix.mu.cost[bv.tiers[c]]
		}
		if cost <= budget || k == len(lodProfiles)-1 {
			obs.profile = k
			return
		}
	}
}

// viewShift makes room for a cell (see cellSet) below the number of a bucket view.
const viewShift = 4

// tier returns the tier of a cell at that distance, with that crowd in it and all nearer ones.
func (profile *lodProfile) tier(blocks int32, crowd int, former lodTier) lodTier {
	within := func(tier lodTier, most int) bool {
		if former == tier {
			return float64(crowd) <= profileSlack*float64(most)
		}
		return crowd <= most
	}
	tier := exact
	for tier < distant && blocks > profile.reach[tier] || tier == exact && !within(exact, profile.exactCrowd) || tier == tight && !within(tight, profile.tightCrowd) {
		tier++
	}
	return tier
}
