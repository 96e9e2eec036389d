package terrain

import (
	"testing"

	"github.com/voxelpopuli/voxeld/grid"
)

func newGenerator(t testing.TB, seed int64, sections int) *Generator {
	t.Helper()
	g, err := New(Params{Seed: seed, Sections: sections, Version: Version})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func BenchmarkChunk(b *testing.B) {
	for _, bench := range []struct {
		name     string
		sections int
	}{{"sections=1", 1}, {"sections=4", 4}, {"sections=32", 32}} {
		b.Run(bench.name, func(b *testing.B) {
			g := newGenerator(b, 1, bench.sections)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				g.Chunk(grid.ChunkPos{X: int32(i % 64), Z: int32(i / 64)})
			}
		})
	}
}

func BenchmarkSurface(b *testing.B) {
	g := newGenerator(b, 1, 4)
	for i := 0; b.Loop(); i++ {
		g.Surface(int32(i%1000), int32(i/1000))
	}
}

func BenchmarkSpawn(b *testing.B) {
	g := newGenerator(b, 1, 4)
	for b.Loop() {
		g.Spawn()
	}
}
