package terrain

import "github.com/voxelpopuli/voxeld/chunk"

// Caves are sampled at the corners of cubes of caveStep blocks and interpolated between.
const caveStep = 4

// caveCorner holds the cave noises at one corner of the lattice.
type caveCorner struct {
	known bool
	a, b  float64 // a tunnel runs where both are near 0
	hall  float64
}

const (
	tunnelWidth = 0.085 // of the noise's values; about 2 blocks to each side
	hallAbove   = 0.46
	caveFloor   = 4 // no cave below this y
	crust       = 6 // blocks of ground left over a cave under water or loose ground
)

// hollow tells whether a cave takes the block at (x, y, z) out of the ground.
//
// Caves open to the sky only through soil and rock that stands dry. They never touch water: under wet or
// loose ground a crust stays, and a column beside water is left whole down to below that water.
func (s *slab) hollow(x, y, z int) bool {
	col := s.at(x, z)
	if y < caveFloor || y > s.roof(col, x, z) {
		return false
	}
	c := &col.column
	a, b, hall := s.caveAt(x, y, z)
	width := tunnelWidth
	deep := float64(c.ground - y)
	if deep < 12 {
		width = mul(width, lerp(c.mouth, 1, smooth(2, 12, deep)))
	}
	if mul(a, a)+mul(b, b) < mul(width, width) {
		return true
	}
	return deep > 10 && hall > hallAbove
}

// roof is the highest y that a cave may take in a column.
func (s *slab) roof(col *cached, x, z int) int {
	if col.hasRoof {
		return col.roof
	}
	top := col.ground
	if col.ground <= s.g.sea || s.skin(x, z).loose() {
		top -= crust
	}
	for _, n := range [...][2]int{{x - 1, z}, {x + 1, z}, {x, z - 1}, {x, z + 1}} {
		if bed := s.column(n[0], n[1]).ground; bed < s.g.sea {
			top = min(top, bed-1)
		}
	}
	col.roof, col.hasRoof = top, true
	return top
}

// carve takes the caves out of the slab's rock.
func (s *slab) carve() {
	for cz := floorDiv(s.minZ, caveStep); cz*caveStep < s.minZ+s.d; cz++ {
		for cx := floorDiv(s.minX, caveStep); cx*caveStep < s.minX+s.w; cx++ {
			s.carveCubes(cx, cz)
		}
	}
}

// carveCubes carves the stack of lattice cubes at lattice position (cx, cz).
func (s *slab) carveCubes(cx, cz int) {
	minX, maxX := max(cx*caveStep, s.minX), min(cx*caveStep+caveStep, s.minX+s.w)
	minZ, maxZ := max(cz*caveStep, s.minZ), min(cz*caveStep+caveStep, s.minZ+s.d)
	top := 0
	for z := minZ; z < maxZ; z++ {
		for x := minX; x < maxX; x++ {
			top = max(top, s.roof(s.at(x, z), x, z))
		}
	}
	for cy := caveFloor / caveStep; cy*caveStep <= top; cy++ {
		if s.whole(cx, cy, cz) {
			continue
		}
		for y := cy * caveStep; y < min(cy*caveStep+caveStep, top+1); y++ {
			for z := minZ; z < maxZ; z++ {
				for x := minX; x < maxX; x++ {
					if s.hollow(x, y, z) {
						s.blocks[s.index(x, y, z)] = chunk.Air
					}
				}
			}
		}
	}
}

// whole tells whether a lattice cube can hold no cave, by the extremes of its corners.
func (s *slab) whole(cx, cy, cz int) bool {
	minA, maxA, minB, maxB, maxHall := 2.0, -2.0, 2.0, -2.0, -2.0
	for i := range 8 {
		k := s.corner(cx+(i&1), cy+(i>>1&1), cz+(i>>2))
		minA, maxA = min(minA, k.a), max(maxA, k.a)
		minB, maxB = min(minB, k.b), max(maxB, k.b)
		maxHall = max(maxHall, k.hall)
	}
	const slack = tunnelWidth + 1e-6 // interpolation may leave its corners by a rounding
	tunnel := minA < slack && maxA > -slack && minB < slack && maxB > -slack
	return !tunnel && maxHall < hallAbove-1e-6
}

// caveAt interpolates the cave noises at a block.
func (s *slab) caveAt(x, y, z int) (a, b, hall float64) {
	cx, cy, cz := floorDiv(x, caveStep), y/caveStep, floorDiv(z, caveStep)
	tx := float64(x-cx*caveStep) / caveStep
	ty := float64(y-cy*caveStep) / caveStep
	tz := float64(z-cz*caveStep) / caveStep
	var k [4]caveCorner // along x, at (y, z), (y+1, z), (y, z+1), (y+1, z+1)
	for i := range k {
		k[i] = between(s.corner(cx, cy+(i&1), cz+(i>>1)), s.corner(cx+1, cy+(i&1), cz+(i>>1)), tx)
	}
	near, far := between(&k[0], &k[1], ty), between(&k[2], &k[3], ty)
	at := between(&near, &far, tz)
	return at.a, at.b, at.hall
}

func between(p, q *caveCorner, t float64) caveCorner {
	return caveCorner{a: lerp(p.a, q.a, t), b: lerp(p.b, q.b, t), hall: lerp(p.hall, q.hall, t)}
}

// caveCorner samples the cave noises at a corner of the lattice. Heights count for more than distances,
// so that tunnels lead on rather than down.
func (g *Generator) caveCorner(cx, cy, cz int) caveCorner {
	x, z := float64(cx*caveStep), float64(cz*caveStep)
	y := float64(cy * caveStep)
	f := &g.fields
	return caveCorner{
		known: true,
		a:     f.tunnelA.at3(x, mul(y, 1.5), z),
		b:     f.tunnelB.at3(x, mul(y, 1.5), z),
		hall:  f.hall.at3(x, mul(y, 2), z),
	}
}
