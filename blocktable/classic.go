package blocktable

import (
	"strings"

	"github.com/voxelpopuli/voxeld/chunk"
)

// classicPlainBlocks is how many blocks Minecraft Classic has, and classicCustomBlocks how many with the 16 of CPE's
// CustomBlocks.
const classicPlainBlocks, classicCustomBlocks = 50, 66

// ClassicLevel is the set of blocks that a client of Classic has.
type ClassicLevel uint8

// ClassicLevels, each with the blocks of those before.
const (
	ClassicPlain  ClassicLevel = iota
	ClassicCustom              // those of CustomBlocks
	ClassicShaped              // and ClassicShapes
)

// image is a block's in Classic: with CustomBlocks, and without.
type image struct{ custom, plain byte }

// Blocks of Classic that are the images of many of ours.
const (
	classicSapling, classicSlab, classicCobbleSlab, classicRope, classicFire, classicMushroom = 6, 44, 50, 51, 54, 39
)

// classic has the images of our first blocks in Classic.
var classic = [...]image{
	chunk.Air:         {0, 0},
	chunk.Stone:       {1, 1},
	chunk.Grass:       {2, 2},
	chunk.Dirt:        {3, 3},
	chunk.Sand:        {12, 12},
	chunk.Water:       {9, 9},
	chunk.Log:         {17, 17},
	chunk.Leaves:      {18, 18},
	chunk.Snow:        {36, 36}, // white cloth: Classic's snow is a thin layer
	chunk.CoalOre:     {16, 16},
	chunk.IronOre:     {15, 15},
	chunk.GoldOre:     {14, 14},
	chunk.DiamondOre:  {28, 28}, // cyan cloth
	chunk.Gravel:      {13, 13},
	chunk.Clay:        {35, 35}, // grey cloth
	chunk.Bedrock:     {7, 7},
	chunk.Planks:      {5, 5},
	chunk.Cobble:      {4, 4},
	chunk.Glass:       {20, 20},
	chunk.Brick:       {45, 45},
	chunk.Lamp:        {62, 41}, // magma shines; gold
	chunk.Ice:         {60, 27}, // ice; aqua cloth
	chunk.SnowyGrass:  {36, 36},
	chunk.Cactus:      {56, 25}, // dark green and green cloth
	chunk.BirchLog:    {63, 17}, // pillar; log
	chunk.BirchLeaves: {18, 18},
	chunk.PineLog:     {17, 17},
	chunk.PineLeaves:  {18, 18},
	chunk.DryLeaves:   {18, 18},
	chunk.TallGrass:   {6, 6}, // sapling
	chunk.DryGrass:    {39, 39},
	chunk.Fern:        {6, 6},
	chunk.Poppy:       {38, 38},
	chunk.Dandelion:   {37, 37},
	chunk.Cornflower:  {38, 38},
	chunk.Daisy:       {37, 37},
	chunk.DeadBush:    {39, 39}, // brown mushroom
	chunk.Reeds:       {6, 6},
}

// classicColours has the images of wool, by colour: cloth.
var classicColours = [chunk.Colours]image{
	{36, 36}, {35, 35}, {35, 35}, {34, 34}, // white, light grey, grey, black
	{57, 22}, {21, 21}, {22, 22}, {23, 23}, // brown, red, orange, yellow
	{24, 24}, {25, 25}, {59, 28}, {28, 28}, // lime, green, cyan, light blue
	{29, 29}, {31, 31}, {32, 32}, {33, 33}, // blue, purple, magenta, pink
}

// classicMaterials has the images of what is neither one of the first blocks nor has a colour.
var classicMaterials = map[chunk.Block]image{
	chunk.StoneBricks:  {65, 4},
	chunk.MossyCobble:  {48, 48},
	chunk.SmoothStone:  {43, 43},
	chunk.Sandstone:    {52, 12},
	chunk.BirchPlanks:  {5, 5},
	chunk.PinePlanks:   {5, 5},
	chunk.Marble:       {63, 36}, // a pillar
	chunk.Basalt:       {49, 49}, // obsidian
	chunk.Terracotta:   {57, 22},
	chunk.RoofTiles:    {45, 45},
	chunk.Bookshelf:    {47, 47},
	chunk.Straw:        {23, 23},
	chunk.IronBlock:    {42, 42},
	chunk.GoldBlock:    {41, 41},
	chunk.DiamondBlock: {28, 28},
}

// classicOf returns the image of a block.
func classicOf(b chunk.Block) image {
	material := b.Material()
	switch {
	case int(material) < len(classic) && material == b:
		return classic[b]
	case b < chunk.StoneBricks && b >= chunk.Wool:
		return classicColours[(b-chunk.Wool)%chunk.Colours]
	}
	if image, ok := classicMaterials[b]; ok {
		return image
	}
	boxes := b.Boxes()
	switch {
	case len(boxes) == 1 && boxes[0].High == [3]uint8{16, 8, 16}:
		if material == chunk.Cobble {
			return image{classicCobbleSlab, classicSlab}
		}
		return image{classicSlab, classicSlab}
	case b.Glow() > 0 && !b.Solid():
		return image{classicFire, classicMushroom}
	case !b.Solid():
		return image{classicRope, classicSapling}
	case material != b.Base():
		return classicOf(material)
	}
	return classic[chunk.Planks] // a closed door
}

// Wool, by its colour.
const (
	grey = chunk.Wool + 2 + iota
	black
	brown
	red
	orange
	yellow
	lime
	green
	cyan
	lightBlue
	blue
	purple
	magenta
	pink
)

// fromClassic has what a player of Classic places with each of its blocks.
var fromClassic = [classicCustomBlocks]chunk.Block{
	0: chunk.Air, 1: chunk.Stone, 2: chunk.Grass, 3: chunk.Dirt, 4: chunk.Cobble, 5: chunk.Planks, 6: chunk.TallGrass, 7: chunk.Bedrock,
	8: chunk.Water, 9: chunk.Water, 10: chunk.Water, 11: chunk.Water, // lava, which we lack, is passable too
	12: chunk.Sand, 13: chunk.Gravel, 14: chunk.GoldOre, 15: chunk.IronOre, 16: chunk.CoalOre, 17: chunk.Log, 18: chunk.Leaves,
	19: chunk.Sand, 20: chunk.Glass,
	// Cloth, by its colour: red, orange, yellow, lime, green, teal, aqua, cyan, blue, indigo, violet, magenta, pink,
	// black, grey, white.
	21: red, 22: orange, 23: yellow, 24: lime, 25: green, 26: green, 27: chunk.Ice, 28: lightBlue, 29: blue, 30: purple, 31: purple,
	32: magenta, 33: pink, 34: black, 35: grey, 36: chunk.Wool,
	37: chunk.Dandelion, 38: chunk.Poppy, 39: chunk.DeadBush, 40: chunk.Poppy, 41: chunk.GoldBlock, 42: chunk.IronBlock,
	43: chunk.SmoothStone, 44: chunk.SmoothStoneSlab, 45: chunk.Brick, 46: chunk.Brick, 47: chunk.Bookshelf, 48: chunk.MossyCobble, 49: chunk.Basalt,
	// CustomBlocks.
	50: chunk.CobbleSlab, 51: chunk.Ladder, 52: chunk.Sandstone, 53: chunk.Snow, 54: chunk.Torch, 55: pink, 56: chunk.Cactus, 57: brown,
	58: blue, 59: cyan, 60: chunk.Ice, 61: chunk.Marble, 62: chunk.Lamp, 63: chunk.Marble, 64: chunk.Planks, 65: chunk.StoneBricks,
}

// ToClassic returns the image of a block in Classic, for a client that has the blocks of a level. That of an unknown
// block is stone.
func ToClassic(b chunk.Block, level ClassicLevel) byte {
	of := classic[chunk.Stone]
	if b.Known() {
		of = classicOf(b)
	}
	if id, shaped := classicShapeOf[b]; shaped && level == ClassicShaped {
		return id
	}
	if level >= ClassicCustom {
		return of.custom
	}
	return of.plain
}

// FromClassic returns what a block of Classic becomes here, and reports whether there is such a block.
func FromClassic(id byte) (b chunk.Block, known bool) {
	if shaped := int(id) - len(fromClassic); shaped >= 0 {
		if shaped >= len(classicShapes) {
			return chunk.Air, false
		}
		return classicShapes[shaped].Block, true
	}
	return fromClassic[id], true
}

// ClassicInventory returns the blocks of Classic that are seen as what they were chosen as when they are placed, in the
// order of ours. Of shaped blocks there are those that are placed in any state, and upper slabs and stairs: the client
// does not send which half was clicked.
func ClassicInventory(level ClassicLevel) (ids []byte) {
	for b := chunk.Air + 1; b.Known(); b++ {
		id := ToClassic(b, level)
		back, _ := FromClassic(id)
		chosen := b.Base() == b || strings.HasSuffix(b.Name(), "_slab_upper") || strings.HasSuffix(b.Name(), "_stairs_upper_east")
		if back == b && b.Placeable() && chosen {
			ids = append(ids, id)
		}
	}
	return ids
}

// ClassicBlocks returns how many blocks a client has.
func ClassicBlocks(level ClassicLevel) int {
	switch level {
	case ClassicPlain:
		return classicPlainBlocks
	case ClassicCustom:
		return classicCustomBlocks
	case ClassicShaped:
		return classicCustomBlocks + len(classicShapes)
	}
	panic("no level of blocks")
}
