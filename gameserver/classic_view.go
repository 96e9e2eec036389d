package gameserver

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire"
)

// This file implements subscriber for original connections, and their clock. Original clients get a whole chunk after each
// change, encoded once for all of them.

func (s *classic) stepwise() bool { return true }

func (s *classic) room(*feed, *view) bool { return true } // it watches one chunk only

func (s *classic) whole(v *view, _ bool) {
	s.out.put(s.g.slab(v))
	for _, b := range v.everybody() {
		if s.show(b) {
			s.send(s.g.placeOf(b.Name, b.Pose))
		}
	}
}

func (s *classic) news(b *bulletin) {
	if len(b.Blocks) > 0 && b.view.laid() {
		s.out.put(s.g.slab(b.view))
	}
	for _, body := range b.left {
		s.unshow(body)
	}
	for _, body := range b.came {
		s.show(body)
	}
	for _, body := range b.Enter {
		if _, shown := s.shown[body.Player]; shown {
			s.send(s.g.placeOf(body.Name, body.Pose))
		}
	}
	if len(b.Moves) > 0 && !s.out.behind(waiting{b.feed, b.view}) {
		s.relay(b)
	}
}

// show sends the client a player in the chunk. It reports whether the player was not shown before and is to be: the client's own
// player, and those who may be, are not shown.
func (s *classic) show(body wire.Body) bool {
	var buffer [4]player.ID
	if _, shown := s.shown[body.Player]; shown || slices.Contains(s.hidden(buffer[:0]), body.Player) {
		return false
	}
	s.shown[body.Player] = struct{}{}
	s.send(wire.PlayerRegister{Player: body.Name, Chunk: s.at})
	return true
}

func (s *classic) unshow(body wire.Body) {
	if _, shown := s.shown[body.Player]; shown {
		delete(s.shown, body.Player)
		s.send(wire.PlayerDeregister{Player: body.Name, Chunk: s.at})
	}
}

// hidden appends the players that the client is not shown: its own player, or, until it has registered here, those who may be its
// own.
func (s *classic) hidden(dst []player.ID) []player.ID {
	if who := s.who.Load(); who != nil {
		return append(dst, who.id)
	}
	return s.party.strays(dst, s.at)
}

// relay sends all moves except those of hidden players.
func (s *classic) relay(b *bulletin) {
	var buffer [4]player.ID
	hidden := s.hidden(buffer[:0])
	lines, start := b.moveLines(s.g), 0
	for i, m := range b.Moves {
		if slices.Contains(hidden, m.Player) {
			s.put(lines.of(start, i))
			start = i + 1
		}
	}
	s.put(lines.of(start, len(b.Moves)))
}

func (s *classic) put(lines []byte) {
	if len(lines) > 0 {
		s.out.put(lines)
	}
}

// moveLines are the PLAYER_MOVE packets of a delta's moves, encoded once for all clients.
type moveLines struct {
	bytes []byte
	ends  []int // end offset of each move's line
}

// of returns the lines of the moves in [from, to).
func (l *moveLines) of(from, to int) []byte {
	if from == to {
		return nil
	}
	start := 0
	if from > 0 {
		start = l.ends[from-1]
	}
	return l.bytes[start:l.ends[to-1]]
}

// moveLines returns the moves encoded for original clients.
func (b *bulletin) moveLines(g *Gateway) *moveLines {
	if b.lines == nil {
		b.lines = &moveLines{ends: make([]int, 0, len(b.Moves))}
		for _, m := range b.Moves {
			if o := b.view.bodies.of(m.Player); o != nil {
				b.lines.bytes = appendPacket(b.lines.bytes, g.placeOf(o.Name, m.Pose))
			}
			b.lines.ends = append(b.lines.ends, len(b.lines.bytes))
		}
	}
	return b.lines
}

func (g *Gateway) placeOf(name string, p wire.Pose) wire.PlayerMove {
	return wire.PlayerMove{
		Player: name, X: p.X, Y: p.Y - float64(g.World.OriginalBase), Z: p.Z,
		Yaw: wire.OriginalYaw(p.Yaw), HasYaw: true,
	}
}

func (s *classic) result(r wire.EditResult) *outbox {
	if r.Refused != "" {
		s.g.metrics.refusals.WithLabelValues(r.Refused).Inc()
	}
	return nil // the original protocol has no answers to edits
}

func (s *classic) notice(string) {} // the original protocol has no such message

func (s *classic) send(p wire.Packet) { s.out.put(appendPacket(nil, p)) }

func appendPacket(dst []byte, p wire.Packet) []byte {
	dst, err := wire.AppendPacket(dst, p)
	if err != nil {
		panic(err) // names and poses were checked on arrival
	}
	return dst
}

// slab returns the CHUNK_DATA packet of a chunk, encoded once per version.
func (g *Gateway) slab(v *view) []byte {
	if v.slabVersion != v.version {
		v.slab = wire.AppendChunkData(nil, v.at, wire.SlabOf(v.open(), int(g.World.OriginalBase)))
		v.slabVersion = v.version
	}
	return v.slab
}

// tickTime sends the time of day, if a player is registered here.
func (s *classic) tickTime(packet []byte) {
	if _, registered := s.presence(); registered {
		s.out.put(packet)
	}
}

// runClock sends the time to original clients on every tick.
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
		packet := appendPacket(nil, wire.TimeOfDay{Minutes: math.Round(g.timeOfDay()*60) / 60})
		g.mu.Lock()
		for s := range g.mu.classics {
			s.tickTime(packet)
		}
		if len(g.mu.classics) == 0 {
			ticker.Stop() // until a client connects
		}
		g.mu.Unlock()
	}
}
