package sessionmsg

import (
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
)

// Prediction is what a client knows of an avatar's motion, and so where it shows the avatar. The gateway computes the
// same, to send an update when the avatar is elsewhere. Coordinates are in 1/128 block: X and Z from the chunk's
// corner, Y as in a Place.
type Prediction struct {
	X, Z                 int32 // at the tick Since
	Y                    int32 // at the tick Tall
	VelocityX, VelocityZ int8  // as in Motion
	Climb                int8
	Yaw                  uint8
	Pitch                int8
	Since, Tall          uint64
}

// The numbers of units of a prediction in one of a place, and in one of a climb.
const (
	finePlace = TickVelocityUnit / PlaceUnit
	fineClimb = TickVelocityUnit / ClimbUnit
)

// PredictionOf returns the prediction of an avatar that stands at a place.
func PredictionOf(p Place, tick uint64) Prediction {
	return Prediction{
		X: int32(p.X) * finePlace, Z: int32(p.Z) * finePlace, Y: int32(p.Y) * finePlace,
		Yaw: p.Yaw, Pitch: p.Pitch, Since: tick, Tall: tick,
	}
}

// Apply applies an update of a tick.
func (p *Prediction) Apply(m *Motion, tick uint64) {
	if m.HasAcross {
		p.X, p.Z, p.Since = int32(m.X)*finePlace, int32(m.Z)*finePlace, tick
	}
	if m.HasHeight {
		p.Y, p.Climb, p.Tall = int32(m.Y)*finePlace, m.Climb, tick
	}
	if m.HasVelocity {
		p.VelocityX, p.VelocityZ = m.VelocityX, m.VelocityZ
	}
	if m.HasFacing {
		p.Yaw, p.Pitch = m.Yaw, m.Pitch
	}
}

// Across returns X and Z at a tick, which may be one before Since.
func (p *Prediction) Across(tick uint64) (x, z int32) {
	gone := extrapolatedTicks(p.Since, tick)
	return p.X + int32(p.VelocityX)*gone, p.Z + int32(p.VelocityZ)*gone
}

// Height returns Y at a tick, which may be one before Tall.
func (p *Prediction) Height(tick uint64) int32 {
	return p.Y + fineClimb*int32(p.Climb)*extrapolatedTicks(p.Tall, tick)
}

// extrapolatedTicks returns for how many ticks an avatar was extrapolated since it was sent; -1 at the tick before.
func extrapolatedTicks(since, tick uint64) int32 {
	return int32(min(int64(tick-since), TickExtrapolation))
}

// Pose returns the pose in a chunk, so many ticks after a tick.
func (p *Prediction) Pose(at grid.ChunkPos, tick uint64, after float64) motion.Pose {
	gone := min(float64(tick-p.Since)+after, TickExtrapolation)
	risen := min(float64(tick-p.Tall)+after, TickExtrapolation)
	corner, pose := at.Origin(), Place{Yaw: p.Yaw, Pitch: p.Pitch}.Pose(at)
	pose.X = float64(corner.X) + (float64(p.X)+float64(p.VelocityX)*gone)/TickVelocityUnit
	pose.Y = motion.MinY + (float64(p.Y)+fineClimb*float64(p.Climb)*risen)/TickVelocityUnit
	pose.Z = float64(corner.Z) + (float64(p.Z)+float64(p.VelocityZ)*gone)/TickVelocityUnit
	return pose
}
