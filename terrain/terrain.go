package terrain

import (
	"fmt"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
)

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

// Chunk returns the untouched land of the chunk at pos, a new value that the caller owns.
func (g *Generator) Chunk(pos grid.ChunkPos) *chunk.Chunk { return g.ChunkIn(new(Room), pos) }

// Room is the memory for generating a chunk of four sections, half a megabyte. Keep one to generate many chunks. The
// zero value is ready. Only one goroutine may use it at a time, for any world.
type Room struct{ slab slab }

// ChunkIn is Chunk, using room as working memory.
func (g *Generator) ChunkIn(room *Room, pos grid.ChunkPos) *chunk.Chunk {
	s := &room.slab
	s.begin(g, int(pos.X)*grid.ChunkSize, int(pos.Z)*grid.ChunkSize, grid.ChunkSize, grid.ChunkSize)
	s.build()
	c, err := chunk.FromBlocks(s.blocks)
	if err != nil {
		panic(fmt.Sprintf("terrain: slab of %d blocks is no chunk: %v", len(s.blocks), err))
	}
	return c
}

// Surface returns the lowest y at which a body of two blocks stands in the untouched land at world blocks (x, z): on
// the ground, on water or, where a trunk or a bush fills the column, on top of that. Plants do not count. The result is
// between 1 and the world's height.
func (g *Generator) Surface(x, z int32) int32 {
	s := g.slab(int(x), int(z), 1, 1)
	s.build()
	at := func(y int) chunk.Block {
		if y >= g.height {
			return chunk.Air
		}
		return s.blocks[y]
	}
	y := s.ground(s.minX, s.minZ) + 1
	free := func(y int) bool { b := at(y); return b == chunk.Air || b.Plant() }
	for !free(y) || !free(y+1) {
		y++
	}
	return int32(y)
}
