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
	has [caveNoises]bool
	v   [caveNoises]float64
}

// caves is columns with the caves in their ground.
type caves struct {
	columns
	corners caveLattice
}

// caveLattice holds the corners near a slab, layer by layer. Corners beyond it are sampled again each time.
type caveLattice struct {
	minX, minZ, w, d int // counted in corners
	corners          []caveCorner
}

// explore allocates the corners near the slab up to height top.
func (s *caves) explore(top int) {
	shift, v := s.g.grain.cave, &s.corners
	v.minX, v.minZ = (s.minX-margin)>>shift, (s.minZ-margin)>>shift
	v.w = (s.minX+s.w+margin)>>shift + 2 - v.minX
	v.d = (s.minZ+s.d+margin)>>shift + 2 - v.minZ
	v.corners = zeroed(v.corners, v.w*v.d*(top>>s.g.grain.storey+2))
}

// corner returns the corner at lattice place (cx, cy, cz), which may still be unsampled.
func (v *caveLattice) corner(cx, cy, cz int) *caveCorner {
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

func (s *caves) cuboid(cx, cy, cz int) cuboid {
	q := cuboid{cx: cx, cy: cy, cz: cz}
	for i := range q.corners {
		q.corners[i] = s.corners.corner(cx+i&1, cy+i>>1&1, cz+i>>2)
	}
	return q
}

// sample samples a noise at the corners of the cuboid. Heights are scaled by the steepness of the noise, so that
// tunnels tend to be level.
func (s *caves) sample(q *cuboid, noise int) {
	wide, high := s.g.grain.cave, s.g.grain.storey
	for i, k := range q.corners {
		if !k.has[noise] {
			f := &s.g.fields.caves[noise]
			y := mul(float64((q.cy+i>>1&1)<<high), f.steep)
			k.v[noise], k.has[noise] = f.at3(float64((q.cx+i&1)<<wide), y, float64((q.cz+i>>2)<<wide)), true
		}
	}
}

const slack = 1e-6 // interpolation may leave its corners by a rounding

// tunnel reports whether a tunnel may run through the cuboid. None can if a noise is too great at all corners, on one
// side.
func (s *caves) tunnel(q *cuboid) bool {
	s.sample(q, tunnelA)
	k := &q.corners
	if apart4(k[0].v[tunnelA], k[1].v[tunnelA], k[2].v[tunnelA], k[3].v[tunnelA]) && apart4(k[4].v[tunnelA], k[5].v[tunnelA], k[6].v[tunnelA], k[7].v[tunnelA]) && apart(k[0].v[tunnelA], k[4].v[tunnelA]) {
		return false
	}
	s.sample(q, tunnelB)
	return !apart4(k[0].v[tunnelB], k[1].v[tunnelB], k[2].v[tunnelB], k[3].v[tunnelB]) || !apart4(k[4].v[tunnelB], k[5].v[tunnelB], k[6].v[tunnelB], k[7].v[tunnelB]) || !apart(k[0].v[tunnelB], k[4].v[tunnelB])
}

// hall reports whether a hall may open in the cuboid: its noise must be high at a corner.
func (s *caves) hall(q *cuboid) bool {
	s.sample(q, hallNoise)
	for _, k := range q.corners {
		if k.v[hallNoise] >= hallAbove-slack {
			return true
		}
	}
	return false
}

// hollow reports whether a cave removes the block at (x, y, z) from the ground.
//
// Caves open to the sky only through dry soil and rock. They never touch water: under wet or loose ground a crust
// stays, and a column beside water is left whole down to below that water.
func (s *caves) hollow(x, y, z int) bool {
	col := s.at(x, z)
	if y < caveFloor || y > s.roof(col, x, z) {
		return false
	}
	noises := s.caveAt(x, y, z)
	return opens(&col.column, y, noises[tunnelA], noises[tunnelB]) || (col.ground-y > hallDepth && noises[hallNoise] > hallAbove)
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
func (s *caves) roof(col *cached, x, z int) int {
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
func (s *caves) caveAt(x, y, z int) (noises [caveNoises]float64) {
	wide, high := s.g.grain.cave, s.g.grain.storey
	q := s.cuboid(x>>wide, y>>high, z>>wide)
	tx, ty, tz := part(x, wide), part(y, high), part(z, wide)
	for n := range noises {
		s.sample(&q, n)
		k := &q.corners
		near := lerp(lerp(k[0].v[n], k[1].v[n], tx), lerp(k[2].v[n], k[3].v[n], tx), ty)
		far := lerp(lerp(k[4].v[n], k[5].v[n], tx), lerp(k[6].v[n], k[7].v[n], tx), ty)
		noises[n] = lerp(near, far, tz)
	}
	return noises
}

// part returns the position of a block along an edge of 1<<shift blocks, 0..1.
func part(x int, shift uint) float64 {
	edge := 1 << (shift & 63)
	return float64(x&(edge-1)) / float64(edge)
}

// carve removes the caves from the slab's rock.
func (s *caves) carve() {
	shift, top := s.g.grain.cave, 0
	for x, z := range s.each {
		top = max(top, s.roof(s.own(x, z), x, z))
	}
	s.explore(top)
	for cz := s.minZ >> shift; cz<<shift < s.minZ+s.d; cz++ {
		for cx := s.minX >> shift; cx<<shift < s.minX+s.w; cx++ {
			s.carveStack(cx, cz)
		}
	}
}

// carveStack carves the cuboids that stand at lattice place (cx, cz).
func (s *caves) carveStack(cx, cz int) {
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
func (s *caves) bore(q *cuboid, r *hewn) {
	k, wide, storey := &q.corners, s.g.grain.cave, s.g.grain.storey
	edge := float64(int(1) << (wide & 63))
	for x := r.minX; x < r.maxX; x++ {
		tx := part(x, wide)
		a00, a10, a01, a11 := lerp(k[0].v[tunnelA], k[1].v[tunnelA], tx), lerp(k[2].v[tunnelA], k[3].v[tunnelA], tx), lerp(k[4].v[tunnelA], k[5].v[tunnelA], tx), lerp(k[6].v[tunnelA], k[7].v[tunnelA], tx)
		if apart4(a00, a10, a01, a11) {
			continue
		}
		b00, b10, b01, b11 := lerp(k[0].v[tunnelB], k[1].v[tunnelB], tx), lerp(k[2].v[tunnelB], k[3].v[tunnelB], tx), lerp(k[4].v[tunnelB], k[5].v[tunnelB], tx), lerp(k[6].v[tunnelB], k[7].v[tunnelB], tx)
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
func (s *caves) excavate(q *cuboid, r *hewn) {
	k := &q.corners
	for x := r.minX; x < r.maxX; x++ {
		tx := part(x, s.g.grain.cave)
		h00, h10 := lerp(k[0].v[hallNoise], k[1].v[hallNoise], tx), lerp(k[2].v[hallNoise], k[3].v[hallNoise], tx)
		h01, h11 := lerp(k[4].v[hallNoise], k[5].v[hallNoise], tx), lerp(k[6].v[hallNoise], k[7].v[hallNoise], tx)
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
func (s *caves) remove(c *cached, x, y, z int) {
	s.blocks[s.index(x, y, z)] = chunk.Air
	if c.highHole == 0 {
		c.lowHole = y
	}
	c.lowHole, c.highHole = min(c.lowHole, y), max(c.highHole, y)
}

// ground returns the y of the topmost block of soil or rock in a column of the slab, after caves.
func (s *caves) ground(x, z int) int {
	y := s.column(x, z).ground
	for s.g.params.Sections > 1 && s.hollow(x, y, z) {
		y--
	}
	return y
}
