package terrain

import (
	"math"

	"github.com/voxelpopuli/voxeld/chunk"
)

// plants sets grass, flowers, reeds and the like wherever the features have left the ground of a column free. The plant
// of a column depends only on the column and its four neighbours.
func (s *growth) plants() {
	for z := s.minZ; z < s.minZ+s.d; z++ {
		s.meadowRow.begin(&s.meadows, z)
		for x := s.minX; x < s.minX+s.w; x++ {
			s.plant(x, z)
		}
	}
}

// plant sets the plant at (x, z).
func (s *growth) plant(x, z int) {
	c := s.own(x, z)
	if c.ground < s.g.sea || s.blocks[s.index(x, c.ground+1, z)] != chunk.Air {
		return
	}
	d := s.g.place(saltPlant, x, 0, z)
	soil := s.blocks[s.index(x, c.ground, z)]
	if b := s.reeds(x, z, c, soil, &d); b > 0 {
		for y := c.ground + 1; y <= c.ground+b && s.blocks[s.index(x, y, z)] == chunk.Air; y++ {
			s.blocks[s.index(x, y, z)] = chunk.Reeds
		}
		return
	}
	s.blocks[s.index(x, c.ground+1, z)] = s.herb(x, &c.column, soil, d)
}

// reeds returns the height of reeds at (x, z), in blocks; 0 where there are none. They need soil at the level of open
// water.
func (s *growth) reeds(x, z int, c *cached, soil chunk.Block, d *dice) int {
	if c.ground != s.g.sea || (soil != chunk.Grass && soil != chunk.Sand && soil != chunk.Dirt) {
		return 0
	}
	dense := mul(0.75, smooth(-0.1, 0.5, c.patch+mul(0.5, c.bank)))
	if lowest, _ := s.around(c, x, z); lowest >= s.g.sea || c.cold < iceBelow+0.25 || d.unit() >= dense {
		return 0
	}
	return 2 + d.roll(2)
}

// herb returns the low plant on the soil of the column c, at x in the current row, or Air.
func (s *growth) herb(x int, c *column, soil chunk.Block, d dice) chunk.Block {
	switch soil {
	case chunk.Grass:
		m := s.meadowRow.at(x)
		lush := smooth(-0.4, 0.55, m.lush)
		if c.dry+mul(0.12, d.tilt()) > 0.1 {
			return pick(&d, share{chunk.DryGrass, lerp(0.06, 0.4, lush)}, share{chunk.DeadBush, mul(0.03, c.dry)})
		}
		return meadowPlant(c, lush, m.bloom, d)
	case chunk.SnowyGrass:
		return pick(&d, share{chunk.DryGrass, 0.02}, share{chunk.Fern, mul(0.04, c.wood)})
	case chunk.Dirt:
		return pick(&d, share{chunk.DryGrass, mul(0.2, c.dry)}, share{chunk.DeadBush, mul(0.06, c.dry)})
	case chunk.Sand:
		if c.dry > 0.3 {
			return pick(&d, share{chunk.DeadBush, 0.009}, share{chunk.DryGrass, mul(0.05, smooth(0.75, 0.35, c.dry))})
		}
		if c.cold > 0 && c.ground > s.g.sea {
			return pick(&d, share{chunk.DryGrass, mul(0.14, smooth(0, 0.6, c.patch))})
		}
	default:
	}
	return chunk.Air
}

// meadowPlant returns the plant on green land: ferns in the shade of woods, grass in the open, and flowers where the
// bloom is high, mostly of one kind in each drift. lush is 0..1, bloom -1..1.
func meadowPlant(c *column, lush, bloom float64, d dice) chunk.Block {
	shade := smooth(0.2, 0.6, c.wood)
	chill := smooth(0, -0.35, c.cold)
	flowers := mul(0.004+mul(0.3, smooth(0.2, 0.6, bloom)), 1-max(mul(0.85, shade), mul(0.6, chill)))
	ferns := mul(lerp(0.04, 0.2, lush), max(shade, mul(0.4, chill)))
	grass := mul(lerp(0.03, 0.34, lush), 1-mul(0.6, shade))
	drift := int(math.Floor(mul(5, c.grove+2+mul(0.1, d.tilt()))))
	if d.roll(6) == 0 {
		drift = d.roll(len(flowerKinds))
	}
	flower := flowerKinds[drift%len(flowerKinds)]
	return pick(&d, share{flower, flowers}, share{chunk.Fern, ferns}, share{chunk.TallGrass, grass})
}

// flowerKinds lists the flowers in the order of their drifts.
var flowerKinds = [...]chunk.Block{chunk.Poppy, chunk.Daisy, chunk.Cornflower, chunk.Dandelion}

// share is the probability, 0..1, that a block takes a place.
type share struct {
	block chunk.Block
	part  float64
}

// pick draws one of the blocks by their shares, whose sum is at most 1; Air takes the rest.
func pick(d *dice, shares ...share) chunk.Block {
	left := d.unit()
	for _, s := range shares {
		if left < s.part {
			return s.block
		}
		left -= s.part
	}
	return chunk.Air
}
