package gameserver

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire/legacymsg"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file implements subscriber for original connections, and their clock. Original clients get a whole chunk after each
// change, encoded once for all of them.

func (lc *legacyConn) wantsEveryMove() bool { return true }

func (lc *legacyConn) hasRoom(*subscription, *mirrorChunk) bool { return true } // it watches one chunk only

func (lc *legacyConn) sendChunk(mc *mirrorChunk, _ bool) {
	lc.out.put(lc.g.slab(mc))
	for _, b := range mc.bodies.Bodies() {
		if lc.show(b) {
			lc.send(lc.g.placeOf(b.Name, b.Pose))
		}
	}
}

func (lc *legacyConn) sendDelta(delta *chunkDelta) {
	if len(delta.Blocks) > 0 && delta.chunk.hasLand() {
		lc.out.put(lc.g.slab(delta.chunk))
	}
	for _, body := range delta.change.Left {
		lc.unshow(body)
	}
	for _, body := range delta.Enter {
		lc.show(body)
		if _, shown := lc.shown[body.Player]; shown {
			lc.send(lc.g.placeOf(body.Name, body.Pose))
		}
	}
	if len(delta.Moves) > 0 && !lc.out.behind(waiting{delta.sub, delta.chunk}) {
		lc.relayMoves(delta)
	}
}

// show sends the client a player in the chunk. It reports whether the player was not shown before and is to be: the client's own
// player, and those who may be, are not shown.
func (lc *legacyConn) show(body nodemsg.Body) bool {
	var buffer [4]player.ID
	if _, shown := lc.shown[body.Player]; shown || slices.Contains(lc.hiddenPlayers(buffer[:0]), body.Player) {
		return false
	}
	lc.shown[body.Player] = struct{}{}
	lc.send(legacymsg.PlayerRegister{Player: body.Name, Chunk: lc.at})
	return true
}

func (lc *legacyConn) unshow(body nodemsg.Body) {
	if _, shown := lc.shown[body.Player]; shown {
		delete(lc.shown, body.Player)
		lc.send(legacymsg.PlayerDeregister{Player: body.Name, Chunk: lc.at})
	}
}

// hiddenPlayers appends the players that the client is not shown: its own player, and, unless that one is registered, those who may be its
// own.
func (lc *legacyConn) hiddenPlayers(dst []player.ID) []player.ID {
	who := lc.who.Load()
	if who != nil {
		dst = append(dst, who.id)
	}
	if who == nil || !who.isRegistered() {
		dst = lc.party.registeredElsewhere(dst, lc.at)
	}
	return dst
}

// relayMoves sends the moves of all players that the client was shown.
func (lc *legacyConn) relayMoves(delta *chunkDelta) {
	all, own := len(lc.shown) == len(delta.chunk.bodies), player.ID{}
	if who := lc.who.Load(); who != nil && delta.chunk.bodies.Of(who.id) != nil {
		all, own = len(lc.shown)+1 == len(delta.chunk.bodies), who.id
	}
	lines, start := delta.moveLines(lc.g), 0
	for i, m := range delta.Moves {
		shown := m.Player != own
		if !all { // usually everybody else is shown, and a look at the map is spared
			_, shown = lc.shown[m.Player]
		}
		if !shown {
			lc.put(lines.of(start, i))
			start = i + 1
		}
	}
	lc.put(lines.of(start, len(delta.Moves)))
}

func (lc *legacyConn) put(lines []byte) {
	if len(lines) > 0 {
		lc.out.put(lines)
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
func (delta *chunkDelta) moveLines(g *Gateway) *moveLines {
	if delta.lines == nil {
		delta.lines = &moveLines{ends: make([]int, 0, len(delta.Moves))}
		for _, m := range delta.Moves {
			if o := delta.chunk.bodies.Of(m.Player); o != nil {
				delta.lines.bytes = appendPacket(delta.lines.bytes, g.placeOf(o.Name, m.Pose))
			}
			delta.lines.ends = append(delta.lines.ends, len(delta.lines.bytes))
		}
	}
	return delta.lines
}

func (g *Gateway) placeOf(name string, p motion.Pose) legacymsg.PlayerMove {
	return legacymsg.PlayerMove{
		Player: name, X: p.X, Y: p.Y - float64(g.World.OriginalBase), Z: p.Z,
		Yaw: legacymsg.OriginalYaw(p.Yaw), HasYaw: true,
	}
}

func (lc *legacyConn) sendResult(r nodemsg.EditResult) *outbox {
	if r.Refused != "" {
		lc.g.metrics.refusals.WithLabelValues(r.Refused).Inc()
	}
	return nil // the original protocol has no answers to edits
}

func (lc *legacyConn) sendNotice(string) {} // the original protocol has no such message

func (lc *legacyConn) send(p legacymsg.Packet) { lc.out.put(appendPacket(nil, p)) }

func appendPacket(dst []byte, p legacymsg.Packet) []byte {
	dst, err := legacymsg.AppendPacket(dst, p)
	if err != nil {
		panic(err) // names and poses were checked on arrival
	}
	return dst
}

// slab returns the CHUNK_DATA packet of a chunk, encoded once per version.
func (g *Gateway) slab(mc *mirrorChunk) []byte {
	if mc.slabVersion != mc.version {
		mc.slab = legacymsg.AppendChunkData(nil, mc.at, legacymsg.SlabOf(mc.loadLand(), int(g.World.OriginalBase)))
		mc.slabVersion = mc.version
	}
	return mc.slab
}

// tickTime sends the time of day, if a player is registered here.
func (lc *legacyConn) tickTime(packet []byte) {
	if _, registered := lc.presence(); registered {
		lc.out.put(packet)
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
		case <-g.legacyCame:
			ticker.Reset(region.TickEvery)
		}
		packet := appendPacket(nil, legacymsg.TimeOfDay{Minutes: math.Round(g.timeOfDay()*60) / 60})
		g.mu.Lock()
		for lc := range g.mu.legacyConns {
			lc.tickTime(packet)
		}
		if len(g.mu.legacyConns) == 0 {
			ticker.Stop() // until a client connects
		}
		g.mu.Unlock()
	}
}
