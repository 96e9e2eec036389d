package terrain

import (
	"github.com/voxelpopuli/voxeld/chunk"
)

const (
	tunnelWidth = 0.085 // of the noise's values; about 2 blocks to each side
	hallAbove   = 0.46
	caveFloor   = 4  // no cave below this y
	crust       = 6  // blocks of ground that stay over a cave under water or loose ground
	hallDepth   = 10 // blocks of ground that stay over a hall
)

// caveCorner holds the cave noises at one corner of the lattice, each sampled on first use.
type caveCorner struct {
	hasA, hasB, hasHall bool
	a, b                float64 // a tunnel runs where both are near 0
	hall                float64
}

// caves holds the corners near a slab, layer by layer. Corners beyond it are sampled again each time.
type caves struct {
	minX, minZ, w, d int // counted in corners
	corners          []caveCorner
}

// explore allocates the corners near the slab up to height top.
func (s *slab) explore(top int) {
	shift, v := s.g.grain.cave, &s.caves
	v.minX, v.minZ = (s.minX-margin)>>shift, (s.minZ-margin)>>shift
	v.w = (s.minX+s.w+margin)>>shift + 2 - v.minX
	v.d = (s.minZ+s.d+margin)>>shift + 2 - v.minZ
	v.corners = zeroed(v.corners, v.w*v.d*(top>>s.g.grain.storey+2))
}

// corner returns the corner at lattice place (cx, cy, cz), which may still be unsampled.
func (v *caves) corner(cx, cy, cz int) *caveCorner {
	i, j := cx-v.minX, cz-v.minZ
	at := (cy*v.d+j)*v.w + i
	if i < 0 || j < 0 || i >= v.w || j >= v.d || at >= len(v.corners) {
		return &caveCorner{}
	}
	return &v.corners[at]
}

// cuboid is one piece of the lattice: the corners from (cx, cy, cz), with x changing first, then y, then z.
type cuboid struct {
	cx, cy, cz int
	corners    [8]*caveCorner
}

func (s *slab) cuboid(cx, cy, cz int) cuboid {
	q := cuboid{cx: cx, cy: cy, cz: cz}
	for i := range q.corners {
		q.corners[i] = s.caves.corner(cx+i&1, cy+i>>1&1, cz+i>>2)
	}
	return q
}

// sampleAt returns the coordinates of a corner for the noises. Heights are scaled by the given factor, so that tunnels
// tend to be level.
func (s *slab) sampleAt(q *cuboid, i int, steep float64) (x, y, z float64) {
	wide, high := s.g.grain.cave, s.g.grain.storey
	return float64((q.cx + i&1) << wide), mul(float64((q.cy+i>>1&1)<<high), steep), float64((q.cz + i>>2) << wide)
}

func (s *slab) sampleA(q *cuboid) {
	for i, k := range q.corners {
		if !k.hasA {
			x, y, z := s.sampleAt(q, i, 1.5)
			k.a, k.hasA = s.g.fields.tunnelA.at3(x, y, z), true
		}
	}
}

func (s *slab) sampleB(q *cuboid) {
	for i, k := range q.corners {
		if !k.hasB {
			x, y, z := s.sampleAt(q, i, 1.5)
			k.b, k.hasB = s.g.fields.tunnelB.at3(x, y, z), true
		}
	}
}

func (s *slab) sampleHall(q *cuboid) {
	for i, k := range q.corners {
		if !k.hasHall {
			x, y, z := s.sampleAt(q, i, 2)
			k.hall, k.hasHall = s.g.fields.hall.at3(x, y, z), true
		}
	}
}

const slack = 1e-6 // interpolation may leave its corners by a rounding

// tunnel reports whether a tunnel may run through the cuboid. None can if a noise is too great at all corners, on one
// side.
func (s *slab) tunnel(q *cuboid) bool {
	s.sampleA(q)
	k := &q.corners
	if apart4(k[0].a, k[1].a, k[2].a, k[3].a) && apart4(k[4].a, k[5].a, k[6].a, k[7].a) && apart(k[0].a, k[4].a) {
		return false
	}
	s.sampleB(q)
	return !apart4(k[0].b, k[1].b, k[2].b, k[3].b) || !apart4(k[4].b, k[5].b, k[6].b, k[7].b) || !apart(k[0].b, k[4].b)
}

// hall reports whether a hall may open in the cuboid: its noise must be high at a corner.
func (s *slab) hall(q *cuboid) bool {
	s.sampleHall(q)
	for _, k := range q.corners {
		if k.hall >= hallAbove-slack {
			return true
		}
	}
	return false
}

// hollow reports whether a cave removes the block at (x, y, z) from the ground.
//
// Caves open to the sky only through dry soil and rock. They never touch water: under wet or loose ground a crust
// stays, and a column beside water is left whole down to below that water.
func (s *slab) hollow(x, y, z int) bool {
	col := s.at(x, z)
	if y < caveFloor || y > s.roof(col, x, z) {
		return false
	}
	a, b, hall := s.caveAt(x, y, z)
	return opens(&col.column, y, a, b) || (col.ground-y > hallDepth && hall > hallAbove)
}

// opens reports whether a tunnel removes the block at height y of a column, where the noises are a and b.
func opens(c *column, y int, a, b float64) bool {
	off := mul(a, a) + mul(b, b)
	if off >= (tunnelWidth+slack)*(tunnelWidth+slack) {
		return false
	}
	width := tunnelWidth
	if deep := float64(c.ground - y); deep < 12 {
		width = mul(width, lerp(c.mouth, 1, smooth(2, 12, deep)))
	}
	return off < mul(width, width)
}

// roof returns the highest y that a cave may take in a column.
func (s *slab) roof(col *cached, x, z int) int {
	if col.hasRoof {
		return col.roof
	}
	top := col.ground
	if col.ground <= s.g.sea || s.skin(x, z).loose() {
		top -= crust
	}
	if bed, _ := s.around(col, x, z); bed < s.g.sea {
		top = min(top, bed-1)
	}
	col.roof, col.hasRoof = top, true
	return top
}

// caveAt interpolates the cave noises at a block, along x, then y, then z.
func (s *slab) caveAt(x, y, z int) (a, b, hall float64) {
	shift := s.g.grain.cave
	q := s.cuboid(x>>shift, y>>s.g.grain.storey, z>>shift)
	s.sampleA(&q)
	s.sampleB(&q)
	s.sampleHall(&q)
	tx, ty, tz := part(x, shift), part(y, s.g.grain.storey), part(z, shift)
	k := &q.corners
	return blend([8]float64{k[0].a, k[1].a, k[2].a, k[3].a, k[4].a, k[5].a, k[6].a, k[7].a}, tx, ty, tz),
		blend([8]float64{k[0].b, k[1].b, k[2].b, k[3].b, k[4].b, k[5].b, k[6].b, k[7].b}, tx, ty, tz),
		blend([8]float64{k[0].hall, k[1].hall, k[2].hall, k[3].hall, k[4].hall, k[5].hall, k[6].hall, k[7].hall}, tx, ty, tz)
}

// part returns the position of a block along an edge of 1<<shift blocks, 0..1.
func part(x int, shift uint) float64 {
	edge := 1 << (shift & 63)
	return float64(x&(edge-1)) / float64(edge)
}

// blend interpolates between the corners of a cuboid.
func blend(k [8]float64, tx, ty, tz float64) float64 {
	near := lerp(lerp(k[0], k[1], tx), lerp(k[2], k[3], tx), ty)
	far := lerp(lerp(k[4], k[5], tx), lerp(k[6], k[7], tx), ty)
	return lerp(near, far, tz)
}

// carve removes the caves from the slab's rock.
func (s *slab) carve() {
	shift, top := s.g.grain.cave, 0
	for z := s.minZ; z < s.minZ+s.d; z++ {
		for x := s.minX; x < s.minX+s.w; x++ {
			top = max(top, s.roof(s.own(x, z), x, z))
		}
	}
	s.explore(top)
	for cz := s.minZ >> shift; cz<<shift < s.minZ+s.d; cz++ {
		for cx := s.minX >> shift; cx<<shift < s.minX+s.w; cx++ {
			s.carveStack(cx, cz)
		}
	}
}

// carveStack carves the cuboids that stand at lattice place (cx, cz).
func (s *slab) carveStack(cx, cz int) {
	shift := s.g.grain.cave
	var r hewn
	r.minX, r.maxX = max(cx<<shift, s.minX), min((cx+1)<<shift, s.minX+s.w)
	r.minZ, r.maxZ = max(cz<<shift, s.minZ), min((cz+1)<<shift, s.minZ+s.d)
	top, ground := 0, 0
	for z := r.minZ; z < r.maxZ; z++ {
		for x := r.minX; x < r.maxX; x++ {
			c := s.own(x, z)
			top, ground = max(top, c.roof), max(ground, c.ground)
		}
	}
	storey := s.g.grain.storey
	for cy := caveFloor >> storey; cy<<storey <= top; cy++ {
		q := s.cuboid(cx, cy, cz)
		r.minY, r.maxY = max(cy<<storey, caveFloor), min((cy+1)<<storey, top+1)
		if s.tunnel(&q) {
			s.bore(&q, &r)
		}
		if ground-r.minY > hallDepth && s.hall(&q) {
			s.excavate(&q, &r)
		}
	}
}

// hewn is the part of a cuboid in the slab: half-open ranges of blocks.
type hewn struct{ minX, maxX, minY, maxY, minZ, maxZ int }

// bore removes a tunnel's blocks from a cuboid.
func (s *slab) bore(q *cuboid, r *hewn) {
	k, wide, storey := &q.corners, s.g.grain.cave, s.g.grain.storey
	edge := float64(int(1) << (wide & 63))
	for x := r.minX; x < r.maxX; x++ {
		tx := part(x, wide)
		a00, a10, a01, a11 := lerp(k[0].a, k[1].a, tx), lerp(k[2].a, k[3].a, tx), lerp(k[4].a, k[5].a, tx), lerp(k[6].a, k[7].a, tx)
		if apart4(a00, a10, a01, a11) {
			continue
		}
		b00, b10, b01, b11 := lerp(k[0].b, k[1].b, tx), lerp(k[2].b, k[3].b, tx), lerp(k[4].b, k[5].b, tx), lerp(k[6].b, k[7].b, tx)
		if apart4(b00, b10, b01, b11) {
			continue
		}
		for y := r.minY; y < r.maxY; y++ {
			ty := part(y, storey)
			nearA, farA := lerp(a00, a10, ty), lerp(a01, a11, ty)
			if apart(nearA, farA) {
				continue
			}
			nearB, farB := lerp(b00, b10, ty), lerp(b01, b11, ty)
			if apart(nearB, farB) {
				continue
			}
			lowA, highA := narrow(nearA, farA)
			lowB, highB := narrow(nearB, farB)
			first, last := q.cz<<wide+int(max(lowA, lowB)*edge), q.cz<<wide+int(min(highA, highB)*edge)
			for z := max(r.minZ, first); z < min(r.maxZ, last+1); z++ {
				tz := part(z, wide)
				c := s.own(x, z)
				if y <= c.roof && opens(&c.column, y, lerp(nearA, farA, tz), lerp(nearB, farB, tz)) {
					s.remove(c, x, y, z)
				}
			}
		}
	}
}

// apart reports whether a noise that is p at one end and q at the other is too great for a tunnel everywhere between.
func apart(p, q float64) bool {
	const wide = tunnelWidth + slack
	return (p >= wide && q >= wide) || (p <= -wide && q <= -wide)
}

// apart4 is apart for four corners.
func apart4(p, q, r, s float64) bool {
	const wide = tunnelWidth + slack
	return (p >= wide && q >= wide && r >= wide && s >= wide) || (p <= -wide && q <= -wide && r <= -wide && s <= -wide)
}

// narrow returns for which t, 0..1, a noise may be small enough for a tunnel, if it is near at t=0 and far at t=1 and
// the two are not apart.
func narrow(near, far float64) (low, high float64) {
	const wide = tunnelWidth + slack
	if near > far {
		near, far = -near, -far
	}
	if near >= -wide && far <= wide {
		return 0, 1
	}
	steep := 1 / (far - near)
	return max(0, (-wide-near)*steep), min(1, (wide-near)*steep)
}

// excavate removes a hall's blocks from a cuboid.
func (s *slab) excavate(q *cuboid, r *hewn) {
	k := &q.corners
	for x := r.minX; x < r.maxX; x++ {
		tx := part(x, s.g.grain.cave)
		h00, h10 := lerp(k[0].hall, k[1].hall, tx), lerp(k[2].hall, k[3].hall, tx)
		h01, h11 := lerp(k[4].hall, k[5].hall, tx), lerp(k[6].hall, k[7].hall, tx)
		for y := r.minY; y < r.maxY; y++ {
			ty := part(y, s.g.grain.storey)
			near, far := lerp(h00, h10, ty), lerp(h01, h11, ty)
			if near < hallAbove-slack && far < hallAbove-slack {
				continue
			}
			for z := r.minZ; z < r.maxZ; z++ {
				if lerp(near, far, part(z, s.g.grain.cave)) <= hallAbove {
					continue
				}
				if c := s.own(x, z); y <= c.roof && c.ground-y > hallDepth {
					s.remove(c, x, y, z)
				}
			}
		}
	}
}

// remove sets a block of the column c, at (x, z), to air.
func (s *slab) remove(c *cached, x, y, z int) {
	s.blocks[s.index(x, y, z)] = chunk.Air
	if c.highHole == 0 {
		c.lowHole = y
	}
	c.lowHole, c.highHole = min(c.lowHole, y), max(c.highHole, y)
}
