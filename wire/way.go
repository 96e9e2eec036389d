package wire

import (
	"math"

	"github.com/voxelpopuli/voxeld/grid"
)

// Way is an avatar's velocity for dead reckoning, in 1/4096 block a tick along each axis (docs/adr/0019). The zero
// value means that the avatar stands. Every value is valid; the range is up to 8 blocks a tick, twice the fastest
// allowed fall.
type Way struct {
	_       struct{} `cbor:",toarray"`
	X, Y, Z int16
}

const (
	// WayUnit is the number of way units in a speed of one block a tick.
	WayUnit = 4096
	// WayTicks is how long an avatar is extrapolated after an update, in ticks; then it stands.
	WayTicks = 24
)

// WayOf returns the way of an avatar that moves so many blocks a tick, or the zero Way if a component is out of range.
func WayOf(x, y, z float64) Way {
	const most = math.MaxInt16
	x, y, z = math.Round(x*WayUnit), math.Round(y*WayUnit), math.Round(z*WayUnit)
	if max(math.Abs(x), math.Abs(y), math.Abs(z)) > most {
		return Way{}
	}
	return Way{X: int16(x), Y: int16(y), Z: int16(z)}
}

// Goes reports whether the way is not zero.
func (w Way) Goes() bool { return w != Way{} }

// Blocks returns the displacement after so many ticks, in blocks.
func (w Way) Blocks(ticks float64) (x, y, z float64) {
	return float64(w.X) / WayUnit * ticks, float64(w.Y) / WayUnit * ticks, float64(w.Z) / WayUnit * ticks
}

// Along returns the pose moved along the way for so many ticks, clamped to the chunk and to the bounds of poses.
func (w Way) Along(p Pose, ticks float64, at grid.ChunkPos) Pose {
	if !w.Goes() {
		return p
	}
	const hair = 1. / WayUnit
	x, y, z := w.Blocks(min(ticks, WayTicks))
	corner := at.Origin()
	west, north := float64(corner.X), float64(corner.Z)
	p.X = max(west, min(p.X+x, west+grid.ChunkSize-hair))
	p.Y = max(MinY, min(p.Y+y, MaxY))
	p.Z = max(north, min(p.Z+z, north+grid.ChunkSize-hair))
	return p
}
