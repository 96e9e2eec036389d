package blocktable

import "github.com/voxelpopuli/voxeld/chunk"

// Numbers of blocks of Minecraft Classic, and with the 16 of CPE's CustomBlocks.
const (
	ClassicBlocks       = 50
	ClassicCustomBlocks = 66
)

// classic has the images of our blocks in Classic: with CustomBlocks, and without.
var classic = [...]struct{ custom, plain byte }{
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

// fromClassic has what a player of Classic places with each of its blocks.
var fromClassic = [ClassicCustomBlocks]chunk.Block{
	0: chunk.Air, 1: chunk.Stone, 2: chunk.Grass, 3: chunk.Dirt, 4: chunk.Cobble, 5: chunk.Planks, 6: chunk.TallGrass, 7: chunk.Bedrock,
	8: chunk.Water, 9: chunk.Water, 10: chunk.Water, 11: chunk.Water, // lava, which we lack, is passable too
	12: chunk.Sand, 13: chunk.Gravel, 14: chunk.GoldOre, 15: chunk.IronOre, 16: chunk.CoalOre, 17: chunk.Log, 18: chunk.Leaves,
	19: chunk.Sand, 20: chunk.Glass,
	// Cloth, by its colour: red, orange, yellow, lime, green, teal, aqua, cyan, blue, indigo, violet, magenta, pink, black, grey, white.
	21: chunk.Brick, 22: chunk.DryLeaves, 23: chunk.Sand, 24: chunk.Leaves, 25: chunk.Cactus, 26: chunk.PineLeaves, 27: chunk.Ice,
	28: chunk.DiamondOre, 29: chunk.Ice, 30: chunk.Clay, 31: chunk.Clay, 32: chunk.Brick, 33: chunk.Brick, 34: chunk.CoalOre, 35: chunk.Clay,
	36: chunk.Snow, 37: chunk.Dandelion, 38: chunk.Poppy, 39: chunk.DeadBush, 40: chunk.Poppy, 41: chunk.Lamp, 42: chunk.IronOre,
	43: chunk.Stone, 44: chunk.Stone, 45: chunk.Brick, 46: chunk.Brick, 47: chunk.Planks, 48: chunk.Cobble, 49: chunk.CoalOre,
	// CustomBlocks.
	50: chunk.Cobble, 51: chunk.Reeds, 52: chunk.Sand, 53: chunk.Snow, 54: chunk.Poppy, 55: chunk.Brick, 56: chunk.Cactus, 57: chunk.PineLog,
	58: chunk.Ice, 59: chunk.DiamondOre, 60: chunk.Ice, 61: chunk.Snow, 62: chunk.Lamp, 63: chunk.BirchLog, 64: chunk.Planks, 65: chunk.Cobble,
}

// ToClassic returns the image of a block in Classic, for a client with CustomBlocks or without. That of an unknown block is stone.
func ToClassic(b chunk.Block, custom bool) byte {
	switch {
	case int(b) >= len(classic):
		return classic[chunk.Stone].plain
	case custom:
		return classic[b].custom
	}
	return classic[b].plain
}

// FromClassic returns what a block of Classic becomes here, and reports whether there is such a block.
func FromClassic(id byte) (b chunk.Block, known bool) {
	if int(id) >= len(fromClassic) {
		return chunk.Air, false
	}
	return fromClassic[id], true
}
