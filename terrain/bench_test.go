package terrain

import (
	"fmt"
	"testing"

	"github.com/voxelpopuli/voxeld/grid"
)

func newGenerator(t testing.TB, version int, seed int64, sections int) *Generator {
	t.Helper()
	g, err := New(Params{Seed: seed, Sections: sections, Version: version})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// eachVersion runs a test or a benchmark for each version.
func eachVersion[T interface{ Run(string, func(T)) bool }](t T, run func(t T, version int)) {
	for version := 1; version <= Version; version++ {
		t.Run(fmt.Sprintf("version=%d", version), func(t T) { run(t, version) })
	}
}

func BenchmarkChunk(b *testing.B) {
	for _, sections := range []int{1, 4, 32} {
		b.Run(fmt.Sprintf("sections=%d", sections), func(b *testing.B) {
			eachVersion(b, func(b *testing.B, version int) {
				g := newGenerator(b, version, 1, sections)
				b.ReportAllocs()
				var room Room
				for i := 0; b.Loop(); i++ {
					g.ChunkIn(&room, grid.ChunkPos{X: int32(i % 64), Z: int32(i / 64)})
				}
			})
		})
	}
}

func BenchmarkSurface(b *testing.B) {
	eachVersion(b, func(b *testing.B, version int) {
		g := newGenerator(b, version, 1, 4)
		for i := 0; b.Loop(); i++ {
			g.Surface(int32(i%1000), int32(i/1000))
		}
	})
}

func BenchmarkSpawn(b *testing.B) {
	eachVersion(b, func(b *testing.B, version int) {
		g := newGenerator(b, version, 1, 4)
		for b.Loop() {
			g.Spawn()
		}
	})
}
