package gameserver

import (
	"context"
	"math"
	"time"

	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire"
)

// This file is the original connection as a viewer, and its clock. Original clients get a whole chunk after
// each change, made once for all of them.

func (s *classic) stepwise() bool { return true }

func (s *classic) room(*feed, *view) bool { return true } // it has one chunk

func (s *classic) whole(v *view, again bool) {
	s.out.put(s.g.slab(v))
	if again {
		return // he knows who is here, and may take nobody in twice
	}
	for _, b := range v.everybody() {
		if b.Player != s.id {
			s.send(wire.PlayerRegister{Player: b.Name, Chunk: s.at})
			s.send(s.placeOf(b.Name, b.Pose))
		}
	}
}

func (s *classic) news(b *bulletin) {
	if len(b.Blocks) > 0 && b.view.laid() {
		s.out.put(s.g.slab(b.view))
	}
	for _, body := range b.left {
		if body.Player != s.id {
			s.send(wire.PlayerDeregister{Player: body.Name, Chunk: s.at})
		}
	}
	for _, body := range b.came {
		if body.Player != s.id {
			s.send(wire.PlayerRegister{Player: body.Name, Chunk: s.at})
		}
	}
	for _, body := range b.Enter {
		if body.Player != s.id {
			s.send(s.placeOf(body.Name, body.Pose))
		}
	}
	for _, m := range b.Moves {
		if o := b.view.bodies.of(m.Player); o != nil && m.Player != s.id {
			s.send(s.placeOf(o.Name, m.Pose))
		}
	}
}

func (s *classic) placeOf(name string, p wire.Pose) wire.PlayerMove {
	return wire.PlayerMove{
		Player: name, X: p.X, Y: p.Y - float64(s.g.World.OriginalBase), Z: p.Z,
		Yaw: wire.OriginalYaw(p.Yaw), HasYaw: true,
	}
}

func (s *classic) result(r wire.EditResult) *outbox {
	if r.Refused != "" {
		s.g.metrics.refusals.WithLabelValues(r.Refused).Inc()
	}
	return nil // the original protocol has no answers to edits
}

func (s *classic) notice(string) {} // the original protocol has no words for it

func (s *classic) send(p wire.Packet) {
	data, err := wire.AppendPacket(nil, p)
	if err != nil {
		panic(err) // names and poses were checked when they came in
	}
	s.out.put(data)
}

// slab is the CHUNK_DATA packet of a view, made once per version.
func (g *Gateway) slab(v *view) []byte {
	if v.slabVersion != v.version {
		v.slab = wire.AppendChunkData(nil, v.at, wire.SlabOf(v.open(), int(g.World.OriginalBase)))
		v.slabVersion = v.version
	}
	return v.slab
}

// tickTime tells the time of day, if the player is registered here.
func (s *classic) tickTime(packet []byte) {
	if _, registered := s.presence(); registered {
		s.out.put(packet)
	}
}

// runClock tells original clients the time, every tick.
func (g *Gateway) runClock(ctx context.Context) {
	ticker := time.NewTicker(region.TickEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-g.came:
			ticker.Reset(region.TickEvery)
		}
		packet, err := wire.AppendPacket(nil, wire.TimeOfDay{Minutes: math.Round(g.timeOfDay()*60) / 60})
		if err != nil {
			panic(err) // a time of day is finite
		}
		g.mu.Lock()
		for s := range g.mu.classics {
			s.tickTime(packet)
		}
		if len(g.mu.classics) == 0 {
			ticker.Stop() // until somebody comes
		}
		g.mu.Unlock()
	}
}
