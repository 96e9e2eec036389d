package terrain

// reach is how far a feature's blocks may lie from its origin, in blocks along x and along z.
const reach = 6

// margin is how far around a slab columns are kept; columns beyond it are computed again each time.
const margin = reach + 2

// columns is a volume with the columns of its land and of the land around it, each computed on first use.
type columns struct {
	volume
	cache  []cached // those of the volume and up to margin around it, row by row
	relief relief
}

// cached is a column with what has been derived from it so far.
type cached struct {
	column
	skin      skin
	low, high int // the ground of the lowest and of the highest of the four neighbours
	roof      int
	lowHole   int // y of the lowest and highest block that caves removed; 0 and 0: none
	highHole  int
	hasColumn bool
	hasAround bool
	hasSkin   bool
	hasRoof   bool
}

// begin resets columns, reusing their memory.
func (s *columns) begin(g *Generator, minX, minZ, w, d int) {
	s.g, s.minX, s.minZ, s.w, s.d = g, minX, minZ, w, d
	s.blocks = zeroed(s.blocks, w*d*g.height)
	s.cache = zeroed(s.cache, (w+2*margin)*(d+2*margin))
	s.relief.begin(g)
	s.relief.cover(minX-margin, minZ-margin, w+2*margin, d+2*margin)
	s.computeColumns()
}

// computeColumns computes the volume's columns and their neighbours, all of which are needed.
func (s *columns) computeColumns() {
	for z := s.minZ - 1; z <= s.minZ+s.d; z++ {
		s.relief.row.begin(&s.relief, z)
		first := (z-s.minZ+margin)*(s.w+2*margin) + margin - 1
		for i := range s.w + 2 {
			c := &s.cache[first+i]
			c.column, c.hasColumn = s.relief.row.at(s.minX-1+i), true
		}
	}
}

// at returns the cached column at (x, z).
func (s *columns) at(x, z int) *cached {
	i, j := uint(x-s.minX+margin), uint(z-s.minZ+margin)
	if w := uint(s.w + 2*margin); i < w && j < uint(s.d+2*margin) {
		if c := &s.cache[j*w+i]; c.hasColumn {
			return c
		}
	}
	return s.compute(x, z)
}

// compute is at for a column that is not cached.
func (s *columns) compute(x, z int) *cached {
	i, j := x-s.minX+margin, z-s.minZ+margin
	var c *cached
	if i < 0 || j < 0 || i >= s.w+2*margin || j >= s.d+2*margin {
		c = &cached{}
	} else {
		c = &s.cache[j*(s.w+2*margin)+i]
	}
	c.column, c.hasColumn = s.relief.at(x, z), true
	return c
}

// own returns a column of the volume, or a neighbour, computed by computeColumns.
func (s *columns) own(x, z int) *cached {
	return &s.cache[(z-s.minZ+margin)*(s.w+2*margin)+x-s.minX+margin]
}

func (s *columns) column(x, z int) *column { return &s.at(x, z).column }

func (s *columns) skin(x, z int) *skin { return s.cachedSkin(s.at(x, z), x, z) }

// cachedSkin returns the skin of the column c, at (x, z).
func (s *columns) cachedSkin(c *cached, x, z int) *skin {
	if !c.hasSkin {
		c.skin, c.hasSkin = chooseSkin(s.g, &c.column, s.fall(c, x, z), x, z), true
	}
	return &c.skin
}

// fall returns the greatest height difference, in blocks, between a column and its four neighbours.
func (s *columns) fall(c *cached, x, z int) int {
	low, high := s.around(c, x, z)
	return max(c.ground-low, high-c.ground, 0)
}

// around returns the lowest and the highest ground of the four neighbours of column c, at (x, z).
func (s *columns) around(c *cached, x, z int) (low, high int) {
	if !c.hasAround {
		var west, east, north, south int
		if s.holds(x, 0, z) {
			west, east, north, south = s.own(x-1, z).ground, s.own(x+1, z).ground, s.own(x, z-1).ground, s.own(x, z+1).ground
		} else {
			west, east, north, south = s.at(x-1, z).ground, s.at(x+1, z).ground, s.at(x, z-1).ground, s.at(x, z+1).ground
		}
		c.low, c.high, c.hasAround = min(west, east, north, south), max(west, east, north, south), true
	}
	return c.low, c.high
}
