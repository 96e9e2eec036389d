package terrain

import (
	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
)

// TopBlock is the topmost block of a column, and its height.
type TopBlock struct {
	Y     int
	Block chunk.Block
}

// OverviewIn returns a chunk of the untouched land as it looks from above, without caves, trees and plants: every step-th column along X
// and along Z, row by row along X. It uses room as working memory, and takes a tenth of the time of ChunkIn.
func (g *Generator) OverviewIn(room *Room, pos grid.ChunkPos, step int) []TopBlock {
	s := &room.slab
	s.begin(g, int(pos.X)*grid.ChunkSize, int(pos.Z)*grid.ChunkSize, grid.ChunkSize, grid.ChunkSize)
	var tops []TopBlock
	for z := s.minZ; z < s.minZ+s.d; z += step {
		for x := s.minX; x < s.minX+s.w; x += step {
			tops = append(tops, s.top(x, z))
		}
	}
	return tops
}

func (s *slab) top(x, z int) TopBlock {
	c := s.own(x, z)
	if s.g.params.Sections == 1 {
		return TopBlock{c.ground, originalBlock(c.ground, c.ground)}
	}
	switch skin := s.cachedSkin(c, x, z); {
	case c.ground >= s.g.sea:
		return TopBlock{c.ground, skin.top}
	case skin.icy:
		return TopBlock{s.g.sea, chunk.Ice}
	default:
		return TopBlock{s.g.sea, chunk.Water}
	}
}
