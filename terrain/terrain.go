package terrain

import "fmt"

// maxSections is the tallest world, in sections of 32 blocks (the chunk codec's bound).
const maxSections = 32

// Params determine every block of untouched land. They are part of a world's genesis.
type Params struct {
	Seed     int64
	Sections int // height of the world in sections of 32 blocks, 1..32; 1 is the dissertation's world
	Version  int // 1..Version
}

// Generator generates the land of one world. It is immutable and safe for concurrent use.
type Generator struct {
	params Params
	height int     // blocks
	sea    int     // y of the highest water block
	lift   float64 // vertical blocks per unit of elevation; 1 in a world of 4 sections
	grain  grain
	fields fields

	bottom, knee, top float64 // elevations: the lowest ground, where summits start to be flattened, and the upper bound
}

// New returns the generator of a world, or an error that names the invalid parameter.
func New(p Params) (*Generator, error) {
	if p.Version < 1 || p.Version > Version {
		return nil, fmt.Errorf("make terrain generator: unknown terrain version %d: this voxeld supports 1 to %d; upgrade it", p.Version, Version)
	}
	if p.Sections < 1 || p.Sections > maxSections {
		return nil, fmt.Errorf("make terrain generator: %d sections, want 1..%d", p.Sections, maxSections)
	}
	g := &Generator{
		params: p,
		height: 32 * p.Sections,
		sea:    int(SeaLevel(p.Sections)),
		lift:   liftOf(p.Sections),
		grain:  grains[p.Version],
	}
	g.fields = newFields(p.Seed, g.lift)
	const pressed = 0.8 // share of the height below the sky above which summits are flattened
	g.bottom = float64(6-g.sea) / g.lift
	g.top = float64(g.height-10-g.sea) / g.lift
	g.knee = mul(pressed, g.top)
	return g, nil
}

// SeaLevel returns the y of the highest water block in a world of that many sections: three eighths of the height (48
// of 128 blocks by default). The dissertation's world, one section high, has no water: 0.
func SeaLevel(sections int) int32 {
	if sections <= 1 {
		return 0
	}
	return int32(12 * sections)
}

// liftOf returns the scale of elevations for the height of the world: in proportion up to 8 sections, then more slowly,
// because mountains 600 blocks high would be walls.
func liftOf(sections int) float64 {
	if sections <= 8 {
		return float64(sections) / 4
	}
	return float64(32+sections-8) / 16
}

// Params returns the parameters of the generator.
func (g *Generator) Params() Params { return g.params }

// dice returns the dice for the decisions named by salt. Use at with x, y and z, in this order, for the dice of a
// place.
func (g *Generator) dice(salt uint64) dice { return dice(mix(uint64(g.params.Seed) ^ salt*golden)) }

// place returns the dice of a place for the decisions named by salt.
func (g *Generator) place(salt uint64, x, y, z int) dice { return g.dice(salt).at(x).at(y).at(z) }

// Version is the terrain version of new worlds, the newest one.
const Version = len(grains) - 1

// grain is what differs between versions: the distance between noise samples, as log2 of blocks. Values between samples
// are interpolated; with 0 every block is sampled.
type grain struct {
	climate uint // climate
	hills   uint // elevations (Generator.hills)
	bumps   uint // bumps
	meadow  uint // meadow
	cave    uint // caveCorner, along x and z
	storey  uint // caveCorner, along y
}

// grains lists the versions. A released one never changes, because worlds depend on it.
var grains = [...]grain{
	1: {climate: 0, hills: 0, bumps: 0, meadow: 0, cave: 2, storey: 2},
	// The same land except for a block here and there, in a quarter of the time: the shortest wave of a climate field
	// is some 50 blocks long where it is bent most, that of hills and bumps 13.
	2: {climate: 3, hills: 2, bumps: 2, meadow: 2, cave: 3, storey: 3},
}
