package terrain

import (
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
)

// The overview shows the topmost blocks of the generated land, but for caves, trees and plants.
func TestOverview(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		for _, sections := range []int{1, 4} {
			g := newGenerator(t, version, 7, sections)
			var room Room
			differ, all := 0, 0
			for x := range int32(6) {
				pos := grid.ChunkPos{X: 9 * x, Z: -5 * x}
				c := g.Chunk(pos)
				for i, top := range g.OverviewIn(&room, pos, 4) {
					at, over := chunk.IndexOf(4*(i%8), top.Y, 4*(i/8)), chunk.Air
					if top.Y+1 < c.Height() {
						over = c.Get(chunk.IndexOf(4*(i%8), top.Y+1, 4*(i/8)))
					}
					if all++; c.Get(at) != top.Block || over != chunk.Air && !over.Plant() {
						differ++
					}
				}
			}
			if all != 6*64 || differ > all/10 {
				t.Errorf("%d sections: %d of %d points differ from the land", sections, differ, all)
			}
		}
	})
}
