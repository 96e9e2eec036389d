package crowd

import (
	"math"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// This file decodes what players of rounds receive.

// A player's yaw identifies the round modulo yawRounds: tick frames resolve 360/256 degrees. The yaws of
// consecutive rounds are far enough apart that every LOD tier sends the turn (gameserver/interest/tier.go).
const (
	yawRounds  = 256
	yawStep    = 159
	yawInverse = 95 // yawStep · yawInverse = 1 modulo yawRounds
)

// yawByte returns the yaw of a round.
func yawByte(round int32) uint8 { return uint8(round * yawStep) }

// yawOf returns the yaw of a round in radians.
func yawOf(round int32) float32 {
	return sessionmsg.Place{Yaw: yawByte(round)}.Pose(grid.ChunkPos{}).Yaw
}

// roundOf returns the newest round with that yaw before another one; it is below 0 if there is none.
func roundOf(yaw uint8, before int32) int32 {
	newest := before - 1
	return newest - int32(uint8(newest-int32(yaw)*yawInverse))
}

// maxOffset is the tolerance, in blocks, between where an avatar is shown and where it was in that round: less than a
// step. When an avatar comes nearer, a gateway first sends the position that its clients extrapolated, with the
// newest yaw. That does not count as an update.
const maxOffset = .6

// Tick implements sessionmsg.ReadTick's interface.
func (p *roundClient) Tick(uint16) {}

// Delta records the avatars that have come into view.
func (p *roundClient) Delta(n *sessionmsg.TickDelta) {
	for i := range n.Enter {
		a := &n.Enter[i]
		for int(a.Index) >= len(p.actors) {
			p.actors = append(p.actors, -1)
		}
		origin, known := p.g.numbers[a.Player]
		if !known {
			origin = -1
		}
		p.actors[a.Index] = origin
		p.recordUpdate(origin, a.Yaw, a.Pose(n.Chunk))
	}
}

// Motion records the avatars that have moved.
func (p *roundClient) Motion(at grid.ChunkPos, m *sessionmsg.Motion) {
	if !m.HasFacing || int(m.Index) >= len(p.actors) {
		return
	}
	pose := motion.Pose{X: math.NaN()}
	if m.HasAcross {
		pose = m.Pose(at)
	}
	p.recordUpdate(p.actors[m.Index], m.Yaw, pose)
}

// recordUpdate records an update, if it is new. A pose without X has no position.
func (p *roundClient) recordUpdate(origin int32, yaw uint8, pose motion.Pose) {
	if origin < 0 || origin == p.number {
		return
	}
	o := p.g.players[origin]
	of := roundOf(yaw, o.begun)
	if of < 0 || of < p.newest[origin] {
		return
	}
	was := p.g.position(int(of), int(origin))
	if !math.IsNaN(pose.X) && math.Hypot(was.X-pose.X, was.Z-pose.Z) > maxOffset {
		return // they were not there in that round
	}
	if reach := p.g.o.Range; reach > 0 {
		own := p.g.position(max(int(p.begun)-1, 0), int(p.number))
		if math.Hypot(was.X-own.X, was.Z-own.Z) > reach {
			return
		}
	}
	p.newest[origin] = of + 1
	p.updates = append(p.updates, Update{Round: o.begun, Of: of, Receiver: p.number, Origin: origin})
	p.delay.Add(p.at.Sub(o.sent[of]).Seconds())
}
