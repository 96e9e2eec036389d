package gameserver

import (
	"testing"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/terrain"
)

// BenchmarkTerrain measures a chunk that was not requested recently: generating, packing and hashing land of four sections, here
// in a square of 64 chunks a side.
func BenchmarkTerrain(b *testing.B) {
	land, err := terrain.New(terrain.Params{Seed: 1, Sections: 4, Version: terrain.Version})
	if err != nil {
		b.Fatal(err)
	}
	o := options(newLands(), newMemory(), newMemory())
	o.World.Sections, o.Terrain = 4, land
	g, with := New(o), newBuilderBuffers()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		at := grid.ChunkPos{X: int32(i % 64), Z: int32(i / 64 % 64)}
		g.terrainCache.Remove(at)
		g.terrain(at, with)
	}
}
