package terrain

import "github.com/voxelpopuli/voxeld/chunk"

// Salts separate the dice of different decisions. Their numbers are part of the terrain version.
const (
	saltSkin uint64 = 1 + iota
	saltLeaf
	saltSpawn
	saltPlant
	saltFamily uint64 = 100 // plus the index of the family
	saltVein   uint64 = 200 // plus the index of the vein
)

// reach is how far a feature's blocks may lie from its origin, in blocks along x and along z.
const reach = 6

// family is a kind of feature with a lattice of its own: each square of edge×edge blocks holds at most one origin, at a
// place determined by its dice.
//
// A feature rolls its dice before it looks at its column, so that most places without one need not be computed. It may
// look at columns, but never at blocks of the slab, which another slab does not have. It writes with put. Where two
// features meet, the outcome may depend on their order, which is the same in every slab: by family, then by the
// lattice's rows.
type family struct {
	edge int
	grow func(s *slab, x, z int, d dice)
}

// families lists the features in the order in which they grow. Their index is part of the terrain version.
var families = [...]family{
	{edge: 5, grow: (*slab).tree},
	{edge: 7, grow: (*slab).palm},
	{edge: 9, grow: (*slab).cactus},
	{edge: 21, grow: (*slab).boulder},
	{edge: 31, grow: (*slab).fallenTrunk},
	{edge: 8, grow: (*slab).bush},
	{edge: 67, grow: (*slab).cairn},
}

// features grows everything whose origin is within reach of the slab.
func (s *slab) features() {
	for i, f := range families {
		lowX, highX := floorDiv(s.minX-reach, f.edge), floorDiv(s.minX+s.w-1+reach, f.edge)
		lowZ, highZ := floorDiv(s.minZ-reach, f.edge), floorDiv(s.minZ+s.d-1+reach, f.edge)
		for cz := lowZ; cz <= highZ; cz++ {
			for cx := lowX; cx <= highX; cx++ {
				d := s.g.place(saltFamily+uint64(i), cx, 0, cz)
				x, z := cx*f.edge+d.roll(f.edge), cz*f.edge+d.roll(f.edge)
				if s.near(x, z) {
					f.grow(s, x, z, d)
				}
			}
		}
	}
}

// near reports whether a feature with its origin at (x, z) may reach into the slab.
func (s *slab) near(x, z int) bool {
	return x >= s.minX-reach && x < s.minX+s.w+reach && z >= s.minZ-reach && z < s.minZ+s.d+reach
}

// species is the pair of blocks of a tree.
type species struct{ wood, leaves chunk.Block }

var (
	oakTree   = species{chunk.Log, chunk.Leaves}
	birchTree = species{chunk.BirchLog, chunk.BirchLeaves}
	pineTree  = species{chunk.PineLog, chunk.PineLeaves}
	dryTree   = species{chunk.Log, chunk.DryLeaves}
)

func isWood(b chunk.Block) bool {
	return b == chunk.Log || b == chunk.BirchLog || b == chunk.PineLog
}

func isLeaves(b chunk.Block) bool {
	return b == chunk.Leaves || b == chunk.BirchLeaves || b == chunk.PineLeaves || b == chunk.DryLeaves
}

// put writes a block of a feature if it is in the slab and the place is free: anything replaces air, and wood replaces
// leaves.
func (s *slab) put(x, y, z int, b chunk.Block) {
	if !s.holds(x, y, z) {
		return
	}
	at := &s.blocks[s.index(x, y, z)]
	if *at == chunk.Air || (isWood(b) && (isLeaves(*at) || *at == chunk.Snow)) {
		*at = b
	}
}

// soil turns the grass under a trunk into dirt.
func (s *slab) soil(x, y, z int) {
	if s.holds(x, y, z) {
		s.blocks[s.index(x, y, z)] = chunk.Dirt
	}
}

// footing returns the height of the ground at (x, z). firm is false if caves have damaged it or it is a cliff.
func (s *slab) footing(x, z int) (ground int, firm bool) {
	c := s.at(x, z)
	ground = c.ground
	if s.fall(c, x, z) > 2 || s.hollow(x, ground, z) || s.hollow(x, ground-1, z) {
		return 0, false
	}
	return ground, true
}

// leaf puts leaves (or now and then snow, on a frozen tree) at a place.
func (s *slab) leaf(x, y, z int, b chunk.Block, frozen bool) {
	if frozen {
		d := s.g.place(saltLeaf, x, y, z)
		if d.roll(5) < 2 {
			b = chunk.Snow
		}
	}
	s.put(x, y, z, b)
}

// disc puts leaves b into the square of the given radius around (x, z). Each corner block is left out always (ragged =
// 0), or with a chance of ragged in 4.
func (s *slab) disc(x, y, z, radius, ragged int, b chunk.Block, frozen bool) {
	for dz := -radius; dz <= radius; dz++ {
		for dx := -radius; dx <= radius; dx++ {
			if radius > 0 && abs(dx) == radius && abs(dz) == radius {
				if d := s.g.place(saltLeaf, x+dx, y, z+dz); ragged == 0 || d.roll(4) < ragged {
					continue
				}
			}
			s.leaf(x+dx, y, z+dz, b, frozen && max(abs(dx), abs(dz)) == radius)
		}
	}
}

// blob puts leaves b into a ball, flattened to wide:high, with a ragged edge. Radii are in half blocks.
func (s *slab) blob(x, y, z, wide, high int, b chunk.Block) {
	for dy := -high / 2; dy <= high/2; dy++ {
		for dz := -wide / 2; dz <= wide/2; dz++ {
			for dx := -wide / 2; dx <= wide/2; dx++ {
				// (dx/wide)² + (dz/wide)² + (dy/high)² against (1/2)², in whole numbers.
				far := 4 * ((dx*dx+dz*dz)*high*high + dy*dy*wide*wide)
				rim := wide * wide * high * high
				if far > rim {
					continue
				}
				if d := s.g.place(saltLeaf, x+dx, y+dy, z+dz); 4*far > 3*rim && d.roll(3) == 0 {
					continue
				}
				s.put(x+dx, y+dy, z+dz, b)
			}
		}
	}
}

func abs(v int) int { return max(v, -v) }
