package terrain

import (
	"math"

	"github.com/voxelpopuli/voxeld/chunk"
)

// The dissertation's world (VoxelPopuli §2.6): 32 blocks high, a height map of simplex noise, grass on dirt on stone,
// and nothing else.
const (
	originalMean  = 14 // y of the middle ground
	originalSwell = 11 // blocks by which it rises and falls at most
	originalDirt  = 3  // blocks of dirt under the grass
)

// originalGround returns the y of the grass where the hill noise is hill, -1..1: between 3 and 25.
func originalGround(hill float64) int {
	at := max(-1, min(1, mul(1.3, hill)))
	return originalMean + int(math.Floor(mul(originalSwell, at)))
}

func (s *slab) buildOriginal() {
	for z := s.minZ; z < s.minZ+s.d; z++ {
		for x := s.minX; x < s.minX+s.w; x++ {
			top := s.column(x, z).ground
			for y := range top + 1 {
				b := chunk.Stone
				switch {
				case y == top:
					b = chunk.Grass
				case y >= top-originalDirt:
					b = chunk.Dirt
				}
				s.blocks[s.index(x, y, z)] = b
			}
		}
	}
}
