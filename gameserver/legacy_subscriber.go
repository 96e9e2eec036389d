package gameserver

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/mirror"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire/legacymsg"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file implements mirror.Subscriber for original connections, and their clock. Original clients get a whole chunk after each
// change, encoded once for all of them.

// legacyCodec is the codec of original clients, for mirror.Delta.Form.
type legacyCodec struct{}

// WantsEveryMove returns true.
func (lc *legacyConn) WantsEveryMove() bool { return true }

// Predictable returns false: the moves of original clients are relayed to other original clients as they were sent.
func (lc *legacyConn) Predictable() bool { return false }

// HasRoom returns true: the connection watches one chunk only.
func (lc *legacyConn) HasRoom(*mirror.Chunk) bool { return true }

// SendChunk sends a chunk with everybody who is in it.
func (lc *legacyConn) SendChunk(c *mirror.Chunk, _ bool) {
	lc.sendSlab(c)
	for _, b := range c.Occupants().Bodies() {
		if lc.show(b) {
			lc.send(lc.g.placeOf(b.Name, b.Pose))
		}
	}
}

// SendDelta sends the delta of the chunk: the whole chunk, if a block has changed.
func (lc *legacyConn) SendDelta(d *mirror.Delta) {
	if len(d.Blocks) > 0 {
		lc.sendSlab(d.Of)
	}
	for _, body := range d.Change.Left {
		lc.unshow(body)
	}
	for _, body := range d.Enter {
		lc.show(body)
		if _, shown := lc.shown[body.Player]; shown {
			lc.send(lc.g.placeOf(body.Name, body.Pose))
		}
	}
	if len(d.Moves) > 0 && !lc.out.behind(d.Of) {
		lc.relayMoves(d)
	}
}

// sendSlab sends the chunk's blocks, if they are known.
func (lc *legacyConn) sendSlab(c *mirror.Chunk) {
	packet := c.BlocksForm(legacyCodec{}, func(blocks *chunk.Chunk) any {
		return legacymsg.AppendChunkData(nil, c.At(), legacymsg.SlabOf(blocks, int(lc.g.World.OriginalBase)))
	})
	if packet != nil {
		lc.out.put(packet.([]byte))
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
func (lc *legacyConn) relayMoves(d *mirror.Delta) {
	all, own := len(lc.shown) == len(d.Of.Occupants()), player.ID{}
	if who := lc.who.Load(); who != nil && d.Of.Occupants().Of(who.id) != nil {
		all, own = len(lc.shown)+1 == len(d.Of.Occupants()), who.id
	}
	lines, start := lc.g.moveLines(d), 0
	for i, m := range d.Moves {
		shown := m.Player != own
		if !all { // usually everybody else is shown, and a look at the map is spared
			_, shown = lc.shown[m.Player]
		}
		if !shown {
			lc.put(lines.of(start, i))
			start = i + 1
		}
	}
	lc.put(lines.of(start, len(d.Moves)))
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
func (g *Gateway) moveLines(d *mirror.Delta) *moveLines {
	return d.Form(legacyCodec{}, func() any {
		lines := &moveLines{ends: make([]int, 0, len(d.Moves))}
		for _, m := range d.Moves {
			if o := d.Of.Occupants().Of(m.Player); o != nil {
				lines.bytes = appendPacket(lines.bytes, g.placeOf(o.Name, m.Pose))
			}
			lines.ends = append(lines.ends, len(lines.bytes))
		}
		return lines
	}).(*moveLines)
}

func (g *Gateway) placeOf(name string, p motion.Pose) legacymsg.PlayerMove {
	return legacymsg.PlayerMove{
		Player: name, X: p.X, Y: p.Y - float64(g.World.OriginalBase), Z: p.Z,
		Yaw: legacymsg.OriginalYaw(p.Yaw), HasYaw: true,
	}
}

// SendResult counts a refusal: the original protocol has no answers to edits.
func (lc *legacyConn) SendResult(r nodemsg.EditResult) (waits bool) {
	if r.Refused != "" {
		lc.g.metrics.refusals.WithLabelValues(r.Refused).Inc()
	}
	return false
}

// Flush has nothing to send.
func (lc *legacyConn) Flush() {}

// SendNotice does nothing: the original protocol has no such message.
func (lc *legacyConn) SendNotice(string) {}

func (lc *legacyConn) send(p legacymsg.Packet) { lc.out.put(appendPacket(nil, p)) }

func appendPacket(dst []byte, p legacymsg.Packet) []byte {
	dst, err := legacymsg.AppendPacket(dst, p)
	if err != nil {
		panic(err) // names and poses were checked on arrival
	}
	return dst
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
