package grid

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// adjacentPairs calls visit with each pair of cells of one label length that share a side, in a square of domains.
func adjacentPairs(length int, domains int32, visit func(a, b Cell)) {
	width, depth := span(length)
	for x := int32(0); x < domains*DomainSize; x += width {
		for z := int32(0); z < domains*DomainSize; z += depth {
			c := CellAt(ChunkPos{X: x, Z: z}, length)
			if x+width < domains*DomainSize {
				visit(c, CellAt(ChunkPos{X: x + width, Z: z}, length))
			}
			if z+depth < domains*DomainSize {
				visit(c, CellAt(ChunkPos{X: x, Z: z + depth}, length))
			}
		}
	}
}

func TestHomesOfNeighbours(t *testing.T) {
	for length := FoundingLabel; length <= 8; length++ {
		equal, pairs := 0, 0
		adjacentPairs(length, 1, func(a, b Cell) {
			apart := bits.OnesCount16(PlacementWalkad.Home(a).prefix() ^ PlacementWalkad.Home(b).prefix())
			if apart > 1 {
				t.Errorf("homes of %v and %v: distance %d", a, b, apart)
			}
			if pairs++; apart == 0 {
				equal++
			}
		})
		if length == FoundingLabel && 3*equal != 2*pairs {
			t.Errorf("%d of %d founded neighbours have one home, want two thirds", equal, pairs)
		}
	}
}

func TestHomeOfHalves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCell(t)
		if PlacementHash.Home(c) != c {
			t.Fatal("hash placement has homes")
		}
		if n := c.Label.Len(); n < FoundingLabel || n == MaxLabel {
			return
		}
		lower, upper := c.Children()
		home, low, up := PlacementWalkad.Home(c), PlacementWalkad.Home(lower), PlacementWalkad.Home(upper)
		if l, u := home.Children(); l != low || u != up {
			t.Fatalf("home of %v is %v, those of its halves are %v and %v", c, home, low, up)
		}
		if stays := home.prefix(); (low.prefix() == stays) == (up.prefix() == stays) {
			t.Fatalf("not exactly one half of %v stays", c)
		}
	})
}

// Neighbours share their nearest node at least three times as often as scattered ones, in small and large worlds.
func TestNeighboursShareNodes(t *testing.T) {
	place := func(key string) uint64 {
		hash := sha256.Sum256([]byte(key))
		return binary.BigEndian.Uint64(hash[:])
	}
	for _, nodes := range []int{30, 300} {
		share := make(map[Placement]float64)
		for _, p := range []Placement{PlacementWalkad, PlacementHash} {
			rng := rand.New(rand.NewPCG(1, 2))
			keys := NewKeys(p)
			same, pairs := 0, 0
			for range 20 {
				ids := make([]uint64, nodes)
				for i := range ids {
					ids[i] = rng.Uint64()
				}
				nearest := func(c Cell) (best uint64) {
					at := place(keys.Key(p.Home(c)))
					for _, id := range ids {
						if best == 0 || id^at < best^at {
							best = id
						}
					}
					return best
				}
				adjacentPairs(FoundingLabel, 3, func(a, b Cell) {
					if pairs++; nearest(a) == nearest(b) {
						same++
					}
				})
			}
			share[p] = float64(same) / float64(pairs)
		}
		t.Logf("%d nodes: %.3f with walkad, %.3f with hash", nodes, share[PlacementWalkad], share[PlacementHash])
		if share[PlacementWalkad] < 3*share[PlacementHash] {
			t.Errorf("%d nodes: %.3f of the neighbours share a node with walkad, %.3f with hash", nodes, share[PlacementWalkad], share[PlacementHash])
		}
	}
}

// In a skewed trie a cell has several neighbours behind one border, with longer labels. Their prefixes differ from its
// own in one of its own bits: that is Walkad's property for the shorter of two labels. It holds for the keys and for
// the homes.
func TestNeighboursOfUnequalLength(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		domain := Domain{X: rapid.Int32Range(-9, 9).Draw(t, "dx"), Z: rapid.Int32Range(-9, 9).Draw(t, "dz")}
		leaves := skewedTrie(domain, rapid.Uint64().Draw(t, "seed"), 40)
		for _, a := range leaves {
			for _, b := range leaves {
				if a.Label.Len() > b.Label.Len() || !shareSide(a.Area(), b.Area()) {
					continue
				}
				own := a.Label.Len()
				if d := bits.OnesCount16((a.prefix() ^ b.prefix()) >> (MaxLabel - own)); d != 1 {
					t.Fatalf("%v and %v: distance %d", a, b, d)
				}
				home := PlacementWalkad.Home(a)
				if d := bits.OnesCount16((home.prefix() ^ PlacementWalkad.Home(b).prefix()) >> (MaxLabel - home.Label.Len())); d > 1 {
					t.Fatalf("homes of %v and %v: distance %d", a, b, d)
				}
			}
		}
	})
}

// skewedTrie returns the leaves of a domain's trie: the founded cells, of which one after the other was split, mostly
// around one place.
func skewedTrie(domain Domain, seed uint64, splits int) []Cell {
	rng := rand.New(rand.NewPCG(seed, 1))
	hot := ChunkPos{X: domain.X*DomainSize + rng.Int32N(DomainSize), Z: domain.Z*DomainSize + rng.Int32N(DomainSize)}
	var leaves []Cell
	for x := int32(0); x < DomainSize; x += DomainSize / 4 {
		for z := int32(0); z < DomainSize; z += DomainSize / 4 {
			leaves = append(leaves, CellAt(ChunkPos{X: domain.X*DomainSize + x, Z: domain.Z*DomainSize + z}, FoundingLabel))
		}
	}
	for range splits {
		i := rng.IntN(len(leaves))
		if rng.IntN(3) > 0 {
			for j, c := range leaves {
				if c.Contains(hot) {
					i = j
				}
			}
		}
		if leaves[i].Label.Len() < MaxLabel {
			lower, upper := leaves[i].Children()
			leaves[i] = lower
			leaves = append(leaves, upper)
		}
	}
	return leaves
}

func shareSide(a, b Area) bool {
	overlapX, overlapZ := min(a.MaxX, b.MaxX)-max(a.MinX, b.MinX), min(a.MaxZ, b.MaxZ)-max(a.MinZ, b.MinZ)
	return overlapX == 0 && overlapZ > 0 || overlapZ == 0 && overlapX > 0
}

// The leaves around a crowd are spread: of 30 nodes several lead those of one founded cell.
func TestSkewedTriesAreSpread(t *testing.T) {
	const nodes, tries = 30, 50
	rng := rand.New(rand.NewPCG(3, 4))
	ids := make([]uint16, nodes)
	led := make(map[bool]float64) // by home or own key: different nodes, on average
	for range tries {
		for i := range ids {
			ids[i] = uint16(rng.Uint32()) >> (16 - MaxLabel)
		}
		cell := CellAt(ChunkPos{X: rng.Int32N(10_000), Z: rng.Int32N(10_000)}, FoundingLabel)
		for _, homes := range []bool{false, true} {
			leaders := make(map[uint16]bool)
			for i := range 8 { // split three times
				leaf := cell
				for bit := range 3 {
					leaf = Cell{leaf.Domain, leaf.Label.Child(i >> bit & 1)}
				}
				if homes {
					leaf = PlacementWalkad.Home(leaf)
				}
				nearest := ids[0]
				for _, id := range ids {
					if id^leaf.prefix() < nearest^leaf.prefix() {
						nearest = id
					}
				}
				leaders[nearest] = true
			}
			led[homes] += float64(len(leaders)) / tries
		}
	}
	t.Logf("eight leaves are led by %.1f nodes by their homes, %.1f by their own keys", led[true], led[false])
	if led[true] < 4 || led[true] <= led[false] {
		t.Errorf("eight leaves are led by %.1f nodes by their homes, %.1f by their own keys", led[true], led[false])
	}
}
