package wire_test

import (
	"testing"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/terrain"
	"github.com/voxelpopuli/voxeld/wire"
)

func BenchmarkPackChunk(b *testing.B) {
	g, err := terrain.New(terrain.Params{Seed: 1, Sections: 4, Version: terrain.Version})
	if err != nil {
		b.Fatal(err)
	}
	plain, err := g.Chunk(grid.ChunkPos{X: 3, Z: 5}).MarshalBinary()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	bytes := 0
	for b.Loop() {
		packed, err := wire.PackChunk(plain)
		if err != nil {
			b.Fatal(err)
		}
		bytes = len(packed)
	}
	b.ReportMetric(float64(bytes)/4, "bytes/section")
}
