package wire

import (
	"math"

	"github.com/voxelpopuli/voxeld/grid"
)

// Way is how an avatar goes on between two tellings, in 1/4096 block a tick along each axis (docs/adr/0019). The zero value
// is that of who stands. Each value is a valid one: up to 8 blocks a tick, twice what the rules allow who falls.
type Way struct {
	_       struct{} `cbor:",toarray"`
	X, Y, Z int16
}

const (
	// WayUnit is how many units of a way make a block a tick.
	WayUnit = 4096
	// WayTicks is for how long after he was told of somebody goes on along his way at most, in ticks; then he stands.
	WayTicks = 24
)

// WayOf gives the way of who goes so many blocks a tick; who is too fast for that, in any direction, has none.
func WayOf(x, y, z float64) Way {
	const most = math.MaxInt16
	x, y, z = math.Round(x*WayUnit), math.Round(y*WayUnit), math.Round(z*WayUnit)
	if max(math.Abs(x), math.Abs(y), math.Abs(z)) > most {
		return Way{}
	}
	return Way{X: int16(x), Y: int16(y), Z: int16(z)}
}

// Goes tells whether there is a way.
func (w Way) Goes() bool { return w != Way{} }

// Blocks is the way of so many ticks, in blocks.
func (w Way) Blocks(ticks float64) (x, y, z float64) {
	return float64(w.X) / WayUnit * ticks, float64(w.Y) / WayUnit * ticks, float64(w.Z) / WayUnit * ticks
}

// Along takes a pose in a chunk along the way, for so many ticks, and not out of the chunk nor out of the bounds of poses.
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
