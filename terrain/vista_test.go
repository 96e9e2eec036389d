package terrain

import (
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
)

// A vista is the land, with trees as high as they are, wherever it begins.
func TestVista(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		for _, sections := range []int{1, 4} {
			g := newGenerator(t, version, 7, sections)
			var room Room
			const n = 33
			tops := g.VistaIn(&room, -64, 32, 4, n)
			part := g.VistaIn(&room, -32, 64, 4, 9)
			for z := range 9 {
				for x := range 9 {
					if part[z*9+x] != tops[(z+8)*n+x+8] {
						t.Fatalf("point (%d, %d) is %v in one vista, %v in another", x, z, part[z*9+x], tops[(z+8)*n+x+8])
					}
				}
			}
			differ, trees, crowns := 0, 0, 0
			for cz := range int32(4) {
				for cx := range int32(4) {
					c := g.Chunk(grid.ChunkPos{X: cx - 2, Z: cz + 1})
					for z := range 8 {
						for x := range 8 {
							top := tops[(int(cz)*8+z)*n+int(cx)*8+x]
							y := c.Height() - 1
							for at := c.Get(chunk.IndexOf(4*x, y, 4*z)); at == chunk.Air || at.Plant(); at = c.Get(chunk.IndexOf(4*x, y, 4*z)) {
								y--
							}
							leaves, real := isLeaves(top.Block), isLeaves(c.Get(chunk.IndexOf(4*x, y, 4*z)))
							switch {
							case leaves:
								trees++
							case !real && y != top.Y:
								differ++
							}
							if real {
								crowns++
							}
						}
					}
				}
			}
			if differ > 100 || sections > 1 && (trees == 0 || trees > 4*crowns+40) {
				t.Errorf("%d sections: %d of 1024 points differ from the land, %d are trees; the land has leaves at %d", sections, differ, trees, crowns)
			}
			if far := g.VistaIn(&room, -512, -512, 16, 65); far[40*65+40].Y < 1 {
				t.Error("no land far away")
			}
		}
	})
}

func BenchmarkVista(b *testing.B) {
	g, err := New(Params{Seed: 33, Sections: 4, Version: Version})
	if err != nil {
		b.Fatal(err)
	}
	for name, step := range map[string]int{"4": 4, "8": 8, "16": 16} {
		b.Run("step="+name, func(b *testing.B) {
			var room Room
			for i := range b.N {
				g.VistaIn(&room, i*64*step, 0, step, 65)
			}
		})
	}
}
