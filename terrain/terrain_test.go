package terrain

import (
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
)

func TestNewRefuses(t *testing.T) {
	for _, p := range []Params{
		{},
		{Sections: 4},
		{Sections: 4, Version: Version + 1},
		{Sections: 0, Version: Version},
		{Sections: -1, Version: Version},
		{Sections: 33, Version: Version},
	} {
		if g, err := New(p); err == nil || g != nil {
			t.Errorf("New(%+v) = %v, %v; want an error", p, g, err)
		}
	}
}

// A room that was used for land of other heights and versions does not affect the result.
func TestRoomIsOnlyMemory(t *testing.T) {
	var makers []*Generator
	for _, sections := range []int{1, 10, 2, 4} {
		for version := 1; version <= Version; version++ {
			makers = append(makers, newGenerator(t, version, int64(sections), sections))
		}
	}
	var room Room
	for _, pos := range []grid.ChunkPos{{X: 0, Z: 0}, {X: -1, Z: 3}, {X: 17, Z: -9}} {
		for _, g := range makers {
			if g.ChunkIn(&room, pos).Hash() != g.Chunk(pos).Hash() {
				t.Errorf("%v of %+v is another one in a used room", pos, g.Params())
			}
		}
	}
}

// A chunk depends only on its parameters and its place: not on earlier or concurrent calls.
func TestChunkIsPure(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		places := []grid.ChunkPos{{X: 0, Z: 0}, {X: -1, Z: 3}, {X: 17, Z: -9}, {X: 0, Z: 1}, {X: 400, Z: 400}}
		want := make([][32]byte, len(places))
		for i, p := range places {
			want[i] = newGenerator(t, version, 7, 4).Chunk(p).Hash()
		}
		shared := newGenerator(t, version, 7, 4)
		var all sync.WaitGroup
		for worker := range 4 {
			all.Go(func() {
				for i := range places {
					i = (i + worker) % len(places)
					if shared.Chunk(places[i]).Hash() != want[i] {
						t.Errorf("worker %d: chunk %v differs from a fresh generator's", worker, places[i])
					}
				}
			})
		}
		all.Wait()
		if newGenerator(t, version, 8, 4).Chunk(places[0]).Hash() == want[0] {
			t.Error("another seed gives the same land")
		}
	})
}

// The division of land into chunks must not show: nine chunks side by side equal one slab of 96×96 columns, so no tree,
// vein or cave ends at a border.
func TestBordersAgree(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		for _, seed := range []int64{1, 2, 3} {
			g := newGenerator(t, version, seed, 4)
			for _, corner := range []grid.ChunkPos{{X: -2, Z: -1}, {X: 11, Z: 5}, {X: -20, Z: 30}} {
				whole := newSlab(g, int(corner.X)*32, int(corner.Z)*32, 96, 96)
				whole.build()
				for i := range 9 {
					p := grid.ChunkPos{X: corner.X + int32(i%3), Z: corner.Z + int32(i/3)}
					for j, b := range g.Chunk(p).Blocks() {
						x, y, z := chunk.Index(j).XYZ()
						x, z = x+int(p.X)*32, z+int(p.Z)*32
						if want := whole.blocks[whole.index(x, y, z)]; b != want {
							t.Fatalf("seed %d: (%d, %d, %d) is %v in chunk %v, %v in one piece",
								seed, x, y, z, b.Name(), p, want.Name())
						}
					}
				}
			}
		}
	})
}

// Surface agrees with the blocks of the chunk.
func TestSurfaceAgreesWithChunk(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		rapid.Check(t, func(t *rapid.T) {
			g, err := New(Params{
				Seed:     rapid.Int64().Draw(t, "seed"),
				Sections: rapid.SampledFrom([]int{1, 2, 3, 4, 8}).Draw(t, "sections"),
				Version:  version,
			})
			if err != nil {
				t.Fatal(err)
			}
			p := grid.ChunkPos{X: rapid.Int32Range(-2000, 2000).Draw(t, "X"), Z: rapid.Int32Range(-2000, 2000).Draw(t, "Z")}
			c := g.Chunk(p)
			for range 8 {
				x, z := rapid.IntRange(0, 31).Draw(t, "x"), rapid.IntRange(0, 31).Draw(t, "z")
				y := int(g.Surface(p.X*32+int32(x), p.Z*32+int32(z)))
				at := func(y int) chunk.Block {
					if y >= c.Height() {
						return chunk.Air
					}
					return c.Get(chunk.IndexOf(x, y, z))
				}
				if free := func(b chunk.Block) bool { return b == chunk.Air || b.Plant() }; !free(at(y)) || !free(at(y+1)) {
					t.Fatalf("no room for a body at (%d, %d, %d): %v, %v", x, y, z, at(y).Name(), at(y+1).Name())
				}
				if under := at(y - 1); !under.Solid() && under != chunk.Water {
					t.Fatalf("nothing under the feet at (%d, %d, %d): %v", x, y, z, under.Name())
				}
				for above := y; above < c.Height(); above++ {
					if b := at(above); b != chunk.Air && !b.Plant() && !isWood(b) && !isLeaves(b) &&
						b != chunk.Snow && b != chunk.Stone && b != chunk.Cobble && b != chunk.Cactus { // the arm of one beside it
						t.Fatalf("%v stands over the surface %d at (%d, %d)", b.Name(), y, x, z)
					}
				}
			}
		})
	})
}

func TestSpawnIsPleasant(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		for _, sections := range []int{1, 2, 4, 12} {
			for seed := range int64(6) {
				g := newGenerator(t, version, seed*seed*7919-seed, sections)
				spawn := g.Spawn()
				if spawn.X*spawn.X+spawn.Z*spawn.Z > 300*300 {
					t.Errorf("sections %d, seed %d: spawn %v is farther than 300 blocks", sections, seed, spawn)
				}
				if y := g.Surface(spawn.X, spawn.Z); y != spawn.Y {
					t.Errorf("sections %d, seed %d: spawn %v is not on the surface %d", sections, seed, spawn, y)
				}
				c := g.Chunk(spawn.Chunk())
				at := chunk.At(spawn)
				const layer = 32 * 32
				if under := c.Get(at - layer); under != chunk.Grass {
					t.Errorf("sections %d, seed %d: spawn %v is on %v", sections, seed, spawn, under.Name())
				}
				for ; int(at) < c.Height()*layer; at += layer {
					if b := c.Get(at); b != chunk.Air && !b.Plant() {
						t.Errorf("sections %d, seed %d: %v over the spawn %v", sections, seed, b.Name(), spawn)
						break
					}
				}
			}
		}
	})
}

// The dissertation's world: grass on dirt on stone, 32 high, and nothing else.
func TestOriginalWorld(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		g := newGenerator(t, version, 5, 1)
		low, high := 32, 0
		for i := range int32(64) {
			c := g.Chunk(grid.ChunkPos{X: i * 3, Z: -i})
			if c.Height() != 32 {
				t.Fatalf("height %d", c.Height())
			}
			for z := range 32 {
				for x := range 32 {
					top := 31
					for c.Get(chunk.IndexOf(x, top, z)) == chunk.Air {
						top--
					}
					low, high = min(low, top), max(high, top)
					for y := range top + 1 {
						want := chunk.Stone
						if y == top {
							want = chunk.Grass
						} else if y >= top-3 {
							want = chunk.Dirt
						}
						if b := c.Get(chunk.IndexOf(x, y, z)); b != want {
							t.Fatalf("(%d, %d, %d) is %v, want %v", x, y, z, b.Name(), want.Name())
						}
					}
				}
			}
		}
		if low < 3 || high > 26 || high-low < 8 {
			t.Errorf("ground between %d and %d: want hills between 3 and 26", low, high)
		}
	})
}

// The edge of the world is land like any other.
func TestEdgeOfTheWorld(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		g := newGenerator(t, version, 3, 2)
		for _, p := range []grid.ChunkPos{
			{X: -grid.Limit, Z: -grid.Limit}, {X: grid.Limit - 1, Z: grid.Limit - 1}, {X: -grid.Limit, Z: grid.Limit - 1},
		} {
			c := g.Chunk(p)
			y := g.Surface(p.X*32+31, p.Z*32+31)
			if b := c.Get(chunk.IndexOf(31, int(y), 31)); b != chunk.Air && !b.Plant() {
				t.Errorf("chunk %v: %v on the surface", p, b.Name())
			}
		}
	})
}

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
