package terrain

import "github.com/voxelpopuli/voxeld/chunk"

// growth adds to the land what stands on it.
type growth struct {
	caves
	meadows   lattice[meadow]
	meadowRow row[meadow]
}

// begin resets a growth, reusing its memory.
func (s *growth) begin(g *Generator, minX, minZ, w, d int) {
	s.caves.begin(g, minX, minZ, w, d)
	s.meadows.begin(g.grain.meadow, g.meadow, (*meadow).mix)
	s.meadows.cover(minX, minZ, w, d)
}

// meadow is how well things grow at one (x, z), sampled on a lattice.
type meadow struct{ lush, bloom float64 } // both -1..1

func (v *meadow) mix(p, q *meadow, t float64) {
	v.lush = lerp(p.lush, q.lush, t)
	v.bloom = lerp(p.bloom, q.bloom, t)
}

// meadow samples how well things grow at (x, z).
func (g *Generator) meadow(x, z int) meadow {
	atX, atZ := float64(x), float64(z)
	return meadow{lush: g.fields.lush.at(atX, atZ), bloom: g.fields.bloom.at(atX, atZ)}
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
func (s *growth) put(x, y, z int, b chunk.Block) {
	if !s.holds(x, y, z) {
		return
	}
	at := &s.blocks[s.index(x, y, z)]
	if *at == chunk.Air || (isWood(b) && (isLeaves(*at) || *at == chunk.Snow)) {
		*at = b
	}
}

// soil turns the grass under a trunk into dirt.
func (s *growth) soil(x, y, z int) {
	if s.holds(x, y, z) {
		s.blocks[s.index(x, y, z)] = chunk.Dirt
	}
}

// footing returns the height of the ground at (x, z). firm is false if caves have damaged it or it is a cliff.
func (s *growth) footing(x, z int) (ground int, firm bool) {
	c := s.at(x, z)
	ground = c.ground
	if s.fall(c, x, z) > 2 || s.hollow(x, ground, z) || s.hollow(x, ground-1, z) {
		return 0, false
	}
	return ground, true
}

// leaf puts leaves (or now and then snow, on a frozen tree) at a place.
func (s *growth) leaf(x, y, z int, b chunk.Block, frozen bool) {
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
func (s *growth) disc(x, y, z, radius, ragged int, b chunk.Block, frozen bool) {
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
func (s *growth) blob(x, y, z, wide, high int, b chunk.Block) {
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

// trunk puts wood above the ground at (x, z).
func (s *growth) trunk(x, ground, z, height int, wood chunk.Block) {
	for y := ground + 1; y <= ground+height; y++ {
		s.put(x, y, z, wood)
	}
}
