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
