package interest

// This file chooses the tier of each cell in view of an observer, by distance, crowd and budget.

// profileSlack is how far a ring's crowd may exceed its limit before a cell that was in it leaves it.
const profileSlack = 1.25

// lodProfile is an LOD profile: it assigns tiers to cells. Distances are in blocks, from the observer's cell to the
// other one, edge to edge; crowds are the maximum numbers of avatars in the tier's ring and all within it.
type lodProfile struct {
	exactCrowd, tightCrowd int
	reach                  reach
}

// reach is the maximum distance, in blocks, of each tier's cells, where no finer tier applies.
type reach [distant]int32

const none = -1

// lodProfiles are the available profiles, the finest first. The first one within the budget is chosen. In a crowd that
// is too large for the better tiers, all cells within 24 blocks have the same one: walkers who cross between cells of
// different tiers need extra updates, which cost more than a finer tier does.
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
