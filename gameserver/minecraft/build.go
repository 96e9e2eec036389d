package minecraft

import (
	"time"

	"github.com/voxelpopuli/voxeld/blocktable"
	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// faces are the directions of the faces of a block: down, up, north, south, west, east.
var faces = [...]grid.Pos{{Y: -1}, {Y: 1}, {Z: -1}, {Z: 1}, {X: -1}, {X: 1}}

// placing returns how a block is placed by a player who looks somewhere, and has clicked a face at some height above its bottom.
func placing(yaw float32, face int32, height float32) blocktable.Placing {
	var normal [3]int32
	if face >= 0 && int(face) < len(faces) {
		normal = [3]int32{faces[face].X, faces[face].Y, faces[face].Z}
	}
	return blocktable.PlacedBy(float64(yaw), normal, float64(height))
}

// readDig returns the edit that breaks a block. In creative mode that is done at once; what else the packet reports is acknowledged.
func (cl *Client) readDig(f *fields) (sessionmsg.FromClient, error) {
	action, pos := f.varint(), f.position()
	f.u8() // the face
	number := f.varint()
	if action != digStart {
		return cl.acknowledgeOnly(number)
	}
	return cl.edit(f, number, pos, chunk.Air)
}

// readUseItemOn returns the edit that places the block in a hand at the face of another one, or in its stead if it is water or a plant.
func (cl *Client) readUseItemOn(f *fields, now time.Time) (sessionmsg.FromClient, error) {
	hand, pos, face := f.varint(), f.position(), f.varint()
	f.f32() // where in the face: x, y, z
	height := f.f32()
	f.f32()
	f.u8() // whether the head is inside of a block
	number := f.varint()
	item := cl.mu.hands.bar[cl.mu.hands.selected]
	if hand != 0 {
		item = cl.mu.hands.offhand
	}
	b, known := blocktable.FromMinecraft(item, placing(cl.mu.pose.Yaw, face, height))
	if f.bad || int(face) >= len(faces) || face < 0 || !known || !cl.placements.AllowN(now, 1) {
		if item != 0 && !known {
			cl.say(textOf("This world has no such block.", colourNotice))
		}
		return cl.acknowledgeOnly(number)
	}
	clicked, inView, err := cl.block(pos)
	if err != nil {
		return nil, err
	}
	if inView && clicked != chunk.Water && !clicked.Plant() { // those it takes the place of
		d := faces[face]
		pos = grid.Pos{X: pos.X + d.X, Y: pos.Y + d.Y, Z: pos.Z + d.Z}
	}
	return cl.edit(f, number, pos, b)
}

// edit returns the edit of a block.
func (cl *Client) edit(f *fields, number int32, pos grid.Pos, b chunk.Block) (sessionmsg.FromClient, error) {
	switch {
	case f.bad:
		return nil, nil
	case cl.mu.teleport.pending, pos.Y < 0, pos.Y >= cl.height():
		return cl.acknowledgeOnly(number) // meant from another place, or for no place
	case len(cl.mu.requests.pending) >= maxPending:
		return nil, wire.Refuse(wire.FailRate, "Too many of your edits wait for an answer.")
	}
	seq := cl.mu.requests.add(number, pos)
	return sessionmsg.Edit{Seq: seq, X: pos.X, Y: pos.Y, Z: pos.Z, Block: uint16(b)}, nil
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
func (cl *Client) answer(m sessionmsg.Ack, why string) {
	pos, waits := cl.mu.requests.answer(m.Seq)
	if !waits {
		return
	}
	if m.Error != "" {
		cl.a.metrics.PutBack.Inc()
		if why != "" {
			cl.say(textOf(why, colourNotice))
		}
	}
	cl.showBlock(pos, chunk.Block(m.Block))
	cl.acknowledge()
}

// showBlock shows a block.
func (cl *Client) showBlock(pos grid.Pos, b chunk.Block) {
	if cl.mu.state == inPlay {
		cl.put(begin(packetBlock).position(pos).varint(int(blocktable.ToMinecraft(b))))
	}
}
