package motion

import (
	"errors"
	"fmt"
	"math"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
)

// Pose is the position of an avatar (world blocks, feet) and its direction. Yaw 0 looks along +Z, grows clockwise seen
// from above; pitch is positive upwards. Both are in radians.
type Pose struct {
	X     float64 `json:"x"`
	Y     float64 `json:"y"`
	Z     float64 `json:"z"`
	Yaw   float32 `json:"yaw"`
	Pitch float32 `json:"pitch"`
}

// Bounds of poses in any world, in blocks.
const (
	// MinY and MaxY are both inclusive: 64 below the bottom of the world, 256 above the tallest one. A session's own
	// world is checked more strictly (player.Motion).
	MinY = -64
	MaxY = 32*chunk.MaxSections + 256

	maxXZ = float64(grid.Limit) * grid.ChunkSize
)

// Chunk returns the chunk that contains the pose, which must be valid.
func (p Pose) Chunk() grid.ChunkPos {
	return grid.ChunkPos{X: int32(math.Floor(p.X / grid.ChunkSize)), Z: int32(math.Floor(p.Z / grid.ChunkSize))}
}

// Block returns the block that the feet are in. The pose must be valid.
func (p Pose) Block() grid.Pos {
	return grid.Pos{X: int32(math.Floor(p.X)), Y: int32(math.Floor(p.Y)), Z: int32(math.Floor(p.Z))}
}

// Valid returns an error unless the pose is finite and inside the largest possible world.
func (p Pose) Valid() error {
	for _, v := range [...]float64{p.X, p.Y, p.Z, float64(p.Yaw), float64(p.Pitch)} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return errors.New("a pose must be finite")
		}
	}
	if p.X < -maxXZ || p.X >= maxXZ || p.Z < -maxXZ || p.Z >= maxXZ || p.Y < MinY || p.Y > MaxY {
		return fmt.Errorf("(%g, %g, %g) is out of the world", p.X, p.Y, p.Z)
	}
	return nil
}
