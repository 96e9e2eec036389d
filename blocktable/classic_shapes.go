package blocktable

import "github.com/voxelpopuli/voxeld/chunk"

// ClassicShape is a block that a client of Classic with BlockDefinitionsExt is told to draw. Its number follows those
// of CustomBlocks.
type ClassicShape struct {
	ID       byte
	Block    chunk.Block
	Textures [3]byte   // of the top, the sides and the bottom, in the game's own terrain.png
	Box      chunk.Box // where it is drawn, and stops bodies
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

// ClassicShapes returns the shaped blocks.
func ClassicShapes() (all []ClassicShape) {
	for _, b := range classicShaped {
		all = append(all, ClassicShape{
			ID: ToClassic(b, ClassicShaped), Block: b, Textures: classicTextures[classicMadeOf(b)], Box: b.Boxes()[0],
		})
	}
	return all
}

// classicMadeOf returns the image of what a shaped block is made of.
func classicMadeOf(b chunk.Block) byte {
	switch {
	case b.Glow() > 0:
		return classicOf(chunk.Lamp).custom
	case b.Door():
		return classicOf(chunk.Planks).custom
	case b.Base() == chunk.Ladder:
		return classicRope
	}
	return classicOf(b.Material()).custom
}
