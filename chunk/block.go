package chunk

import "fmt"

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

type traits struct {
	name     string
	original Block // what VoxelPopuli's client sees: 0 to 3
	passable bool  // bodies pass through
	clear    bool  // light passes through
	fixed    bool  // players can neither place nor break it
	plant    bool  // a thin plant
}

var blocks = [...]traits{
	Air:         {name: "air", original: Air, passable: true, clear: true, fixed: true},
	Stone:       {name: "stone", original: Stone},
	Grass:       {name: "grass", original: Grass},
	Dirt:        {name: "dirt", original: Dirt},
	Sand:        {name: "sand", original: Dirt},
	Water:       {name: "water", original: Air, passable: true, clear: true},
	Log:         {name: "log", original: Dirt},
	Leaves:      {name: "leaves", original: Grass, clear: true},
	Snow:        {name: "snow", original: Stone},
	CoalOre:     {name: "coal_ore", original: Stone},
	IronOre:     {name: "iron_ore", original: Stone},
	GoldOre:     {name: "gold_ore", original: Stone},
	DiamondOre:  {name: "diamond_ore", original: Stone},
	Gravel:      {name: "gravel", original: Dirt},
	Clay:        {name: "clay", original: Dirt},
	Bedrock:     {name: "bedrock", original: Stone, fixed: true},
	Planks:      {name: "planks", original: Dirt},
	Cobble:      {name: "cobble", original: Stone},
	Glass:       {name: "glass", original: Stone, clear: true},
	Brick:       {name: "brick", original: Stone},
	Lamp:        {name: "lamp", original: Stone},
	Ice:         {name: "ice", original: Stone, clear: true},
	SnowyGrass:  {name: "snowy_grass", original: Grass},
	Cactus:      {name: "cactus", original: Grass},
	BirchLog:    {name: "birch_log", original: Dirt},
	BirchLeaves: {name: "birch_leaves", original: Grass, clear: true},
	PineLog:     {name: "pine_log", original: Dirt},
	PineLeaves:  {name: "pine_leaves", original: Grass, clear: true},
	DryLeaves:   {name: "dry_leaves", original: Grass, clear: true},
	TallGrass:   plant("tall_grass"),
	DryGrass:    plant("dry_grass"),
	Fern:        plant("fern"),
	Poppy:       plant("poppy"),
	Dandelion:   plant("dandelion"),
	Cornflower:  plant("cornflower"),
	Daisy:       plant("daisy"),
	DeadBush:    plant("dead_bush"),
	Reeds:       plant("reeds"),
}

// plant returns the traits of a thin plant. VoxelPopuli's clients, to which everything but air is solid, see air.
func plant(name string) traits {
	return traits{name: name, original: Air, passable: true, clear: true, plant: true}
}

// unknown has the traits of ids of later versions: bodies stop at them, and players cannot change them.
var unknown = traits{original: Stone, fixed: true}

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

// Plant reports whether the block is a thin plant: grass, a flower, reeds. Bodies and light pass through it, and
// a block put there takes its place.
func (b Block) Plant() bool { return b.traits().plant }

// Solid reports whether the block stops a body. Air, water and plants do not.
func (b Block) Solid() bool { return !b.traits().passable }

// Opaque reports whether the block hides what is behind it and stops light.
func (b Block) Opaque() bool { return !b.traits().clear }

// Placeable reports whether a player may place the block. Air is not placeable: an edit to Air breaks a block (see
// Breakable).
func (b Block) Placeable() bool { return !b.traits().fixed }

// Breakable reports whether a player may remove the block. Bedrock and Air are not breakable.
func (b Block) Breakable() bool { return !b.traits().fixed }

// Original returns the nearest of VoxelPopuli's blocks 0 to 3. To its clients everything but 0 is solid,
// so solid blocks stay solid, and water and plants are air.
func (b Block) Original() Block { return b.traits().original }
