package blocktable

import "github.com/voxelpopuli/voxeld/chunk"

//go:generate node ../test/e2e/minecraft/blocktable.mjs

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

// MinecraftTag is a tag of blocks of the game, and the numbers of those blocks in the registry of its client, which are
// not those of their states.
type MinecraftTag struct {
	Name   string
	Blocks []uint16
}

// MinecraftTags returns the tags of the images. The client goes by them, not by the blocks, in what can be climbed, for
// example.
func MinecraftTags() []MinecraftTag { return minecraftTags[:] }

var minecraftByBlock, minecraftByItem = minecraftTables()

// minecraftTables returns the images of the known blocks, and the blocks by items.
func minecraftTables() (byBlock []minecraftImage, byItem map[int32]chunk.Block) {
	rows := make(map[string]minecraftRow, len(minecraftRows))
	for _, row := range minecraftRows {
		rows[row.name] = row
	}
	byItem = make(map[int32]chunk.Block)
	for b := chunk.Air; b.Known(); b++ {
		row, exact := rows[b.Name()]
		if !exact {
			row = rows[minecraftFallback(b).Name()]
			row.image.item = 0
			row.items = nil
		}
		byBlock = append(byBlock, row.image)
		for _, item := range row.items { // the later of two blocks is more like it
			byItem[int32(item)] = b
		}
	}
	return byBlock, byItem
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

// Beside is a set of what is beside a block, on which its state depends in Minecraft.
type Beside uint8

// What is beside a block: something that a fence or a pane is joined to, in the order of chunk.Block.Arms; or the lower
// half of a door.
const (
	JoinedEast Beside = 1 << iota
	JoinedWest
	JoinedSouth
	JoinedNorth
	LowerHalf
)

// ToMinecraftBeside returns the state of the image of a fence, a pane or half of a door.
func ToMinecraftBeside(b chunk.Block, beside Beside) uint16 {
	state := ToMinecraft(b)
	for i, less := range minecraftBeside {
		if beside&(1<<i) != 0 {
			state -= less
		}
	}
	return state
}

// MinecraftItem returns the item that a player places a block with; 0 if there is none.
func MinecraftItem(b chunk.Block) uint16 { return minecraft(b).item }

// MinecraftLight returns the light of a block's image, 0 to 15.
func MinecraftLight(b chunk.Block) uint8 { return minecraft(b).light }

// FromMinecraft returns what an item of Minecraft becomes here, and reports whether it is a block that we have.
func FromMinecraft(item int32) (b chunk.Block, known bool) {
	b, known = minecraftByItem[item]
	return b, known
}
