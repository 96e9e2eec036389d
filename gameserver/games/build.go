package games

import (
	"strings"

	"github.com/voxelpopuli/voxeld/blocktable"
	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
)

// AtHand are the blocks at hand at first, in games that have nine.
var AtHand = [9]chunk.Block{
	chunk.Stone, chunk.Cobble, chunk.Brick, chunk.Dirt, chunk.Planks, chunk.Log, chunk.Leaves, chunk.Glass, chunk.Lamp,
}

// Change is a block that a player changes.
type Change struct {
	Pos    grid.Pos
	To     chunk.Block
	Text   string // of a sign
	Corner bool   // of stairs beside those that the player places: they have not asked for it
	// Then are the changes that are made once this one is: of stairs, those beside them that become corners.
	Then []Change
}

// Blocks returns the block at a position, and reports whether it is in view.
type Blocks func(pos grid.Pos) (b chunk.Block, seen bool)

// BlocksOf returns the Blocks of a client's land. Each chunk is unpacked once.
func BlocksOf[L interface{ Load() (*chunk.Chunk, error) }](land map[grid.ChunkPos]L) Blocks {
	loaded := make(map[grid.ChunkPos]*chunk.Chunk)
	return func(pos grid.Pos) (chunk.Block, bool) {
		at := pos.Chunk()
		c, known := loaded[at]
		if !known {
			if l, here := land[at]; here {
				c, _ = l.Load() // the gateway packed it
			}
			loaded[at] = c
		}
		if c == nil || pos.Y < 0 || int(pos.Y) >= c.Height() {
			return chunk.Air, false
		}
		return c.Get(chunk.At(pos)), true
	}
}

// SetBlock sets a block of a client's land, if it is in view.
func SetBlock[L interface {
	Set(at chunk.Index, b chunk.Block)
}](land map[grid.ChunkPos]L, pos grid.Pos, b chunk.Block) {
	if l, here := land[pos.Chunk()]; here {
		l.Set(chunk.At(pos), b)
	}
}

// Break returns the changes when a block is broken.
func (at Blocks) Break(pos grid.Pos) []Change {
	return at.withOtherHalf(Change{Pos: pos, To: chunk.Air})
}

// Click is a click with a block in the hand at the side of another one.
type Click struct {
	Block  chunk.Block // air: none
	At     grid.Pos
	Normal [3]int32
	Height float64 // of the place that was clicked, above the bottom of the block
	Yaw    float64 // of the player
	Sneaks bool    // the player, who places the block against what they would use otherwise
}

// Use returns the changes when a door, a gate or a trapdoor is clicked, which opens or closes it; none for another block.
func (at Blocks) Use(pos grid.Pos) []Change {
	b, _ := at(pos)
	if !b.Opens() {
		return nil
	}
	return at.withOtherHalf(Change{Pos: pos, To: b.Used()})
}

// Click returns the changes that a click makes, as in the browser's client: a door is opened, a second slab makes a whole
// block, and plants and water give way.
func (at Blocks) Click(c Click) []Change {
	if changes := at.Use(c.At); changes != nil && !c.Sneaks {
		return changes
	}
	if c.Block == chunk.Air {
		return nil
	}
	there, seen := at(c.At)
	isSlab := strings.HasSuffix(c.Block.Name(), "_slab") // the upper one follows it
	pos := grid.Pos{X: c.At.X + c.Normal[0], Y: c.At.Y + c.Normal[1], Z: c.At.Z + c.Normal[2]}
	switch {
	case isSlab && (there == c.Block && c.Normal[1] > 0 || there == c.Block+1 && c.Normal[1] < 0):
		return []Change{{Pos: c.At, To: c.Block.Material()}}
	case seen && givesWay(there) && there != c.Block:
		pos, c.Normal = c.At, [3]int32{0, 1, 0}
	}
	return at.Place(pos, blocktable.PlacedBy(c.Yaw, c.Normal, c.Height).Block(c.Block))
}

// Place returns the changes that place a block, in one of its states: of a door, both halves. Stairs, and those beside
// them, become corners.
func (at Blocks) Place(pos grid.Pos, block chunk.Block) []Change {
	if block.Stairs() {
		return at.placeStairs(pos, block)
	}
	if !block.Door() {
		return []Change{{Pos: pos, To: block}}
	}
	upper := grid.Pos{X: pos.X, Y: pos.Y + 1, Z: pos.Z}
	if b, _ := at(upper); b != chunk.Air && !givesWay(b) {
		return nil
	}
	return []Change{{Pos: pos, To: block}, {Pos: upper, To: block}}
}

func (at Blocks) placeStairs(pos grid.Pos, block chunk.Block) []Change {
	placed := at.cornered(pos, block)
	c := Change{Pos: pos, To: placed}
	after := Blocks(func(p grid.Pos) (chunk.Block, bool) {
		if p == pos {
			return placed, true
		}
		return at(p)
	})
	for _, d := range sides {
		to := grid.Pos{X: pos.X + d.X, Y: pos.Y, Z: pos.Z + d.Z}
		there, _ := at(to)
		if become := after.cornered(to, there); become != there {
			c.Then = append(c.Then, Change{Pos: to, To: become, Corner: true})
		}
	}
	return []Change{c}
}

// sides are where the blocks beside one are, in the order of chunk.Block.Cornered.
var sides = [4]grid.Pos{{X: 1}, {X: -1}, {Z: 1}, {Z: -1}}

// cornered returns a block as it is among those beside a position.
func (at Blocks) cornered(pos grid.Pos, b chunk.Block) chunk.Block {
	var beside [4]chunk.Block
	for i, d := range sides {
		beside[i], _ = at(grid.Pos{X: pos.X + d.X, Y: pos.Y, Z: pos.Z + d.Z})
	}
	return b.Cornered(beside)
}

// givesWay reports whether a block gives way to one that is placed there.
func givesWay(b chunk.Block) bool { return b.Plant() || b == chunk.Water }

// withOtherHalf returns a change, and the same of the other half if it is one of a door. The lowest two of a stack are
// one door.
func (at Blocks) withOtherHalf(c Change) []Change {
	half, _ := at(c.Pos)
	if !half.Door() {
		return []Change{c}
	}
	beside := func(dy int32) bool {
		b, _ := at(grid.Pos{X: c.Pos.X, Y: c.Pos.Y + dy, Z: c.Pos.Z})
		return b == half
	}
	below := int32(0)
	for beside(-below - 1) {
		below++
	}
	other := 1 - 2*(below%2)
	if !beside(other) {
		return []Change{c}
	}
	return []Change{c, {Pos: grid.Pos{X: c.Pos.X, Y: c.Pos.Y + other, Z: c.Pos.Z}, To: c.To}}
}
