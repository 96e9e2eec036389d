package player

import (
	"math"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
)

// Reasons of Motion.Check for refusing a move. They are sent to clients (docs/protocol.md), so they must never change.
const (
	// NotFinite: a coordinate or an angle is NaN or infinite.
	NotFinite string = "not_finite"
	// OutOfWorld: the position is beyond the world's bounds.
	OutOfWorld string = "out_of_world"
	// TooFast: the distance exceeds the player's budget.
	TooFast string = "too_fast"
)

// Motion checks one player's moves against the rules, with budgets of blocks that grow with the server's time.
//
// There are three budgets, each a token bucket: across, up and down. Each grows by the speed in the rules, up to Burst
// (up and down: up to the growth in the same time), and shrinks by the distance of each move. A refused move costs
// nothing and does not move the player, so after a correction the next move counts from the last good position. Neither
// a refusal nor a correction refills a budget; otherwise players could travel by being corrected.
type Motion struct {
	rules   Rules
	x, y, z float64       // last good position
	now     time.Duration // time up to which the budgets have grown
	across  bucket
	up      bucket
	down    bucket
}

// NewMotion returns the motion of a player at a position, with full budgets. Zero fields of the rules get their
// defaults; Validate must accept them. now is the reading of any clock that does not run backwards.
func NewMotion(rules Rules, now time.Duration, x, y, z float64) *Motion {
	rules = rules.WithDefaults()
	span := rules.Burst / rules.MaxSpeed // seconds
	return &Motion{
		rules: rules, now: now,
		x: x, y: y, z: z,
		across: fullBucket(rules.MaxSpeed, span),
		up:     fullBucket(rules.MaxRise, span),
		down:   fullBucket(rules.MaxFall, span),
	}
}

// Check moves the player's feet to a position if the rules allow it. Otherwise it returns one of the reasons above, and
// the player stays at the position of At. Angles are in radians and only have to be finite.
func (m *Motion) Check(now time.Duration, x, y, z float64, yaw, pitch float32) (ok bool, reason string) {
	m.grow(now)
	for _, v := range [...]float64{x, y, z, float64(yaw), float64(pitch)} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false, NotFinite
		}
	}
	if !m.rules.inWorld(x, y, z) {
		return false, OutOfWorld
	}
	across, up, down := math.Hypot(x-m.x, z-m.z), max(0, y-m.y), max(0, m.y-y)
	if !m.across.holds(across) || !m.up.holds(up) || !m.down.holds(down) {
		return false, TooFast
	}
	m.across.blocks -= across
	m.up.blocks -= up
	m.down.blocks -= down
	m.x, m.y, m.z = x, y, z
	return true, ""
}

// At returns the last good position, to which a correction moves the player.
func (m *Motion) At() (x, y, z float64) { return m.x, m.y, m.z }

// Reset moves the player on behalf of the server: a correction for another reason, or a teleport. The budgets do not
// change.
func (m *Motion) Reset(x, y, z float64) { m.x, m.y, m.z = x, y, z }

func (m *Motion) grow(now time.Duration) {
	if now <= m.now {
		return
	}
	seconds := (now - m.now).Seconds()
	m.now = now
	m.across.grow(seconds)
	m.up.grow(seconds)
	m.down.grow(seconds)
}

// inWorld reports whether finite feet are within the bounds: |x|, |z| < Limit chunks, -64 ≤ y ≤ Height + 256.
func (r Rules) inWorld(x, y, z float64) bool {
	const edge = grid.Limit * grid.ChunkSize
	return math.Abs(x) < edge && math.Abs(z) < edge && y >= -depthLimit && y <= float64(r.Height)+heightLimit
}

// bucket is a budget of blocks.
type bucket struct {
	blocks float64 // 0 to most, except for rounding
	most   float64
	rate   float64 // blocks/s
}

// slack, in blocks, tolerates rounding: a client that moves at exactly the allowed speed must pass.
const slack = 1e-6

func fullBucket(rate, span float64) bucket {
	return bucket{blocks: rate * span, most: rate * span, rate: rate}
}

func (b *bucket) grow(seconds float64) { b.blocks = min(b.most, b.blocks+b.rate*seconds) }

func (b *bucket) holds(distance float64) bool { return distance <= b.blocks+slack }
