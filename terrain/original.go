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

// originalBlock returns the block at height y of a column with grass at height top.
func originalBlock(top, y int) chunk.Block {
	switch {
	case y == top:
		return chunk.Grass
	case y >= top-originalDirt:
		return chunk.Dirt
	}
	return chunk.Stone
}
