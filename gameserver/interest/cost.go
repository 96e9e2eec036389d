package interest

// costTicks is the number of ticks over which the cost of motion is smoothed.
const costTicks = 60

const (
	// budgetSlack is the fraction of the budget that a finer profile than the current one may take.
	budgetSlack = .95
	// maxAvatarCost exceeds the average cost of an avatar of a crowd in any tier, in bytes a tick: a record has up to
	// 13, but walkers on hills take 2 in the tier exact.
	maxAvatarCost = 8
	// usualSurplus is the initial value of extraCost.each.
	usualSurplus = 40
)

// costs measures what motion costs, to keep sessions within the budget.
type costs struct {
	budget  float64        // maximum bytes a tick of a session's motion, as far as LOD profiles can keep it
	avatars int            // in buckets with costObservers
	tier    [tiers]float64 // bytes a tick of an avatar in each tier, smoothed; of these buckets
	extra   [len(lodProfiles)]extraCost
}

func newCosts(budget float64) costs {
	c := costs{budget: budget}
	c.tier = [tiers]float64{exact: 2.4, tight: 1, near: .8, fair: .6, loose: .55, far: .5, distant: .2} // initial values
	for k := range c.extra {
		c.extra[k].each = usualSurplus
	}
	return c
}

// fitsFinest reports whether that many avatars fit into the budget in the finest profile, however they move.
func (c *costs) fitsFinest(avatars int) bool {
	cost := float64(avatars)*maxAvatarCost + c.extra[0].each
	return avatars <= lodProfiles[0].exactCrowd && cost <= budgetSlack*c.budget
}

// measure adds the bytes of a tick's pieces, by tier.
func (c *costs) measure(bytes *[tiers]int) {
	if c.avatars == 0 {
		return
	}
	for tier := range bytes {
		c.tier[tier] += (float64(bytes[tier])/float64(c.avatars) - c.tier[tier]) / costTicks
	}
}

// measureExtra adds a session's bytes of a tick besides the pieces.
func (c *costs) measureExtra(profile, bytes int) {
	c.extra[profile].bytes += bytes
	c.extra[profile].sessions++
}

// smooth ends a tick.
func (c *costs) smooth() {
	for k := range c.extra {
		c.extra[k].smooth()
	}
}

// addObservers adds to the number of observers that need the bucket's cost in every tier.
func (c *costs) addObservers(bkt *bucket, more int) {
	before := bkt.costObservers
	switch bkt.costObservers += more; {
	case before == 0:
		c.avatars += bkt.avatars
	case bkt.costObservers == 0:
		c.avatars -= bkt.avatars
	}
}

// extraCost is the cost of updates besides the pieces of cells, for sessions with one profile: of avatars whose tier
// changes.
type extraCost struct {
	each            float64 // bytes a tick, smoothed; decays slowly to usualSurplus while no session has the profile
	bytes, sessions int     // in this tick
}

func (s *extraCost) smooth() {
	if s.sessions > 0 {
		s.each += (float64(s.bytes)/float64(s.sessions) - s.each) / costTicks
	} else {
		s.each += (usualSurplus - s.each) / (20 * costTicks)
	}
	s.bytes, s.sessions = 0, 0
}
