package minecraft

import (
	"math"
	"time"

	"github.com/voxelpopuli/voxeld/blocktable"
	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/games"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// faces are the directions of the faces of a block: down, up, north, south, west, east.
var faces = [...]grid.Pos{{Y: -1}, {Y: 1}, {Z: -1}, {Z: 1}, {X: -1}, {X: 1}}

// readDig returns the edit that breaks a block. In creative mode that is done at once; what else the packet reports is
// acknowledged.
func (cl *Client) readDig(f *fields, now time.Time) (sessionmsg.FromClient, error) {
	action, pos := f.varint(), f.position()
	f.u8() // the face
	number := f.varint()
	if f.bad || action != digStart || !cl.looks.AllowN(now, 1) {
		return cl.acknowledgeOnly(number)
	}
	return cl.edit(number, cl.predicted().Break(pos), now)
}

// predicted returns the blocks as the client shows them.
func (cl *Client) predicted() games.Blocks { return cl.mu.requests.edits.Predict(cl.mu.lands.blocks()) }

// readUseItemOn returns the edit of a click at the face of a block, with the item in a hand.
func (cl *Client) readUseItemOn(f *fields, now time.Time) (sessionmsg.FromClient, error) {
	hand, pos, face := f.varint(), f.position(), f.varint()
	f.f32() // where in the face: x, y, z
	height := f.f32()
	f.f32()
	f.u8() // whether the head is inside of a block
	number := f.varint()
	item := cl.mu.hands.item(hand)
	if f.bad || int(face) >= len(faces) || face < 0 || !cl.looks.AllowN(now, 1) {
		return cl.acknowledgeOnly(number)
	}
	sneaks := cl.mu.sneaks && item != 0
	if there, _ := cl.mu.lands.blocks()(pos); there.IsSign() && !sneaks && !cl.mu.teleport.pending {
		cl.openSign(pos)
		return cl.acknowledgeOnly(number)
	}
	b, known := blocktable.FromMinecraft(item)
	d := faces[face]
	changes := cl.predicted().Click(games.Click{
		Block: b, At: pos, Normal: [3]int32{d.X, d.Y, d.Z}, Height: float64(height), Yaw: float64(cl.mu.player.Pose.Yaw),
		Sneaks: sneaks,
	})
	if len(changes) == 0 && item != 0 && item != blocktable.MinecraftBucket && !known {
		cl.notice("This world has no such block.")
	}
	return cl.edit(number, changes, now)
}

// readUseItem returns the edit of an empty bucket, which removes the nearest water that the player looks at: the client
// does not say which that is.
func (cl *Client) readUseItem(f *fields, now time.Time) (sessionmsg.FromClient, error) {
	hand, number := f.varint(), f.varint()
	if f.bad || cl.mu.hands.item(hand) != blocktable.MinecraftBucket || !cl.looks.AllowN(now, 1) {
		return cl.acknowledgeOnly(number)
	}
	const reach, step = 5, .05 // blocks
	p, blocks := cl.mu.player.Pose, cl.predicted()
	across, rise := math.Cos(float64(p.Pitch)), math.Sin(float64(p.Pitch))
	x, z := -math.Sin(float64(p.Yaw))*across, math.Cos(float64(p.Yaw))*across
	for away := 0.; away <= reach; away += step {
		pos := grid.Pos{X: floor(p.X + x*away), Y: floor(p.Y + player.EyeHeight + rise*away), Z: floor(p.Z + z*away)}
		switch b, _ := blocks(pos); {
		case b == chunk.Water:
			return cl.edit(number, blocks.Break(pos), now)
		case b.Solid():
			return cl.acknowledgeOnly(number)
		}
	}
	return cl.acknowledgeOnly(number)
}

func floor(v float64) int32 { return int32(math.Floor(v)) }

// edit returns the first edit of a request. The others are the next.
func (cl *Client) edit(number int32, changes []games.Change, now time.Time) (sessionmsg.FromClient, error) {
	inside := func(c games.Change) bool { return c.Pos.Y >= 0 && c.Pos.Y < cl.height() }
	if len(changes) == 0 || cl.mu.teleport.pending || !inside(changes[0]) {
		return cl.acknowledgeOnly(number) // meant from another place, or for no place
	}
	if err := cl.mu.requests.add(number, changes, now); err != nil {
		return nil, err
	}
	return cl.mu.requests.edits.Next(), nil
}

// acknowledgeOnly answers a request that changes nothing: the client shows what was there before.
func (cl *Client) acknowledgeOnly(number int32) (sessionmsg.FromClient, error) {
	cl.mu.requests.highest = max(cl.mu.requests.highest, number)
	cl.acknowledge()
	return nil, nil // the next tick flushes it
}

// acknowledge sends up to which number the client's requests are answered.
func (cl *Client) acknowledge() {
	if number, is := cl.mu.requests.acknowledge(); is {
		cl.put(begin(packetAckBlock).varint(int(number)))
	}
}

// answer shows what an edit has come to.
func (cl *Client) answer(m sessionmsg.Ack) {
	edit, clicked, waits := cl.mu.requests.answer(m, time.Now())
	if !waits {
		return
	}
	pos, b := edit.Pos, chunk.Block(m.Block)
	if m.Error == "" { // the change may come a tick later
		games.SetBlock(cl.mu.lands, pos, b)
	}
	cl.a.CountRefused(edit, m.Error, cl.notice)
	cl.showState(pos, fittingAt(pos, b, cl.mu.lands.blocks()).state())
	cl.acknowledge()
	switch l := cl.mu.lands[pos.Chunk()]; {
	case !b.IsSign() || l == nil:
	case m.Error != "": // the client shows what its player has written, or a new sign
		showSign(cl, pos, l.signs[pos])
	case clicked:
		cl.openSign(pos)
	}
}
