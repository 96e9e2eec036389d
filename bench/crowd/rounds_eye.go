package crowd

import (
	"math"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
)

// This file is what players of rounds see.

// A player's yaw says which round it is, modulo stampRounds: 360/256 degrees are the finest that tick frames tell. The yaws of rounds
// that follow one another are so far apart that no grade takes the turn for none (gameserver/grades.go).
const (
	stampRounds = 256
	stampTurn   = 159
	stampBack   = 95 // stampTurn · stampBack = 1 modulo 256
)

// stampOf is the yaw of a round.
func stampOf(round int32) uint8 { return uint8(round * stampTurn) }

// yawOf is the same in radians.
func yawOf(round int32) float32 { return wire.Place{Yaw: stampOf(round)}.Pose(grid.ChunkPos{}).Yaw }

// roundOf is the newest round with that yaw before another one; below 0 if there was none.
func roundOf(yaw uint8, before int32) int32 {
	newest := before - 1
	return newest - int32(uint8(newest-int32(yaw)*stampBack))
}

// elsewhere is how far from where he was in a round an avatar may be shown, in blocks: less than a step. When an avatar comes nearer
// a gateway says first where its clients took it to be, with the newest yaw; that is no news of where it is.
const elsewhere = .6

// Tick is for wire.ReadTick.
func (p *gamer) Tick(uint16) {}

// News takes in who came.
func (p *gamer) News(n *wire.TickNews) {
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
		p.see(origin, a.Yaw, a.Pose(n.Chunk))
	}
}

// Motion takes in who moved.
func (p *gamer) Motion(at grid.ChunkPos, m *wire.Motion) {
	if !m.HasFacing || int(m.Index) >= len(p.actors) {
		return
	}
	pose := wire.Pose{X: math.NaN()}
	if m.HasAcross {
		pose = m.Pose(at)
	}
	p.see(p.actors[m.Index], m.Yaw, pose)
}

// see takes note of an update, if it is news. A pose without X says nothing of where.
func (p *gamer) see(origin int32, yaw uint8, pose wire.Pose) {
	if origin < 0 || origin == p.number {
		return
	}
	o := p.g.players[origin]
	of := roundOf(yaw, o.begun)
	if of < 0 || of < p.newest[origin] {
		return
	}
	was := p.g.spot(int(of), int(origin))
	if !math.IsNaN(pose.X) && math.Hypot(was.X-pose.X, was.Z-pose.Z) > elsewhere {
		p.strange++
		return
	}
	if reach := p.g.o.Reach; reach > 0 {
		own := p.g.spot(max(int(p.begun)-1, 0), int(p.number))
		if math.Hypot(was.X-own.X, was.Z-own.Z) > reach {
			return
		}
	}
	p.newest[origin] = of + 1
	p.told = append(p.told, Told{Round: o.begun, Of: of, Receiver: p.number, Origin: origin})
	p.delay.Add(p.at.Sub(o.sent[of]).Seconds())
}
