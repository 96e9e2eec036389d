package walkad

import (
	"math"
	"math/bits"
	"math/rand/v2"

	"github.com/voxelpopuli/voxeld/grid"
)

// cell is a leaf of a region's trie, as an index into world.leaves.
type cell int32

// leaf is what is known of a cell.
type leaf struct {
	grid.Cell
	code       uint16   // its Gray code, grid.MaxLabel bits
	neighbours [][]cell // by the bit in which their codes differ; the most useful first
}

// world is a number of regions, divided into cells by their objects.
type world struct {
	leaves  []leaf
	regions []region
}

type region struct {
	first, end cell // its leaves
	at         [grid.DomainSize * grid.DomainSize]cell
}

// newWorld builds the trie of each region. A cell with more than c.MaxObjects objects is halved (§III-C), unless it is
// a single chunk.
func newWorld(c Config) *world {
	w := &world{regions: make([]region, c.Regions)}
	for i := range w.regions {
		r := &w.regions[i]
		domain := grid.Domain{X: int32(i)}
		// The objects of a region do not depend on the number of regions.
		objects := build(domain, rand.New(rand.NewPCG(c.Seed, uint64(i))))
		r.first = cell(len(w.leaves))
		w.split(r, grid.Cell{Domain: domain}, objects, c.MaxObjects)
		r.end = cell(len(w.leaves))
		w.connect(*r)
	}
	return w
}

// build returns the chunks of a region's objects: 70 to 350, as in the paper's five regions. The paper's traces are not
// available. Four fifths of the objects stand in three to ten builds, normally distributed around their middle, the
// others anywhere.
func build(domain grid.Domain, rng *rand.Rand) []grid.ChunkPos {
	type site struct{ x, z, spread float64 }
	sites := make([]site, 3+rng.IntN(8))
	for i := range sites {
		sites[i] = site{rng.Float64() * RegionMetres, rng.Float64() * RegionMetres, 5 + 20*rng.Float64()}
	}
	objects := make([]grid.ChunkPos, 70+rng.IntN(281))
	for i := range objects {
		x, z := rng.Float64()*RegionMetres, rng.Float64()*RegionMetres
		if rng.IntN(5) > 0 {
			s := sites[rng.IntN(len(sites))]
			x, z = s.x+s.spread*rng.NormFloat64(), s.z+s.spread*rng.NormFloat64()
		}
		objects[i] = chunkAt(domain, x, z)
	}
	return objects
}

// chunkAt returns the chunk at a place in a region, in metres; places outside count as its edge.
func chunkAt(domain grid.Domain, x, z float64) grid.ChunkPos {
	clamp := func(v float64) int32 {
		return int32(min(max(math.Floor(v/chunkMetres), 0), grid.DomainSize-1))
	}
	return grid.ChunkPos{X: domain.X*grid.DomainSize + clamp(x), Z: domain.Z*grid.DomainSize + clamp(z)}
}

func (w *world) split(r *region, c grid.Cell, objects []grid.ChunkPos, limit int) {
	if len(objects) <= limit || c.Label.Len() == grid.MaxLabel {
		area := c.Area()
		for x := area.MinX; x < area.MaxX; x++ {
			for z := area.MinZ; z < area.MaxZ; z++ {
				r.at[within(grid.ChunkPos{X: x, Z: z})] = cell(len(w.leaves))
			}
		}
		w.leaves = append(w.leaves, leaf{Cell: c, code: c.Label.Gray()})
		return
	}
	lower, upper := c.Children()
	for _, child := range []grid.Cell{lower, upper} {
		var in []grid.ChunkPos
		for _, o := range objects {
			if child.Contains(o) {
				in = append(in, o)
			}
		}
		w.split(r, child, in, limit)
	}
}

// within returns the index of a chunk in region.at.
func within(p grid.ChunkPos) int {
	return int(p.X&(grid.DomainSize-1))*grid.DomainSize + int(p.Z&(grid.DomainSize-1))
}

// leafAt returns the cell of a chunk.
func (w *world) leafAt(p grid.ChunkPos) cell { return w.regions[p.X/grid.DomainSize].at[within(p)] }

// distance returns the XOR distance between two codes, as far as the first length bits: 0 if the cell of that label
// length includes the other.
func distance(a, b uint16, length int) uint16 {
	return (a ^ b) >> (grid.MaxLabel - length) << (grid.MaxLabel - length)
}

// connect finds each cell's neighbours (§IV-A): the leaves at the cell-IDs that differ from its own in one bit. In a
// skewed trie one such cell-ID may stand for a leaf higher up, or for many leaves further down.
func (w *world) connect(r region) {
	for c := r.first; c < r.end; c++ {
		of := &w.leaves[c]
		of.neighbours = make([][]cell, of.Label.Len())
		var beside, symmetric [grid.MaxLabel][]cell
		for n := r.first; n < r.end; n++ {
			other := w.leaves[n]
			d := distance(of.code, other.code, min(of.Label.Len(), other.Label.Len()))
			if bits.OnesCount16(d) != 1 {
				continue
			}
			bit := bits.LeadingZeros16(d) - (16 - grid.MaxLabel)
			if adjacent(of.Area(), other.Area()) {
				beside[bit] = append(beside[bit], n)
			} else {
				symmetric[bit] = append(symmetric[bit], n)
			}
		}
		for bit := range of.neighbours {
			of.neighbours[bit] = append(w.spread(beside[bit], bit), w.spread(symmetric[bit], bit)...)
		}
	}
}

// spread orders leaves so that the first 2ⁱ of them lie in different subtrees i levels below the common one, if there
// are that many. So a coordinator that keeps only the first ones still halves the subtree with each hop (§IV-C).
func (w *world) spread(leaves []cell, bit int) []cell {
	if len(leaves) < 2 {
		return leaves
	}
	var halves [2][]cell
	for _, c := range leaves {
		half := w.leaves[c].code >> (grid.MaxLabel - 1 - bit) & 1
		halves[half] = append(halves[half], c)
	}
	a, b := w.spread(halves[0], bit+1), w.spread(halves[1], bit+1)
	mixed := make([]cell, 0, len(leaves))
	for i := range max(len(a), len(b)) {
		mixed = append(mixed, a[min(i, len(a)):min(i+1, len(a))]...)
		mixed = append(mixed, b[min(i, len(b)):min(i+1, len(b))]...)
	}
	return mixed
}

// adjacent reports whether two disjoint areas have a part of a side in common.
func adjacent(a, b grid.Area) bool {
	x := min(a.MaxX, b.MaxX) - max(a.MinX, b.MinX) // the common length; 0 if they touch
	z := min(a.MaxZ, b.MaxZ) - max(a.MinZ, b.MinZ)
	return x == 0 && z > 0 || z == 0 && x > 0
}
