package mirror

import (
	"testing"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/terrain"
)

// BenchmarkTerrain measures a chunk that was not requested recently: generating, packing and hashing land of four
// sections, here in a square of 64 chunks a side.
func BenchmarkTerrain(b *testing.B) {
	land, err := terrain.New(terrain.Params{Seed: 1, Sections: 4, Version: terrain.Version})
	if err != nil {
		b.Fatal(err)
	}
	m, with := newTestMirror(), newBuffers()
	m.Options.Terrain = land
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		at := grid.ChunkPos{X: int32(i % 64), Z: int32(i / 64 % 64)}
		m.builder.cache.Remove(at)
		m.builder.terrain(at, with)
	}
}
