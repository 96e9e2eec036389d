package blocktable

import (
	"slices"

	"github.com/voxelpopuli/voxeld/chunk"
)

// ClassicShape is a block that a client of Classic with BlockDefinitionsExt is told to draw. Its number follows those
// of CustomBlocks.
type ClassicShape struct {
	ID       byte
	Block    chunk.Block // which is placed with it; it may be the image of other states, too
	Textures [3]byte     // of the top, the sides and the bottom, in the game's own terrain.png
	Box      chunk.Box   // where it is drawn, and stops bodies
}

// classicTextures are those of the images that shaped blocks are made of.
var classicTextures = map[byte][3]byte{
	1:           {1, 1, 1},
	4:           {16, 16, 16},
	5:           {4, 4, 4},
	43:          {6, 5, 6}, // smooth stone
	45:          {7, 7, 7},
	49:          {37, 37, 37}, // obsidian
	classicRope: {11, 11, 11},
	52:          {25, 41, 57}, // sandstone
	62:          {86, 86, 86}, // magma
	63:          {26, 42, 58}, // pillar
	65:          {52, 52, 52}, // stone bricks
}

// classicShapes has the shaped blocks, by their numbers, and classicShapeOf the number of each block that is seen as one.
var classicShapes, classicShapeOf = func() (all []ClassicShape, of map[chunk.Block]byte) {
	of = make(map[chunk.Block]byte)
	for b := chunk.StoneSlab; b.Known(); b++ {
		box, shaped := classicBox(b)
		if !shaped {
			continue
		}
		// States with the same box are one block, such as the directions of stairs.
		i := slices.IndexFunc(all, func(s ClassicShape) bool {
			return s.Block.Base() == b.Base() && s.Block.Solid() == b.Solid() && s.Box == box
		})
		if i < 0 {
			i = len(all)
			id := byte(classicCustomBlocks + i) //nolint:gosec // checked by a test
			all = append(all, ClassicShape{ID: id, Block: b, Textures: classicTextures[classicMadeOf(b)], Box: box})
		}
		of[b] = all[i].ID
	}
	return all, of
}()

// ClassicShapes returns the shaped blocks, which the caller must not change.
func ClassicShapes() []ClassicShape { return classicShapes }

// classicBox returns the box that a block has in Classic, which knows no more than one of a block, and reports whether
// it is no whole block.
func classicBox(b chunk.Block) (box chunk.Box, shaped bool) {
	boxes := b.Boxes()
	switch {
	case !b.Shaped(), b.IsSign() && len(boxes) > 1, b == chunk.GlassPane:
		return box, false
	case b.Joinable(): // nobody passes between two of them
		return chunk.Box{Low: [3]uint8{4, 0, 4}, High: [3]uint8{12, 16, 12}}, true
	case b.Opens(): // of an open gate, one wing
		if len(boxes) > 1 && !b.Solid() {
			boxes = boxes[:len(boxes)/2]
		}
		return around(boxes), true
	case b.Stairs(): // as high as they are on average
		low := boxes[0].Low[1] / 2
		return chunk.Box{Low: [3]uint8{0, low, 0}, High: [3]uint8{16, low + 12, 16}}, true
	}
	return boxes[0], true
}

// around returns the box around some.
func around(boxes []chunk.Box) chunk.Box {
	all := boxes[0]
	for _, b := range boxes[1:] {
		for i := range 3 {
			all.Low[i], all.High[i] = min(all.Low[i], b.Low[i]), max(all.High[i], b.High[i])
		}
	}
	return all
}

// classicMadeOf returns the image of what a shaped block is made of.
func classicMadeOf(b chunk.Block) byte {
	switch {
	case b.Glow() > 0:
		return classicOf(chunk.Lamp).custom
	case b.Opens():
		return classicOf(chunk.Planks).custom
	case b.Base() == chunk.Ladder:
		return classicRope
	}
	return classicOf(b.Material()).custom
}
