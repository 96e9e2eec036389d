package blocktable

import (
	"cmp"
	"strings"

	"github.com/voxelpopuli/voxeld/chunk"
)

//go:generate node ../e2e/minecraft/blocktable.mjs

// MinecraftStateBits is how many bits the state of any block takes in Minecraft Java 1.20.2.
const MinecraftStateBits = 15

// minecraftImage is what a block of ours is in Minecraft.
type minecraftImage struct {
	state uint16 // of the block
	item  uint16 // that a player places it with; 0 if there is none
	light uint8  // that the block gives, 0 to 15
}

// minecraftRow has a block of ours, by its name, its image, and the items that become it.
type minecraftRow struct {
	name  string
	image minecraftImage
	items []uint16
}

var minecraftByBlock, minecraftByItem, minecraftByName = minecraftTables()

// minecraftTables returns the images of the known blocks, and the blocks by items and by names.
func minecraftTables() (byBlock []minecraftImage, byItem map[int32]chunk.Block, byName map[string]chunk.Block) {
	rows := make(map[string]minecraftRow, len(minecraftRows))
	for _, row := range minecraftRows {
		rows[row.name] = row
	}
	byItem, byName = make(map[int32]chunk.Block), make(map[string]chunk.Block)
	for b := chunk.Air; b.Known(); b++ {
		row, exact := rows[b.Name()]
		if !exact {
			row = rows[minecraftFallback(b).Name()]
			row.image.item = 0
			row.items = nil
		}
		byBlock, byName[b.Name()] = append(byBlock, row.image), b
		for _, item := range row.items { // the later of two blocks is more like it
			byItem[int32(item)] = b
		}
	}
	return byBlock, byItem, byName
}

// minecraftFallback returns a block that has an image, for one without: it is as solid as that, and as clear.
func minecraftFallback(b chunk.Block) chunk.Block {
	switch {
	case !b.Solid():
		return chunk.TallGrass
	case !b.Opaque():
		return chunk.Glass
	}
	return chunk.Stone
}

func minecraft(b chunk.Block) minecraftImage {
	if !b.Known() {
		b = chunk.Stone
	}
	return minecraftByBlock[b]
}

// ToMinecraft returns the state of a block's image in Minecraft. That of an unknown block is stone.
func ToMinecraft(b chunk.Block) uint16 { return minecraft(b).state }

// MinecraftItem returns the item that a player places a block with; 0 if there is none.
func MinecraftItem(b chunk.Block) uint16 { return minecraft(b).item }

// MinecraftLight returns the light of a block's image, 0 to 15.
func MinecraftLight(b chunk.Block) uint8 { return minecraft(b).light }

// Placing is how a player places a block. Directions are east, west, south and north.
type Placing struct {
	Looks string // the direction in which the player looks
	Wall  string // that of the block whose side was clicked; empty if it was clicked from above or from below
	Upper bool   // in the upper half
}

// state returns the name of a block's state that is placed so, by the names of the states here; that of the block if it has none.
func (p Placing) state(block string) string {
	towards := ""
	switch {
	case block == "torch" && p.Wall != "":
		return "torch_on_the_" + p.Wall
	case strings.HasSuffix(block, "_slab") && p.Upper:
		return block + "_upper"
	case block == "ladder":
		towards = cmp.Or(p.Wall, p.Looks)
	case strings.HasSuffix(block, "_stairs"), block == "door", block == "pine_door":
		towards = p.Looks
	}
	if towards == "" || towards == "east" { // the first state
		return block
	}
	return block + "_" + towards
}

// FromMinecraft returns what an item of Minecraft becomes here, and reports whether it is a block that we have.
func FromMinecraft(item int32, how Placing) (b chunk.Block, known bool) {
	b, known = minecraftByItem[item]
	if turned, is := minecraftByName[how.state(b.Name())]; known && is {
		return turned, true
	}
	return b, known
}
