package legacy

import (
	"slices"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/mirror"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/legacymsg"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// This file implements mirror.Subscriber for original connections. Original clients get a whole chunk after each
// change, encoded once for all of them.

// codec is the codec of original clients, for mirror.Delta.Form.
type codec struct{}

// WantsEveryMove returns true.
func (lc *conn) WantsEveryMove() bool { return true }

// Predictable returns false: the moves of original clients are relayed to other original clients as they were sent.
func (lc *conn) Predictable() bool { return false }

// HasRoom returns true: the connection watches one chunk only.
func (lc *conn) HasRoom(*mirror.Chunk) bool { return true }

// SendChunk sends a chunk with everybody who is in it.
func (lc *conn) SendChunk(c *mirror.Chunk, _ bool) {
	lc.sendSlab(c)
	for _, b := range c.Occupants().Bodies() {
		if lc.show(b) {
			lc.send(lc.placeOf(b.Name, b.Pose))
		}
	}
}

// SendDelta sends the delta of the chunk: the whole chunk, if a block has changed.
func (lc *conn) SendDelta(d *mirror.Delta) {
	if len(d.Blocks) > 0 {
		lc.sendSlab(d.Of)
	}
	for _, body := range d.Change.Left {
		lc.unshow(body)
	}
	for _, body := range d.Enter {
		lc.show(body)
		if _, shown := lc.shown[body.Player]; shown {
			lc.send(lc.placeOf(body.Name, body.Pose))
		}
	}
	if len(d.Moves) > 0 && !lc.link.Behind(d.Of) {
		lc.relayMoves(d)
	}
}

// sendSlab sends the chunk's blocks, if they are known.
func (lc *conn) sendSlab(c *mirror.Chunk) {
	packet := c.BlocksForm(codec{}, func(blocks *chunk.Chunk) any {
		return legacymsg.AppendChunkData(nil, c.At(), legacymsg.SlabOf(blocks, int(lc.World.OriginalBase)))
	})
	if packet != nil {
		lc.link.Put(packet.([]byte))
	}
}

// show sends the client a player in the chunk. It reports whether the player was not shown before and is to be: the
// client's own player, and those who may be, are not shown.
func (lc *conn) show(body nodemsg.Body) bool {
	var buffer [4]player.ID
	if _, shown := lc.shown[body.Player]; shown || slices.Contains(lc.hiddenPlayers(buffer[:0]), body.Player) {
		return false
	}
	lc.shown[body.Player] = struct{}{}
	lc.send(legacymsg.PlayerRegister{Player: body.Name, Chunk: lc.at})
	return true
}

func (lc *conn) unshow(body nodemsg.Body) {
	if _, shown := lc.shown[body.Player]; shown {
		delete(lc.shown, body.Player)
		lc.send(legacymsg.PlayerDeregister{Player: body.Name, Chunk: lc.at})
	}
}

// hiddenPlayers appends the players that the client is not shown: its own player, and, unless that one is registered,
// those who may be its own.
func (lc *conn) hiddenPlayers(dst []player.ID) []player.ID {
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
func (lc *conn) relayMoves(d *mirror.Delta) {
	all, own := len(lc.shown) == len(d.Of.Occupants()), player.ID{}
	if who := lc.who.Load(); who != nil && d.Of.Occupants().Of(who.id) != nil {
		all, own = len(lc.shown)+1 == len(d.Of.Occupants()), who.id
	}
	lines, start := lc.moveLines(d), 0
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

func (lc *conn) put(lines []byte) {
	if len(lines) > 0 {
		lc.link.Put(lines)
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
func (lc *conn) moveLines(d *mirror.Delta) *moveLines {
	return d.Form(codec{}, func() any {
		lines := &moveLines{ends: make([]int, 0, len(d.Moves))}
		for _, m := range d.Moves {
			if o := d.Of.Occupants().Of(m.Player); o != nil {
				lines.bytes = appendPacket(lines.bytes, lc.placeOf(o.Name, m.Pose))
			}
			lines.ends = append(lines.ends, len(lines.bytes))
		}
		return lines
	}).(*moveLines)
}

func (o *Options) placeOf(name string, p motion.Pose) legacymsg.PlayerMove {
	return legacymsg.PlayerMove{
		Player: name, X: p.X, Y: p.Y - float64(o.World.OriginalBase), Z: p.Z,
		Yaw: legacymsg.OriginalYaw(p.Yaw), HasYaw: true,
	}
}

// SendResult counts a refusal: the original protocol has no answers to edits.
func (lc *conn) SendResult(r nodemsg.EditResult) (waits bool) {
	if r.Refused != "" {
		lc.Refusals.WithLabelValues(wire.RefusalLabel(r.Refused)).Inc()
	}
	return false
}

// Flush has nothing to send.
func (lc *conn) Flush() {}

// SendNotice does nothing: the original protocol has no such message.
func (lc *conn) SendNotice(sessionmsg.Notice) {}

func (lc *conn) send(p legacymsg.Packet) { lc.link.Put(appendPacket(nil, p)) }

func appendPacket(dst []byte, p legacymsg.Packet) []byte {
	dst, err := legacymsg.AppendPacket(dst, p)
	if err != nil {
		panic(err) // names and poses were checked on arrival
	}
	return dst
}
