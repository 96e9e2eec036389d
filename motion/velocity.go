package motion

import (
	"math"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
)

// Velocity is an avatar's velocity for dead reckoning, in 1/4096 block a tick along each axis (docs/adr/0019). The zero
// value means that the avatar stands. Every value is valid; the range is up to 8 blocks a tick, twice the fastest
// allowed fall.
type Velocity struct {
	_       struct{} `cbor:",toarray"`
	X, Y, Z int16
}

// TickEvery is the length of a tick: 20 ticks a second (VoxelPopuli §3.2.3).
const TickEvery = 50 * time.Millisecond

const (
	// VelocityUnit is the number of velocity units in a speed of one block a tick.
	VelocityUnit = 4096
	// ExtrapolationTicks is how long an avatar is extrapolated after an update, in ticks; then it stands.
	ExtrapolationTicks = 24
)

// VelocityOf returns the velocity of an avatar that moves so many blocks a tick, or the zero Velocity if a component is
// out of range.
func VelocityOf(x, y, z float64) Velocity {
	const most = math.MaxInt16
	x, y, z = math.Round(x*VelocityUnit), math.Round(y*VelocityUnit), math.Round(z*VelocityUnit)
	if max(math.Abs(x), math.Abs(y), math.Abs(z)) > most {
		return Velocity{}
	}
	return Velocity{X: int16(x), Y: int16(y), Z: int16(z)}
}

// Moving reports whether the velocity is not zero.
func (w Velocity) Moving() bool { return w != Velocity{} }

// Displacement returns the displacement after so many ticks, in blocks.
func (w Velocity) Displacement(ticks float64) (x, y, z float64) {
	return float64(w.X) / VelocityUnit * ticks, float64(w.Y) / VelocityUnit * ticks, float64(w.Z) / VelocityUnit * ticks
}

// Extrapolate returns the pose moved with the velocity for so many ticks, clamped to the chunk and to the bounds of
// poses.
func (w Velocity) Extrapolate(p Pose, ticks float64, at grid.ChunkPos) Pose {
	if !w.Moving() {
		return p
	}
	const hair = 1. / VelocityUnit
	x, y, z := w.Displacement(min(ticks, ExtrapolationTicks))
	corner := at.Origin()
	west, north := float64(corner.X), float64(corner.Z)
	p.X = max(west, min(p.X+x, west+grid.ChunkSize-hair))
	p.Y = max(MinY, min(p.Y+y, MaxY))
	p.Z = max(north, min(p.Z+z, north+grid.ChunkSize-hair))
	return p
}

// Coast moves a pose on by so many ticks, of the ticks of extrapolation that are left, as Extrapolate does. It returns
// the velocity from then on: when the extrapolation ends, the avatar stands.
func (w Velocity) Coast(p Pose, ticks, left float64, at grid.ChunkPos) (Pose, Velocity) {
	p = w.Extrapolate(p, min(ticks, left), at)
	if ticks >= left {
		w = Velocity{}
	}
	return p, w
}
