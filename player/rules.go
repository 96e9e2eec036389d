package player

import (
	"fmt"
	"math"

	"github.com/voxelpopuli/voxeld/grid"
)

const (
	// EyeHeight is the height of a player's eyes above their feet, in blocks.
	EyeHeight = 1.62

	depthLimit  = 64  // blocks below the world's bottom to which a body may fall
	heightLimit = 256 // blocks above the world's top to which a body may fly
)

// Rules bound what a player's body may do. WithDefaults replaces zero fields by the default given here.
type Rules struct {
	// MaxSpeed is the greatest horizontal speed (along X and Z together), in blocks/s. Default 20.
	MaxSpeed float64
	// MaxRise is the greatest upward speed, in blocks/s. Default 20: jumping and flying up are slower.
	MaxRise float64
	// MaxFall is the greatest downward speed, in blocks/s. Default 80.
	MaxFall float64
	// Burst is how far a player may move horizontally at once after standing still, in blocks; it compensates for a
	// network that delivers moves in clumps. Default one second of MaxSpeed. Up and down get the same time.
	Burst float64
	// Reach is the greatest distance from the eyes to the nearest point of an edited block, in blocks. Default 8.
	Reach float64
	// Height is the height of the world, in blocks. Default 128.
	Height int
}

// WithDefaults returns the rules with their zero fields filled in.
func (r Rules) WithDefaults() Rules {
	for _, field := range []struct {
		value *float64
		zero  float64
	}{{&r.MaxSpeed, 20}, {&r.MaxRise, 20}, {&r.MaxFall, 80}, {&r.Reach, 8}} {
		if *field.value == 0 {
			*field.value = field.zero
		}
	}
	if r.Burst == 0 {
		r.Burst = r.MaxSpeed
	}
	if r.Height == 0 {
		r.Height = 128
	}
	return r
}

// Validate returns an error that names the first invalid field, after applying defaults.
func (r Rules) Validate() error {
	r = r.WithDefaults()
	for _, field := range []struct {
		name  string
		value float64
	}{
		{"max speed", r.MaxSpeed},
		{"max rise", r.MaxRise},
		{"max fall", r.MaxFall},
		{"burst", r.Burst},
		{"reach", r.Reach},
		{"height", float64(r.Height)},
	} {
		if !(field.value > 0) || math.IsInf(field.value, 1) { // not <= 0, so that NaN fails
			return fmt.Errorf("check movement rules: %s is %v, want a positive number", field.name, field.value)
		}
	}
	return nil
}

// InReach reports whether eyes at that position may edit the block: the nearest point of its cube is at most Reach
// away.
func (r Rules) InReach(eyeX, eyeY, eyeZ float64, block grid.Pos) bool {
	dx := gap(eyeX, float64(block.X))
	dy := gap(eyeY, float64(block.Y))
	dz := gap(eyeZ, float64(block.Z))
	return dx*dx+dy*dy+dz*dz <= r.Reach*r.Reach // false for NaN
}

// gap returns how far v is from the interval [low, low+1].
func gap(v, low float64) float64 { return max(low-v, 0, v-(low+1)) }
