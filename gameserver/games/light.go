package games

import (
	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
)

const (
	// FullLight is the brightest.
	FullLight = 15
	layer     = grid.ChunkSize * grid.ChunkSize // blocks of one height
)

// Light is how light the blocks of a chunk are, 0 to FullLight, in their order: by the sky, and by lamps. It spreads
// within the chunk only.
type Light struct{ Sky, Lamps []byte }

// LightOf returns the light of a chunk. Shades reports whether a block stops the light that falls from the sky; glow
// returns the light that a block emits.
func LightOf(blocks []chunk.Block, shades func(chunk.Block) bool, glow func(chunk.Block) uint8) Light {
	l := Light{Sky: make([]byte, len(blocks)), Lamps: make([]byte, len(blocks))}
	top := len(blocks)
	for top > 0 && blocks[top-1] == chunk.Air {
		top--
		l.Sky[top] = FullLight
	}
	height := (top + layer - 1) / layer // above it is only air
	var ground [layer]int               // by Z, then X: one above the highest block that shades
	for place := range ground {
		y := height
		for ; y > 0 && !shades(blocks[(y-1)*layer+place]); y-- {
			l.Sky[(y-1)*layer+place] = FullLight
		}
		ground[place] = y
	}
	var edges, lamps []int32
	for place, y := range ground {
		x, z := place%grid.ChunkSize, place/grid.ChunkSize
		most := min(y+1, len(blocks)/layer) // how far up a block below, or a place beside this one, is in the shade
		for _, d := range [][2]int{{1, 0}, {-1, 0}, {0, 1}, {0, -1}} {
			if nx, nz := x+d[0], z+d[1]; nx >= 0 && nx < grid.ChunkSize && nz >= 0 && nz < grid.ChunkSize {
				most = max(most, ground[nz*grid.ChunkSize+nx])
			}
		}
		for ; y < most; y++ {
			edges = append(edges, int32(y*layer+place)) //nolint:gosec // at most wire.ColumnBlocks
		}
	}
	for i, b := range blocks[:top] {
		if l.Lamps[i] = glow(b); l.Lamps[i] > 0 {
			lamps = append(lamps, int32(i)) //nolint:gosec // at most wire.ColumnBlocks
		}
	}
	spread(l.Sky, blocks, edges)
	spread(l.Lamps, blocks, lamps)
	return l
}

// spread lets light go on from blocks, one less with each, where it is not stopped.
func spread(light []byte, blocks []chunk.Block, from []int32) {
	for len(from) > 0 {
		var next []int32
		for _, i := range from {
			level := light[i]
			if level <= 1 {
				continue
			}
			x, z := i%grid.ChunkSize, i/grid.ChunkSize%grid.ChunkSize
			reach := func(is bool, n int32) {
				if is && n >= 0 && int(n) < len(light) && light[n] < level-1 && !blocks[n].Opaque() {
					light[n] = level - 1
					next = append(next, n)
				}
			}
			reach(x > 0, i-1)
			reach(x < grid.ChunkSize-1, i+1)
			reach(z > 0, i-grid.ChunkSize)
			reach(z < grid.ChunkSize-1, i+grid.ChunkSize)
			reach(true, i-layer)
			reach(true, i+layer)
		}
		from = next
	}
}
