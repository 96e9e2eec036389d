package terrain

import "github.com/voxelpopuli/voxeld/chunk"

// volume is the blocks of w×d columns from block (minX, minZ), from bedrock to sky.
type volume struct {
	g          *Generator
	minX, minZ int
	w, d       int
	blocks     []chunk.Block // index (y·d + z−minZ)·w + x−minX: for 32×32 that of chunk.Index
}

// each visits the columns of the volume, row by row.
func (s *volume) each(visit func(x, z int) bool) {
	for z := s.minZ; z < s.minZ+s.d; z++ {
		for x := s.minX; x < s.minX+s.w; x++ {
			if !visit(x, z) {
				return
			}
		}
	}
}

func (s *volume) index(x, y, z int) int { return (y*s.d+z-s.minZ)*s.w + x - s.minX }

// holds reports whether a block is in the slab.
func (s *volume) holds(x, y, z int) bool {
	return x >= s.minX && x < s.minX+s.w && z >= s.minZ && z < s.minZ+s.d && y >= 0 && y < s.g.height
}

// fillWith sets all of blocks to b.
func fillWith(blocks []chunk.Block, b chunk.Block) {
	if len(blocks) == 0 {
		return
	}
	blocks[0] = b
	for n := 1; n < len(blocks); n *= 2 {
		copy(blocks[n:], blocks[:n])
	}
}
