package terrain

import "github.com/voxelpopuli/voxeld/chunk"

// slab is a rectangle of columns in the making: w×d of them from block (minX, minZ), from bedrock to sky.
// Columns and cave corners near it are computed when first asked for and kept as long as the slab.
type slab struct {
	g          *Generator
	minX, minZ int
	w, d       int
	blocks     []chunk.Block // index (y·d + z−minZ)·w + x−minX: for 32×32 that of chunk.Index

	columns []cached     // the slab's and those up to margin around it, row by row
	corners []caveCorner // lattice corners of the same area, layer by layer
	cornerX int          // lattice coordinates of the first corner
	cornerZ int
	cornerW int // corners along x
	cornerD int // corners along z
}

// cached is a column with what has been derived from it so far.
type cached struct {
	column
	skin      skin
	roof      int
	hasColumn bool
	hasSkin   bool
	hasRoof   bool
}

// margin is how far around a slab columns are kept; beyond it they are computed again each time.
const margin = reach + 2

func (g *Generator) slab(minX, minZ, w, d int) *slab {
	s := &slab{
		g: g, minX: minX, minZ: minZ, w: w, d: d,
		blocks:  make([]chunk.Block, w*d*g.height),
		columns: make([]cached, (w+2*margin)*(d+2*margin)),
		cornerX: floorDiv(minX-margin, caveStep),
		cornerZ: floorDiv(minZ-margin, caveStep),
	}
	s.cornerW = floorDiv(minX+w+margin, caveStep) + 2 - s.cornerX
	s.cornerD = floorDiv(minZ+d+margin, caveStep) + 2 - s.cornerZ
	return s
}

// build fills the slab.
func (s *slab) build() {
	if s.g.params.Sections == 1 {
		s.buildOriginal()
		return
	}
	s.corners = make([]caveCorner, s.cornerW*s.cornerD*(s.g.height/caveStep+1))
	s.fill()
	s.veins()
	s.carve()
	s.settle()
	s.features()
	s.plants()
}

// fill lays rock, skin and water.
func (s *slab) fill() {
	for z := s.minZ; z < s.minZ+s.d; z++ {
		for x := s.minX; x < s.minX+s.w; x++ {
			c, k := s.column(x, z), s.skin(x, z)
			for y := range max(c.ground, s.g.sea) + 1 {
				s.blocks[s.index(x, y, z)] = s.g.layer(c, k, y)
			}
		}
	}
}

// layer is the block at height y of a column before veins, caves and features.
func (g *Generator) layer(c *column, k skin, y int) chunk.Block {
	switch {
	case y == 0:
		return chunk.Bedrock
	case y < c.ground-k.depth:
		return chunk.Stone
	case y < c.ground:
		return k.fill
	case y == c.ground:
		return k.top
	case y == g.sea && k.icy:
		return chunk.Ice
	case y <= g.sea:
		return chunk.Water
	default:
		return chunk.Air
	}
}

// settle tidies what caves left: loose blocks over a hole become stone, soil that sees the sky grows grass.
func (s *slab) settle() {
	for z := s.minZ; z < s.minZ+s.d; z++ {
		for x := s.minX; x < s.minX+s.w; x++ {
			below := chunk.Bedrock
			for y := 1; y <= s.column(x, z).ground; y++ {
				b := &s.blocks[s.index(x, y, z)]
				if below == chunk.Air && (*b == chunk.Sand || *b == chunk.Gravel) {
					*b = chunk.Stone
				}
				below = *b
			}
			if k := s.skin(x, z); k.fertile {
				top := s.ground(x, z)
				if b := &s.blocks[s.index(x, top, z)]; *b == chunk.Dirt {
					*b = k.top
				}
			}
		}
	}
}

// ground is the y of the topmost block of soil or rock that caves leave in a column of the slab.
func (s *slab) ground(x, z int) int {
	y := s.column(x, z).ground
	for s.g.params.Sections > 1 && s.hollow(x, y, z) {
		y--
	}
	return y
}

func (s *slab) index(x, y, z int) int { return (y*s.d+z-s.minZ)*s.w + x - s.minX }

// holds tells whether a block lies in the slab.
func (s *slab) holds(x, y, z int) bool {
	return x >= s.minX && x < s.minX+s.w && z >= s.minZ && z < s.minZ+s.d && y >= 0 && y < s.g.height
}

// at returns the column at (x, z) and what is known of it.
func (s *slab) at(x, z int) *cached {
	i, j := x-s.minX+margin, z-s.minZ+margin
	var c *cached
	if i < 0 || j < 0 || i >= s.w+2*margin || j >= s.d+2*margin {
		c = &cached{}
	} else {
		c = &s.columns[j*(s.w+2*margin)+i]
	}
	if !c.hasColumn {
		if s.g.params.Sections == 1 {
			c.column = column{ground: s.g.originalGround(x, z)}
		} else {
			c.column = s.g.column(x, z)
		}
		c.hasColumn = true
	}
	return c
}

func (s *slab) column(x, z int) *column { return &s.at(x, z).column }

func (s *slab) skin(x, z int) skin {
	c := s.at(x, z)
	if !c.hasSkin {
		c.skin, c.hasSkin = s.dress(&c.column, x, z), true
	}
	return c.skin
}

func (s *slab) corner(cx, cy, cz int) *caveCorner {
	i, j := cx-s.cornerX, cz-s.cornerZ
	if i < 0 || j < 0 || i >= s.cornerW || j >= s.cornerD {
		k := s.g.caveCorner(cx, cy, cz)
		return &k
	}
	k := &s.corners[(cy*s.cornerD+j)*s.cornerW+i]
	if !k.known {
		*k = s.g.caveCorner(cx, cy, cz)
	}
	return k
}
