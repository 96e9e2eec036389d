package chunk

import (
	"slices"
	"strings"
)

// traits are the properties of a block. The browser client's table is written from them (web/src/world/block-table.ts).
type traits struct {
	name     string
	group    group // of the inventory
	original Block // what VoxelPopuli's client sees: 0 to 3
	base     Block // of which it is a state
	material Block
	shape    shape
	passable bool // bodies pass through
	clear    bool // what is behind it is seen, and light passes through it, less dims
	fixed    bool // players can neither place nor break it

	// How it looks.
	tiles string // the textures of its top, side and bottom, or one for all; empty: one with its name
	pass  pass
	leafy bool  // one face is drawn between two leafy blocks of any kind
	glow  uint8 // the light that it emits, 0 to 15
	dims  uint8 // levels of light lost in it, in addition to the one lost per step; noLight: all

	sound sound
	cold  bool // snow falls where it is on top
}

// noLight are the dims of a block that stops light.
const noLight = 15

// group is where the inventory has a block.
type group uint8

const (
	_ group = iota
	nature
	plants
	building
	wool
	concrete
	glass
	slabs
	stairways
	fittings
)

var groups = [...]string{"", "Nature", "Plants", "Building", "Wool", "Concrete", "Glass", "Slabs", "Stairs", "Fittings"}

// pass is the rendering pass that draws a block.
type pass uint8

const (
	opaque pass = iota
	cutout      // with holes
	water       // translucent
)

// sound is what it sounds like to break a block, to place it, and to step on it.
type sound uint8

const (
	stony sound = iota
	soft
	leaves
	wooden
	glassy
	metallic
	watery
)

var sounds = [...]string{"stone", "soft", "leaves", "wood", "glass", "metal", "water"}

// Colours is the number of colours of wool, concrete and glass.
const Colours = 16

var colours = [Colours]string{
	"white", "light_grey", "grey", "black", "brown", "red", "orange", "yellow", "lime", "green", "cyan", "light_blue", "blue", "purple",
	"magenta", "pink",
}

var blocks = blockTable()

// blockTable returns the traits of all blocks, by id. New ones are appended.
func blockTable() []traits {
	t := table{all: []traits{
		Air:         {name: "air", shape: none, passable: true, clear: true, fixed: true},
		Stone:       {name: "stone", group: nature, original: Stone},
		Grass:       {name: "grass", group: nature, original: Grass, tiles: "grass_top grass_side dirt", sound: soft},
		Dirt:        {name: "dirt", group: nature, original: Dirt, sound: soft},
		Sand:        {name: "sand", group: nature, original: Dirt, sound: soft},
		Water:       {name: "water", group: nature, original: Air, shape: liquid, pass: water, passable: true, clear: true, dims: 1, sound: watery},
		Log:         {name: "log", group: nature, original: Dirt, tiles: "log_top log_side log_top", sound: wooden},
		Leaves:      {name: "leaves", group: nature, original: Grass, pass: cutout, clear: true, leafy: true, dims: 1, sound: leaves},
		Snow:        {name: "snow", group: nature, original: Stone, sound: soft, cold: true},
		CoalOre:     {name: "coal_ore", group: nature, original: Stone},
		IronOre:     {name: "iron_ore", group: nature, original: Stone},
		GoldOre:     {name: "gold_ore", group: nature, original: Stone},
		DiamondOre:  {name: "diamond_ore", group: nature, original: Stone},
		Gravel:      {name: "gravel", group: nature, original: Dirt, sound: soft},
		Clay:        {name: "clay", group: nature, original: Dirt, sound: soft},
		Bedrock:     {name: "bedrock", group: nature, original: Stone, fixed: true},
		Planks:      {name: "planks", group: building, original: Dirt, sound: wooden},
		Cobble:      {name: "cobble", group: building, original: Stone},
		Glass:       {name: "glass", group: building, original: Stone, pass: cutout, clear: true, sound: glassy},
		Brick:       {name: "brick", group: building, original: Stone},
		Lamp:        {name: "lamp", group: fittings, original: Stone, glow: 15, sound: glassy},
		Ice:         {name: "ice", group: nature, original: Stone, pass: water, clear: true, dims: 1, sound: glassy, cold: true},
		SnowyGrass:  {name: "snowy_grass", group: nature, original: Grass, tiles: "snow snowy_grass_side dirt", sound: soft, cold: true},
		Cactus:      {name: "cactus", group: nature, original: Grass, tiles: "cactus_top cactus_side cactus_top", sound: leaves},
		BirchLog:    {name: "birch_log", group: nature, original: Dirt, tiles: "birch_log_top birch_log_side birch_log_top", sound: wooden},
		BirchLeaves: {name: "birch_leaves", group: nature, original: Grass, pass: cutout, clear: true, leafy: true, dims: 1, sound: leaves},
		PineLog:     {name: "pine_log", group: nature, original: Dirt, tiles: "pine_log_top pine_log_side pine_log_top", sound: wooden},
		PineLeaves:  {name: "pine_leaves", group: nature, original: Grass, pass: cutout, clear: true, leafy: true, dims: 1, sound: leaves},
		DryLeaves:   {name: "dry_leaves", group: nature, original: Grass, pass: cutout, clear: true, leafy: true, dims: 1, sound: leaves},
		TallGrass:   herb("tall_grass"),
		DryGrass:    herb("dry_grass"),
		Fern:        herb("fern"),
		Poppy:       herb("poppy"),
		Dandelion:   herb("dandelion"),
		Cornflower:  herb("cornflower"),
		Daisy:       herb("daisy"),
		DeadBush:    herb("dead_bush"),
		Reeds:       herb("reeds"),
	}}
	for id := range t.all {
		b := &t.all[id]
		b.base, b.material = Block(id), Block(id) //nolint:gosec // short
		if id != int(Air) && b.shape == none {
			b.shape = cube
		}
	}
	t.addColours()
	t.addMaterials()
	t.addSlabsAndStairs()
	t.addFittings()
	t.addGatesAndTrapdoors()
	t.addMoreStairs()
	return t.all
}

// herb returns the traits of a thin plant. VoxelPopuli's clients, to which everything but air is solid, see air.
func herb(name string) traits {
	return traits{name: name, group: plants, shape: plant, pass: cutout, passable: true, clear: true, sound: leaves}
}

type table struct{ all []traits }

func (t *table) next() Block { return Block(len(t.all)) } //nolint:gosec // short

// add appends a block with no states.
func (t *table) add(b traits) {
	b.base, b.material = t.next(), t.next()
	if b.shape == none {
		b.shape = cube
	}
	t.all = append(t.all, b)
}

// addStates appends a block with a state for each suffix: the first, which is empty, is the block itself. Their shapes
// follow the block's.
func (t *table) addStates(b traits, material Block, suffixes ...string) {
	b.base = t.next()
	b.material = material
	if b.material == Air {
		b.material = b.base
	}
	name, first := b.name, b.shape
	for i, suffix := range suffixes {
		b.name, b.shape = name+suffix, first+shape(i) //nolint:gosec // short
		t.all = append(t.all, b)
	}
}

func (t *table) addColours() {
	for _, colour := range colours {
		t.add(traits{name: colour + "_wool", group: wool, original: Grass, sound: soft})
	}
	for _, colour := range colours {
		t.add(traits{name: colour + "_concrete", group: concrete, original: Stone})
	}
	for _, colour := range colours {
		t.add(traits{name: colour + "_glass", group: glass, original: Stone, pass: water, clear: true, sound: glassy})
	}
}

func (t *table) addMaterials() {
	for name := range strings.FieldsSeq("stone_bricks mossy_cobble smooth_stone sandstone") {
		t.add(traits{name: name, group: building, original: Stone})
	}
	t.add(traits{name: "birch_planks", group: building, original: Dirt, sound: wooden})
	t.add(traits{name: "pine_planks", group: building, original: Dirt, sound: wooden})
	for name := range strings.FieldsSeq("marble basalt terracotta roof_tiles") {
		t.add(traits{name: name, group: building, original: Stone})
	}
	t.add(traits{name: "bookshelf", group: building, original: Dirt, tiles: "planks bookshelf planks", sound: wooden})
	t.add(traits{name: "straw", group: building, original: Grass, tiles: "straw_top straw straw_top", sound: leaves})
	for name := range strings.FieldsSeq("iron_block gold_block diamond_block") {
		t.add(traits{name: name, group: building, original: Stone, sound: metallic})
	}
}

func (t *table) addSlabsAndStairs() {
	for _, of := range []struct {
		name     string
		material Block
	}{
		{"stone", Stone},
		{"cobble", Cobble},
		{"plank", Planks},
		{"birch_plank", BirchPlanks},
		{"pine_plank", PinePlanks},
		{"brick", Brick},
		{"stone_brick", StoneBricks},
		{"sandstone", Sandstone},
		{"smooth_stone", SmoothStone},
		{"marble", Marble},
		{"basalt", Basalt},
		{"roof_tile", RoofTiles},
	} {
		b := traits{original: t.all[of.material].original, clear: true, dims: noLight, tiles: t.all[of.material].name, sound: t.all[of.material].sound}
		b.name, b.group, b.shape = of.name+"_slab", slabs, slab
		t.addStates(b, of.material, "", "_upper")
		b.name, b.group, b.shape = of.name+"_stairs", stairways, stairs
		t.addStates(b, of.material, turned("")...)
	}
}

func (t *table) addFittings() {
	for _, of := range []struct {
		name     string
		material Block
	}{{"plank_fence", Planks}, {"birch_plank_fence", BirchPlanks}, {"pine_plank_fence", PinePlanks}} {
		b := traits{name: of.name, group: fittings, original: Dirt, shape: fence, clear: true, tiles: t.all[of.material].name, sound: wooden}
		t.addStates(b, of.material, "")
	}
	t.addStates(traits{name: "glass_pane", group: fittings, original: Stone, shape: pane, pass: cutout, clear: true, tiles: "glass", sound: glassy}, Glass, "")
	t.addStates(traits{
		name: "torch", group: fittings, shape: torch, passable: true, clear: true, glow: 14, tiles: "torch_top torch torch_end", sound: wooden,
	}, Air, append([]string{""}, turned("_on_the")...)...)
	for i := range 4 {
		t.all[len(t.all)-1-i].tiles = "torch_top wall_torch torch_end"
	}
	t.addStates(traits{name: "ladder", group: fittings, shape: ladder, pass: cutout, passable: true, clear: true, sound: wooden}, Air, turned("")...)
	for _, wood := range []string{"", "pine_"} {
		b := traits{
			name: wood + "door", group: fittings, original: Dirt, shape: door, pass: cutout, clear: true,
			tiles: wood + "door_top " + wood + "door " + wood + "door", sound: wooden,
		}
		t.addOpening(b, Air, turned(""), turned("_open"))
	}
	t.addStates(traits{name: "sign", group: fittings, shape: sign, passable: true, clear: true, sound: wooden}, Planks, append(turned(""), turned("_on_the")...)...)
}

func (t *table) addGatesAndTrapdoors() {
	for fence := PlankFence; fence <= PinePlankFence; fence++ {
		b := t.all[fence]
		b.name, b.shape = b.name+"_gate", gate
		t.addOpening(b, b.material, turned(""), turned("_open"))
	}
	for _, wood := range []string{"", "pine_"} {
		b := traits{name: wood + "trapdoor", group: fittings, original: Dirt, shape: trapdoor, pass: cutout, clear: true, sound: wooden}
		t.addOpening(b, Air, append(turned(""), turned("_upper")...), append(turned("_open"), turned("_open_upper")...))
	}
}

// addMoreStairs appends the corners of stairs, and those at the top of their block.
func (t *table) addMoreStairs() {
	suffixes := slices.Concat(turned("_outer"), turned("_inner"), turned("_upper"), turned("_upper_outer"), turned("_upper_inner"))
	for base := StoneStairs; base < afterStairs; base += 6 {
		for i, suffix := range suffixes {
			b := t.all[base]
			b.name, b.shape = b.name+suffix, stairs+4+shape(i) //nolint:gosec // few
			t.all = append(t.all, b)
		}
	}
}

// addOpening appends a block that is opened and closed, with the suffixes of its states when closed and when open.
func (t *table) addOpening(b traits, material Block, closed, open []string) {
	t.addStates(b, material, append(closed, open...)...)
	for i := len(t.all) - len(open); i < len(t.all); i++ {
		t.all[i].original, t.all[i].passable = Air, true
	}
}

// turned returns the suffixes of the states in the four directions; without more, the first is the block itself.
func turned(more string) []string {
	all := make([]string, 4)
	for i, direction := range directions {
		all[i] = more + "_" + direction
	}
	if more == "" {
		all[0] = ""
	}
	return all
}
