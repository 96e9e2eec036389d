package interest

import (
	"math"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// cellRow is the number of cells along each side of a chunk.
const cellRow = grid.ChunkSize / sessionmsg.CellSize

// fine is the number of units of a prediction in one of a place, and steep the number in one of a climb.
const (
	fine  = sessionmsg.TickVelocityUnit / sessionmsg.PlaceUnit
	steep = sessionmsg.TickVelocityUnit / sessionmsg.ClimbUnit
)

// prediction is the prediction that clients of one tier have of an avatar.
type prediction struct {
	x, z                 int32 // in 1/128 block, from the chunk's corner, at the tick
	y                    int32 // in 1/128 block, at the tick tall
	velocityX, velocityZ int8
	climb                int8
	yaw                  uint8
	pitch                int8
	tick, tall           uint64
}

func predictionOf(p sessionmsg.Place, tick uint64) prediction {
	return prediction{x: int32(p.X) * fine, z: int32(p.Z) * fine, y: int32(p.Y) * fine, yaw: p.Yaw, pitch: p.Pitch, tick: tick, tall: tick}
}

// deviation returns the distance of the avatar from its prediction, along any axis.
func (pred *prediction) deviation(p *sessionmsg.Place, tick uint64) int32 {
	return max(pred.across(p, tick), pred.above(p, tick))
}

func (pred *prediction) across(p *sessionmsg.Place, tick uint64) int32 {
	gone := extrapolatedTicks(pred.tick, tick)
	return max(off(pred.x+int32(pred.velocityX)*gone, int32(p.X)*fine), off(pred.z+int32(pred.velocityZ)*gone, int32(p.Z)*fine))
}

func (pred *prediction) above(p *sessionmsg.Place, tick uint64) int32 {
	return off(pred.height(tick), int32(p.Y)*fine)
}

// height returns the predicted height.
func (pred *prediction) height(tick uint64) int32 {
	return pred.y + steep*int32(pred.climb)*extrapolatedTicks(pred.tall, tick)
}

// extrapolatedTicks returns for how many ticks an avatar was extrapolated since it was sent; -1 at the tick before.
func extrapolatedTicks(since, tick uint64) int32 {
	return int32(min(int64(tick-since), sessionmsg.TickExtrapolation))
}

// stops reports whether the prediction ends before the next check, and levels the same for its climb. An update is sent then even
// if the avatar has stopped just there: clients that received it later, when a cell's tier changed, would extrapolate for longer.
func (pred *prediction) stops(tier lodTier, tick uint64) bool {
	return pred.tick+sessionmsg.TickExtrapolation < tick+tierRules[tier].every && pred.velocity() != (finePos{})
}

func (pred *prediction) levels(tier lodTier, tick uint64) bool {
	return pred.tall+sessionmsg.TickExtrapolation < tick+tierRules[tier].every && pred.climb != 0
}

func (pred *prediction) velocity() finePos {
	return finePos{x: int32(pred.velocityX), z: int32(pred.velocityZ)}
}

func off(a, b int32) int32 { return max(a-b, b-a) }

func within(v, most int32) int32 { return max(-most, min(most, v)) }

// turned reports whether the viewing direction changed by at least that much.
func (pred *prediction) turned(p *sessionmsg.Place, least uint8) bool {
	yaw := int8(p.Yaw - pred.yaw)
	return off(int32(yaw), 0) >= int32(least) || off(int32(p.Pitch), int32(pred.pitch)) >= int32(least)
}

// apply applies an update to the prediction as a client does.
func (pred *prediction) apply(m *sessionmsg.Motion, tick uint64) {
	if m.HasAcross {
		pred.x, pred.z, pred.tick = int32(m.X)*fine, int32(m.Z)*fine, tick
	}
	if m.HasHeight {
		pred.y, pred.climb, pred.tall = int32(m.Y)*fine, m.Climb, tick
	}
	if m.HasVelocity {
		pred.velocityX, pred.velocityZ = m.VelocityX, m.VelocityZ
	}
	if m.HasFacing {
		pred.yaw, pred.pitch = m.Yaw, m.Pitch
	}
}

// finePos is a place in 1/128 block: horizontally from the chunk's corner, vertically from the zero of heights.
type finePos struct{ x, y, z int32 }

func finePosOf(at grid.ChunkPos, p motion.Pose) finePos {
	corner := at.Origin()
	unit := func(blocks float64) int32 { return int32(math.Round(blocks * sessionmsg.TickVelocityUnit)) }
	return finePos{unit(p.X - float64(corner.X)), unit(p.Y - motion.MinY), unit(p.Z - float64(corner.Z))}
}

func (s finePos) minus(o finePos) finePos { return finePos{s.x - o.x, s.y - o.y, s.z - o.z} }

// plus adds a fraction of a way.
func (s finePos) plus(way finePos, part, of int32) finePos {
	return finePos{s.x + way.x*part/of, s.y + way.y*part/of, s.z + way.z*part/of}
}

// across returns the longer horizontal side of a way.
func (s finePos) across() int32 { return max(off(s.x, 0), off(s.z, 0)) }
