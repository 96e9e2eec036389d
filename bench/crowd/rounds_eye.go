package crowd

import (
	"errors"
	"math"
	"time"

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

// read takes in what the player is sent until the connection ends.
func (p *gamer) read() error {
	r := &p.reader
	for _, frame := range r.early {
		if err := wire.ReadTick(frame, p); err != nil {
			return err
		}
	}
	r.early = nil
	for {
		message, err := wire.ReadMessage(p.in, r.buffer, wire.MaxServerLine)
		if err != nil {
			return err
		}
		r.buffer, r.at = message, time.Now()
		if begun := p.begun.Load(); begun > 0 {
			r.in[begun-1] += uint32(len(message)) + lengthBytes(len(message))
		}
		if message[0] == wire.TickFrame {
			if err := wire.ReadTick(message, p); err != nil {
				return err
			}
			continue
		}
		if len(message) > 1024 {
			continue // land
		}
		decoded, err := wire.DecodeServerCBOR(message)
		if err != nil {
			return err
		}
		switch m := decoded.(type) {
		case wire.Correction:
			r.corrections++
		case wire.Failure:
			return errors.New(m.Code + ": " + m.Message)
		}
	}
}

// lengthBytes is how long the length before a message is.
func lengthBytes(n int) uint32 {
	switch {
	case n < 1<<7:
		return 1
	case n < 1<<14:
		return 2
	}
	return 3
}

// Tick is for wire.ReadTick.
func (p *gamer) Tick(uint16) {}

// News takes in who came.
func (p *gamer) News(n *wire.TickNews) {
	for i := range n.Enter {
		a := &n.Enter[i]
		for int(a.Index) >= len(p.reader.actors) {
			p.reader.actors = append(p.reader.actors, -1)
		}
		origin, known := p.g.numbers[a.Player]
		if !known {
			origin = -1
		}
		p.reader.actors[a.Index] = origin
		p.see(origin, a.Yaw, a.Pose(n.Chunk))
	}
}

// Motion takes in who moved.
func (p *gamer) Motion(at grid.ChunkPos, m *wire.Motion) {
	if !m.HasFacing || int(m.Index) >= len(p.reader.actors) {
		return
	}
	pose := wire.Pose{X: math.NaN()}
	if m.HasAcross {
		pose = m.Pose(at)
	}
	p.see(p.reader.actors[m.Index], m.Yaw, pose)
}

// see takes note of an update, if it is news. A pose without X says nothing of where.
func (p *gamer) see(origin int32, yaw uint8, pose wire.Pose) {
	r := &p.reader
	if origin < 0 || origin == p.number {
		return
	}
	o := p.g.players[origin]
	begun := o.begun.Load()
	of := roundOf(yaw, begun)
	if of < 0 || of < r.newest[origin] {
		return
	}
	was := p.g.spot(int(of), int(origin))
	if !math.IsNaN(pose.X) && math.Hypot(was.X-pose.X, was.Z-pose.Z) > elsewhere {
		r.strange++
		return
	}
	if reach := p.g.o.Reach; reach > 0 {
		own := p.g.spot(max(int(p.begun.Load())-1, 0), int(p.number))
		if math.Hypot(was.X-own.X, was.Z-own.Z) > reach {
			return
		}
	}
	r.newest[origin] = of + 1
	r.told = append(r.told, Told{Round: begun, Of: of, Receiver: p.number, Origin: origin})
	r.delay.Add(r.at.Sub(o.sent[of]).Seconds())
}
