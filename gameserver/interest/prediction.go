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
type prediction struct{ sessionmsg.Prediction }

func predictionOf(p sessionmsg.Place, tick uint64) prediction {
	return prediction{sessionmsg.PredictionOf(p, tick)}
}

// deviation returns the distance of the avatar from its prediction, along any axis.
func (pred *prediction) deviation(p *sessionmsg.Place, tick uint64) int32 {
	return max(pred.across(p, tick), pred.above(p, tick))
}

func (pred *prediction) across(p *sessionmsg.Place, tick uint64) int32 {
	x, z := pred.Across(tick)
	return max(off(x, int32(p.X)*fine), off(z, int32(p.Z)*fine))
}

func (pred *prediction) above(p *sessionmsg.Place, tick uint64) int32 {
	return off(pred.Height(tick), int32(p.Y)*fine)
}

// stops reports whether the prediction ends before the next check, and levels the same for its climb. An update is sent
// then even if the avatar has stopped just there: clients that received it later, when a cell's tier changed, would
// extrapolate for longer.
func (pred *prediction) stops(tier lodTier, tick uint64) bool {
	return pred.Since+sessionmsg.TickExtrapolation < tick+tierRules[tier].every && pred.velocity() != (finePos{})
}

func (pred *prediction) levels(tier lodTier, tick uint64) bool {
	return pred.Tall+sessionmsg.TickExtrapolation < tick+tierRules[tier].every && pred.Climb != 0
}

func (pred *prediction) velocity() finePos {
	return finePos{x: int32(pred.VelocityX), z: int32(pred.VelocityZ)}
}

func off(a, b int32) int32 { return max(a-b, b-a) }

func within(v, most int32) int32 { return max(-most, min(most, v)) }

// turned reports whether the viewing direction changed by at least that much.
func (pred *prediction) turned(p *sessionmsg.Place, least uint8) bool {
	yaw := int8(p.Yaw - pred.Yaw)
	return off(int32(yaw), 0) >= int32(least) || off(int32(p.Pitch), int32(pred.Pitch)) >= int32(least)
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
func (s finePos) plus(distance finePos, part, of int32) finePos {
	return finePos{s.x + distance.x*part/of, s.y + distance.y*part/of, s.z + distance.z*part/of}
}

// across returns the longer horizontal side of a way.
func (s finePos) across() int32 { return max(off(s.x, 0), off(s.z, 0)) }
