package terrain

import "github.com/voxelpopuli/voxeld/chunk"

// slab is a rectangle of columns under construction: w×d of them from block (minX, minZ), from bedrock to sky. Columns
// and lattice corners near it are computed on first use and kept as long as the slab.
type slab struct {
	g          *Generator
	minX, minZ int
	w, d       int
	blocks     []chunk.Block // index (y·d + z−minZ)·w + x−minX: for 32×32 that of chunk.Index

	columns   []cached // the slab's and those up to margin around it, row by row
	relief    relief
	meadows   lattice[meadow]
	meadowRow row[meadow]
	caves     caves
}

// cached is a column with what has been derived from it so far.
type cached struct {
	column
	skin      skin
	low, high int // the ground of the lowest and of the highest of the four neighbours
	roof      int
	lowHole   int // y of the lowest and highest block of the slab that caves removed; 0 and 0: none
	highHole  int
	hasColumn bool
	hasAround bool
	hasSkin   bool
	hasRoof   bool
}

// margin is how far around a slab columns are kept; columns beyond it are computed again each time.
const margin = reach + 2

// slab returns a new slab of w×d columns from block (minX, minZ).
func (g *Generator) slab(minX, minZ, w, d int) *slab {
	s := &slab{}
	s.begin(g, minX, minZ, w, d)
	return s
}

// begin resets a slab, reusing its memory.
func (s *slab) begin(g *Generator, minX, minZ, w, d int) {
	s.g, s.minX, s.minZ, s.w, s.d = g, minX, minZ, w, d
	s.blocks = zeroed(s.blocks, w*d*g.height)
	s.columns = zeroed(s.columns, (w+2*margin)*(d+2*margin))
	s.relief.begin(g)
	s.relief.cover(minX-margin, minZ-margin, w+2*margin, d+2*margin)
	s.meadows.begin(g.grain.meadow, g.meadow, (*meadow).mix)
	s.meadows.cover(minX, minZ, w, d)
	s.computeColumns()
}

// zeroed returns n zeros, in the memory of old if it is large enough.
func zeroed[T any](old []T, n int) []T {
	if cap(old) < n {
		return make([]T, n)
	}
	clear(old[:n])
	return old[:n]
}

// computeColumns computes the slab's columns and their neighbours, all of which are needed.
func (s *slab) computeColumns() {
	for z := s.minZ - 1; z <= s.minZ+s.d; z++ {
		s.relief.row.begin(&s.relief, z)
		first := (z-s.minZ+margin)*(s.w+2*margin) + margin - 1
		for i := range s.w + 2 {
			c := &s.columns[first+i]
			c.column, c.hasColumn = s.relief.row.at(s.minX-1+i), true
		}
	}
}

// build fills the slab.
func (s *slab) build() {
	if s.g.params.Sections == 1 {
		s.buildOriginal()
		return
	}
	s.fill()
	s.veins()
	s.carve()
	s.repairSurface()
	s.features()
	s.plants()
}

// fill lays rock, skin and water.
func (s *slab) fill() {
	layer := s.w * s.d
	whole := s.g.height // below this y there is nothing but rock
	for z := s.minZ; z < s.minZ+s.d; z++ {
		for x := s.minX; x < s.minX+s.w; x++ {
			c := s.own(x, z)
			whole = min(whole, c.ground-s.cachedSkin(c, x, z).depth)
		}
	}
	whole = max(whole, 1)
	fillWith(s.blocks[:layer], chunk.Bedrock)
	fillWith(s.blocks[layer:whole*layer], chunk.Stone)
	for z := s.minZ; z < s.minZ+s.d; z++ {
		for x := s.minX; x < s.minX+s.w; x++ {
			s.lay(s.own(x, z), s.index(x, whole, z), whole)
		}
	}
}

// fillWith sets all of blocks to b.
func fillWith(blocks []chunk.Block, b chunk.Block) {
	if len(blocks) == 0 {
		return
	}
	blocks[0] = b
	for n := 1; n < len(blocks); n *= 2 {
		copy(blocks[n:], blocks[:n])
	}
}

// lay fills the column c from height y > 0, which is block i, upwards, as it is before veins, caves and features.
func (s *slab) lay(c *cached, i, y int) {
	layer := s.w * s.d
	run := func(end int, b chunk.Block) { // up to below y = end
		for ; y < end; y++ {
			s.blocks[i] = b
			i += layer
		}
	}
	run(c.ground-c.skin.depth, chunk.Stone)
	run(c.ground, c.skin.fill)
	run(c.ground+1, c.skin.top)
	if c.skin.icy {
		run(s.g.sea, chunk.Water)
		run(s.g.sea+1, chunk.Ice)
	}
	run(s.g.sea+1, chunk.Water)
}

// repairSurface cleans up after caves: loose blocks over a hole become stone, and grass grows on soil under the open sky.
func (s *slab) repairSurface() {
	layer := s.w * s.d
	for z := s.minZ; z < s.minZ+s.d; z++ {
		for x := s.minX; x < s.minX+s.w; x++ {
			c := s.own(x, z)
			if c.highHole == 0 {
				continue
			}
			i := s.index(x, c.lowHole, z)
			for y := c.lowHole; y <= min(c.highHole, c.ground-1); y++ {
				if over := &s.blocks[i+layer]; s.blocks[i] == chunk.Air && (*over == chunk.Sand || *over == chunk.Gravel) {
					*over = chunk.Stone
				}
				i += layer
			}
			top := s.index(x, c.ground, z)
			for s.blocks[top] == chunk.Air {
				top -= layer
			}
			if s.blocks[top] == chunk.Dirt && c.skin.fertile {
				s.blocks[top] = c.skin.top
			}
		}
	}
}

// ground returns the y of the topmost block of soil or rock in a column of the slab, after caves.
func (s *slab) ground(x, z int) int {
	y := s.column(x, z).ground
	for s.g.params.Sections > 1 && s.hollow(x, y, z) {
		y--
	}
	return y
}

func (s *slab) index(x, y, z int) int { return (y*s.d+z-s.minZ)*s.w + x - s.minX }

// holds reports whether a block is in the slab.
func (s *slab) holds(x, y, z int) bool {
	return x >= s.minX && x < s.minX+s.w && z >= s.minZ && z < s.minZ+s.d && y >= 0 && y < s.g.height
}

// at returns the cached column at (x, z).
func (s *slab) at(x, z int) *cached {
	i, j := uint(x-s.minX+margin), uint(z-s.minZ+margin)
	if w := uint(s.w + 2*margin); i < w && j < uint(s.d+2*margin) {
		if c := &s.columns[j*w+i]; c.hasColumn {
			return c
		}
	}
	return s.compute(x, z)
}

// compute is at for a column that is not cached.
func (s *slab) compute(x, z int) *cached {
	i, j := x-s.minX+margin, z-s.minZ+margin
	var c *cached
	if i < 0 || j < 0 || i >= s.w+2*margin || j >= s.d+2*margin {
		c = &cached{}
	} else {
		c = &s.columns[j*(s.w+2*margin)+i]
	}
	c.column, c.hasColumn = s.relief.at(x, z), true
	return c
}

// own returns a column of the slab, or a neighbour, computed by computeColumns.
func (s *slab) own(x, z int) *cached {
	return &s.columns[(z-s.minZ+margin)*(s.w+2*margin)+x-s.minX+margin]
}

func (s *slab) column(x, z int) *column { return &s.at(x, z).column }

func (s *slab) skin(x, z int) *skin { return s.cachedSkin(s.at(x, z), x, z) }

// cachedSkin returns the skin of the column c, at (x, z).
func (s *slab) cachedSkin(c *cached, x, z int) *skin {
	if !c.hasSkin {
		c.skin, c.hasSkin = s.chooseSkin(c, x, z), true
	}
	return &c.skin
}
