package chunk

import (
	"cmp"
	"fmt"
	"strings"
)

// Block is the id of a kind of block. Ids are stored and sent: their numbers never change, and new ones are appended.
type Block uint16

// The blocks. The first four are VoxelPopuli's (§3.2.1, table 3.2).
const (
	Air Block = iota
	Stone
	Grass
	Dirt
	Sand
	Water
	Log
	Leaves
	Snow
	CoalOre
	IronOre
	GoldOre
	DiamondOre
	Gravel
	Clay
	Bedrock
	Planks
	Cobble
	Glass
	Brick
	Lamp
	Ice
	SnowyGrass
	Cactus
	BirchLog
	BirchLeaves
	PineLog
	PineLeaves
	DryLeaves
	TallGrass
	DryGrass
	Fern
	Poppy
	Dandelion
	Cornflower
	Daisy
	DeadBush
	Reeds
)

// Those with a colour: the first of each is white, and the others follow in the order of colours.
const (
	Wool Block = Reeds + 1 + iota*Colours
	Concrete
	ColouredGlass
	afterColours
)

// More materials.
const (
	StoneBricks = afterColours + iota
	MossyCobble
	SmoothStone
	Sandstone
	BirchPlanks
	PinePlanks
	Marble
	Basalt
	Terracotta
	RoofTiles
	Bookshelf
	Straw
	IronBlock
	GoldBlock
	DiamondBlock
	afterMaterials
)

// Of slabs (with an upper one) and stairs (in four directions), the first and some others.
const (
	StoneSlab       = afterMaterials
	StoneStairs     = StoneSlab + 2
	CobbleSlab      = StoneSlab + 6
	SmoothStoneSlab = StoneSlab + 8*6
	afterStairs     = StoneSlab + 12*6
)

// Fittings, without their states.
const (
	PlankFence = afterStairs + iota
	BirchPlankFence
	PinePlankFence
	GlassPane
	Torch
	Ladder   = Torch + 5
	Door     = Ladder + 4
	PineDoor = Door + 8
	Sign     = PineDoor + 8
	// lastSign is the last of the states of a sign.
	lastSign       = Sign + 7
	PlankFenceGate = lastSign + 1
	Trapdoor       = PlankFenceGate + 3*8
	PineTrapdoor   = Trapdoor + 16
)

// unknown has the traits of ids of later versions: bodies stop at them, and players cannot change them.
var unknown = traits{original: Stone, shape: cube, fixed: true}

func (b Block) traits() *traits {
	if !b.Known() {
		return &unknown
	}
	return &blocks[b]
}

// Known reports whether this version defines the block id.
func (b Block) Known() bool { return int(b) < len(blocks) }

// Name returns the block's name, as "coal_ore"; "block 999" for an unknown one.
func (b Block) Name() string {
	if !b.Known() {
		return fmt.Sprintf("block %d", uint16(b))
	}
	return blocks[b].name
}

// Base returns the block of which this is a state, such as stairs that lead elsewhere; mostly the block itself.
func (b Block) Base() Block {
	if !b.Known() {
		return b
	}
	return blocks[b].base
}

// Material returns the block that this one is made of: planks for stairs of planks, mostly the block itself.
func (b Block) Material() Block {
	if !b.Known() {
		return b
	}
	return blocks[b].material
}

// Tiles returns the names of the textures of the block's top, side and bottom. The upper half of a door has that of its
// top on all sides.
func (b Block) Tiles() (names [3]string) {
	tiles := "unknown"
	if b != Air && b.Known() {
		tiles = cmp.Or(blocks[b].tiles, b.Base().Name())
	}
	all := strings.Fields(tiles)
	for i := range names {
		names[i] = all[min(i, len(all)-1)]
	}
	return names
}

// Plant reports whether the block is a thin plant: grass, a flower, reeds. Bodies and light pass through it, and
// a block put there takes its place.
func (b Block) Plant() bool { return b.traits().shape == plant }

// Leafy reports whether the block is leaves.
func (b Block) Leafy() bool { return b.traits().leafy }

// Translucent reports whether what is behind the block shows through its colour: water, ice and coloured glass.
func (b Block) Translucent() bool { return b.traits().pass == water }

// Shaped reports whether the block has another shape than a cube, a liquid or a plant.
func (b Block) Shaped() bool { return b.traits().shape > plant }

// IsSign reports whether the block is a sign, which can have a text.
func (b Block) IsSign() bool { return b >= Sign && b <= lastSign }

// Glow returns the light that the block emits, 0 to 15.
func (b Block) Glow() uint8 { return b.traits().glow }

// Boxes returns the parts of the block's space that it fills, and none for air, water and plants. Bodies stop at them
// if the block is Solid. The caller must not change them.
func (b Block) Boxes() []Box { return shapeBoxes[b.traits().shape] }

// Arms returns the parts of a fence, or a pane, that are seen: those in the middle, and those to the sides, which are
// there if something is joined: in the directions +x, −x, +z and −z. Other blocks have none. The caller must not change
// them.
func (b Block) Arms() (middle []Box, arms [4][]Box) {
	post := fencePost
	switch b.traits().shape {
	case fence:
	case pane:
		post = panePost
	default:
		return nil, arms
	}
	for d := range arms {
		arms[d] = shapeBoxes[int(post)+1+d]
	}
	return shapeBoxes[post], arms
}

// Joinable reports whether the block is a fence, or a pane: it is seen joined to what is beside it.
func (b Block) Joinable() bool {
	shape := b.traits().shape
	return shape == fence || shape == pane
}

// Joins reports whether a block that is Joinable is joined to one beside it, as in the browser's client
// (web/src/mesh/shapes.ts).
func (b Block) Joins(beside Block) bool {
	shape, other := b.traits().shape, beside.traits().shape
	return other == shape || other == cube || beside.Door() || shape == fence && other >= gate && other < trapdoor
}

// Door reports whether the block is half of a door, open or closed.
func (b Block) Door() bool {
	shape := b.traits().shape
	return shape >= door && shape < gate
}

// Opens reports whether the block is opened and closed by a click: half of a door, a gate or a trapdoor.
func (b Block) Opens() bool {
	shape := b.traits().shape
	return shape >= door && shape < fencePost
}

// Used returns a block that Opens as it is after it was opened or closed.
func (b Block) Used() Block {
	closed := Block(4) // how many states are closed, and how many are open
	if b.traits().shape >= trapdoor {
		closed = 8
	}
	if b.Solid() {
		return b + closed
	}
	return b - closed
}

// Climbable reports whether the block is a ladder, or a trapdoor that is open: mostly it is above one.
func (b Block) Climbable() bool {
	shape := b.traits().shape
	return shape >= ladder && shape < door || shape >= openTrapdoor && shape < fencePost
}

// Solid reports whether the block stops a body. Air, water, plants, torches, signs, ladders and what is open do not.
func (b Block) Solid() bool { return !b.traits().passable }

// Opaque reports whether the block hides what is behind it and stops light. Slabs and stairs stop light, but hide
// nothing.
func (b Block) Opaque() bool { return !b.traits().clear }

// Shades reports whether no light passes through the block: it is Opaque, a slab or stairs.
func (b Block) Shades() bool { return b.Opaque() || b.traits().dims == noLight }

// Placeable reports whether a player may place the block. Air is not placeable: an edit to Air breaks a block (see
// Breakable).
func (b Block) Placeable() bool { return !b.traits().fixed }

// Breakable reports whether a player may remove the block. Bedrock and Air are not breakable.
func (b Block) Breakable() bool { return !b.traits().fixed }

// Original returns the nearest of VoxelPopuli's blocks 0 to 3. To its clients everything but 0 is solid,
// so solid blocks stay solid, and water and plants are air.
func (b Block) Original() Block { return b.traits().original }
