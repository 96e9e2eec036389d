package interest

import (
	"math"
	"math/bits"
)

// This file decides when an avatar's motion has to be sent, and encodes it: one piece for each cell, tier and tick,
// shared by all recipients.
//
// Clients extrapolate an avatar from its last velocity. An update is needed only when the extrapolation is too far off;
// a tier defines how far.

// lodTier is an LOD tier: how exactly a cell is sent. Each tier's pieces are for its own recipients: those of a coarser
// tier may contain updates that those of a finer one lack.
type lodTier uint8

const (
	exact   lodTier = iota // the nearest, in a small crowd: every move
	tight                  // the next, in a crowd
	near                   // within 24 blocks, however many avatars there are
	fair                   // instead, where near would exceed the budget
	loose                  // instead of fair, in a larger crowd
	far                    // instead of loose, in a still larger crowd; and in any case up to 64 blocks
	distant                // checked once a second
	tiers
	unseen lodTier = math.MaxUint8
)

// tierRules are the tiers' bounds. When checked, an avatar is where clients predict it to be, within error along each
// axis; between two checks it may move on.
var tierRules = [tiers]struct {
	error int32  // in 1/128 block
	turn  uint8  // of the yaw, in 1/256 turn; the same of the pitch, in half that
	every uint64 // ticks between two checks
}{
	exact:   {2, 2, 1},
	tight:   {14, 8, 1},
	near:    {28, 24, 1},
	fair:    {32, 32, 1},
	loose:   {50, 40, 1},
	far:     {100, 48, 1},
	distant: {128, 64, 20},
}

// Moves arrive at the clients' rate and over a network, and regions receive them in batches: a tick may see none of a
// walker's moves, and another one two. The walker has not stopped and started again, and no update must be sent.
const (
	// silentTicks is for how long an avatar without updates is assumed to go on as before.
	silentTicks = 3
	// slipTicks is for how many checks an avatar may be a tick early or late before clients are updated.
	slipTicks = 4
	// slipMost is the maximum distance of an early or late avatar from its prediction: what a walker covers in a tick.
	// slipError is the maximum distance from the predicted path then. In 1/128 block.
	slipMost, slipError = 32, 4
)

// tierSet is a set of tiers.
type tierSet uint8

const allTiers tierSet = 1<<tiers - 1

func only(tier lodTier) tierSet         { return 1 << tier }
func (s tierSet) has(tier lodTier) bool { return s&only(tier) != 0 }

// next removes the finest tier from a set that is not empty, and returns it.
func (s *tierSet) next() lodTier {
	tier := lodTier(bits.TrailingZeros8(uint8(*s)))
	*s &= *s - 1
	return tier
}

// dueIn returns the tiers that are checked in a turn.
func dueIn(turn uint64) tierSet {
	due := eachTurn
	for left := allTiers &^ eachTurn; left != 0; {
		if tier := left.next(); turn%tierRules[tier].every == 0 {
			due |= only(tier)
		}
	}
	return due
}

// eachTurn are the tiers that are checked in each turn.
var eachTurn = func() (each tierSet) {
	for g, rule := range tierRules {
		if rule.every == 1 {
			each |= only(lodTier(g))
		}
	}
	return each
}()

// stepError is the maximum error while an avatar goes up or down a block, in 1/128 block: the way of two ticks. Its
// landing can be predicted when it is sent after that; otherwise every tick of a step would cost a record.
const stepError = 52

// toleratesSteps reports whether stepError applies in the tier.
func (tier lodTier) toleratesSteps() bool { return tier >= fair }
