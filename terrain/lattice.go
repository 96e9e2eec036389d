package terrain

// lattice holds samples at the corners of squares that are aligned to the world, and interpolates between them: along z
// first, then along x. At a corner it returns the sample itself. Samples in the covered area are taken on first use and
// kept; others are taken again each time.
type lattice[T any] struct {
	shift   uint // log2 of the squares' edge in blocks
	sample  func(x, z int) T
	between func(v, p, q *T, t float64) // sets v to p at t=0, to q at t=1

	minX, minZ, w, d int // the corners that are kept, counted in edges
	corners          []T // row by row
	known            []bool

	single    row[T] // for at
	near, far T      // corners that are not kept
}

// begin resets a lattice to one that keeps no samples, reusing its memory.
func (l *lattice[T]) begin(shift uint, sample func(x, z int) T, between func(v, p, q *T, t float64)) {
	l.shift, l.sample, l.between = shift, sample, between
	l.w, l.d = 0, 0
}

// cover keeps the samples at the corners around w×d blocks from (minX, minZ).
func (l *lattice[T]) cover(minX, minZ, w, d int) {
	l.minX, l.minZ = minX>>l.shift, minZ>>l.shift
	l.w, l.d = (minX+w-1)>>l.shift+2-l.minX, (minZ+d-1)>>l.shift+2-l.minZ
	l.corners, l.known = zeroed(l.corners, l.w*l.d), zeroed(l.known, l.w*l.d)
}

// corner returns the sample at corner (cx, cz), counted in edges. It uses spare if the sample is not kept.
func (l *lattice[T]) corner(cx, cz int, spare *T) *T {
	i, j := cx-l.minX, cz-l.minZ
	if i < 0 || j < 0 || i >= l.w || j >= l.d {
		*spare = l.sample(cx<<l.shift, cz<<l.shift)
		return spare
	}
	at := j*l.w + i
	if !l.known[at] {
		l.corners[at], l.known[at] = l.sample(cx<<l.shift, cz<<l.shift), true
	}
	return &l.corners[at]
}

// edge sets v to the interpolated value at height z of the line through the corners with x = cx.
func (l *lattice[T]) edge(v *T, cx, z int) {
	cz := z >> l.shift
	near := l.corner(cx, cz, &l.near)
	if off := z - cz<<l.shift; off > 0 {
		l.between(v, near, l.corner(cx, cz+1, &l.far), l.share(off))
		return
	}
	*v = *near
}

// share returns the fraction of an edge that off blocks are.
func (l *lattice[T]) share(off int) float64 { return float64(off) / float64(int(1)<<(l.shift&63)) }

// at interpolates at block (x, z). The result is valid until the next call.
func (l *lattice[T]) at(x, z int) *T {
	l.single.begin(l, z)
	return l.single.at(x)
}

// row reads a lattice along x. It keeps the last square.
type row[T any] struct {
	lattice        *lattice[T]
	z, cx          int
	left, right, v T
	hasLeft        bool // left is that of the square at cx
	hasRight       bool
}

func (r *row[T]) begin(l *lattice[T], z int) {
	r.lattice, r.z = l, z
	r.hasLeft, r.hasRight = false, false
}

// at interpolates at block x of the row. The result is valid until the next call.
func (r *row[T]) at(x int) *T {
	l := r.lattice
	switch cx := x >> l.shift; {
	case r.hasLeft && cx == r.cx:
	case r.hasRight && cx == r.cx+1:
		r.cx, r.left, r.hasRight = cx, r.right, false
	default:
		r.cx, r.hasLeft, r.hasRight = cx, true, false
		l.edge(&r.left, cx, r.z)
	}
	off := x - r.cx<<l.shift
	if off == 0 {
		return &r.left
	}
	if !r.hasRight {
		l.edge(&r.right, r.cx+1, r.z)
		r.hasRight = true
	}
	l.between(&r.v, &r.left, &r.right, l.share(off))
	return &r.v
}

// zeroed returns n zeros, in the memory of old if it is large enough.
func zeroed[T any](old []T, n int) []T {
	if cap(old) < n {
		return make([]T, n)
	}
	clear(old[:n])
	return old[:n]
}
