package luanti

import (
	"math"

	"github.com/voxelpopuli/voxeld/blocktable"
	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// This file makes edits of what the client digs and places. The reader runs it.

// What a client does with its pointer.
const (
	interactDug    = 2
	interactPlaced = 3
	pointedNode    = 1
)

// change is a block that the player changes.
type change struct {
	pos grid.Pos
	to  chunk.Block
}

// readInteract returns the first edit that the client has made. Mostly it shows it already. The others are the next.
func (cl *Client) readInteract(f *fields) (sessionmsg.FromClient, error) {
	action, slot := f.u8(), int(f.u16())
	f.u32() // the length of what is pointed at
	version, kind := f.u8(), f.u8()
	under, above := cl.mu.origin.pos(f.node()), cl.mu.origin.pos(f.node())
	pose := cl.mu.origin.pose(readPlace(f))
	if f.short || version != 0 || kind != pointedNode {
		return nil, nil
	}
	var changes []change
	switch action {
	case interactDug:
		changes = cl.withOtherHalf(change{under, chunk.Air})
	case interactPlaced:
		changes = cl.build(slot, under, above, pose)
	}
	if !cl.mu.placed.IsZero() { // they were made from another place
		for _, c := range changes {
			b, _ := cl.mu.lands.at(c.pos)
			cl.showBlock(c.pos, b)
		}
		return nil, nil
	}
	for _, c := range changes {
		if len(cl.mu.pending) >= maxPending {
			return nil, wire.Refuse(wire.FailRate, "Too many of your edits wait for an answer.")
		}
		cl.next = append(cl.next, sessionmsg.Edit{Seq: cl.mu.seq, X: c.pos.X, Y: c.pos.Y, Z: c.pos.Z, Block: uint16(c.to)})
		cl.mu.pending[cl.mu.seq] = c.pos
		cl.mu.seq++
	}
	return cl.takeNext(), nil
}

// takeNext returns an edit that is to be sent; nil for none.
func (cl *Client) takeNext() sessionmsg.FromClient {
	if len(cl.next) == 0 {
		return nil
	}
	m := cl.next[0]
	cl.next = cl.next[1:]
	return m
}

// build returns what becomes of a click with the block in a slot, as in the browser's client: a door is used, a second slab makes a whole
// block, and plants and water give way.
func (cl *Client) build(slot int, under, above grid.Pos, pose motion.Pose) []change {
	there, seen := cl.mu.lands.at(under)
	if isDoor(there) {
		return cl.withOtherHalf(change{under, used(there)})
	}
	if slot >= len(cl.mu.slots) || cl.mu.slots[slot] == chunk.Air {
		return nil
	}
	block, at := cl.mu.slots[slot], above
	normal := [3]int32{above.X - under.X, above.Y - under.Y, above.Z - under.Z}
	switch {
	case isSlab(block) && (there == block && normal[1] > 0 || there == block+1 && normal[1] < 0):
		return []change{{under, block.Material()}}
	case seen && gives(there):
		at, normal = under, [3]int32{0, 1, 0}
	}
	block = blocktable.PlacedBy(float64(pose.Yaw), normal, pointsAt(pose, under, normal)).Block(block)
	if !isDoor(block) {
		return []change{{at, block}}
	}
	upper := grid.Pos{X: at.X, Y: at.Y + 1, Z: at.Z}
	if b, _ := cl.mu.lands.at(upper); b != chunk.Air && !gives(b) {
		return nil
	}
	return []change{{at, block}, {upper, block}}
}

// gives reports whether a block gives way to one that is placed there.
func gives(b chunk.Block) bool { return b.Plant() || b == chunk.Water }

// pointsAt returns how high above the bottom of a block a player points at the side with a normal.
func pointsAt(p motion.Pose, at grid.Pos, normal [3]int32) float64 {
	away := float64(at.X) + middle + middle*float64(normal[0]) - p.X
	ahead := -math.Sin(float64(p.Yaw))
	if normal[2] != 0 {
		away = float64(at.Z) + middle + middle*float64(normal[2]) - p.Z
		ahead = math.Cos(float64(p.Yaw))
	}
	return p.Y + eyeHeight + math.Tan(float64(p.Pitch))*away/ahead - float64(at.Y)
}

// used returns half of a door after it was opened or closed.
func used(door chunk.Block) chunk.Block {
	const open = 4 // states after those that are closed
	if door.Base()+open > door {
		return door + open
	}
	return door - open
}

// withOtherHalf returns a change, and the same of the other half if it is one of a door. The lowest two of a stack are one door.
func (cl *Client) withOtherHalf(c change) []change {
	blocks := cl.mu.lands.load(c.pos.Chunk())
	half, _ := blockOf(blocks, c.pos)
	if !isDoor(half) {
		return []change{c}
	}
	beside := func(dy int32) bool {
		b, _ := blockOf(blocks, grid.Pos{X: c.pos.X, Y: c.pos.Y + dy, Z: c.pos.Z})
		return b == half
	}
	below := int32(0)
	for beside(-below - 1) {
		below++
	}
	other := 1 - 2*(below%2)
	if !beside(other) {
		return []change{c}
	}
	return []change{c, {grid.Pos{X: c.pos.X, Y: c.pos.Y + other, Z: c.pos.Z}, c.to}}
}
