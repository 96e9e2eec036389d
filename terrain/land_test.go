package terrain

import (
	"slices"
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
)

// sampleChunks visits a lattice of sample chunks over 2048×2048 blocks.
func sampleChunks(g *Generator, visit func(p grid.ChunkPos, blocks []chunk.Block)) {
	for z := int32(-30); z < 32; z += 5 {
		for x := int32(-30); x < 32; x += 5 {
			p := grid.ChunkPos{X: x, Z: z}
			visit(p, g.Chunk(p).Blocks())
		}
	}
}

// On a walk of a kilometre in each direction one meets every kind of land, and none dominates.
func TestLandIsVaried(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		bands := []struct {
			name      string
			low, high float64 // share of the columns seen from above, mean over the seeds
			kinds     []chunk.Block
		}{
			{"water", 0.12, 0.45, []chunk.Block{chunk.Water, chunk.Ice}},
			{"sand", 0.04, 0.25, []chunk.Block{chunk.Sand}},
			{"grass", 0.2, 0.55, []chunk.Block{chunk.Grass}},
			{"snow", 0.03, 0.25, []chunk.Block{chunk.Snow, chunk.SnowyGrass}},
			{"rock", 0.005, 0.12, []chunk.Block{chunk.Stone, chunk.Gravel}},
			{"trees", 0.05, 0.25, []chunk.Block{
				chunk.Leaves, chunk.BirchLeaves, chunk.PineLeaves, chunk.DryLeaves, chunk.Log, chunk.BirchLog, chunk.PineLog,
			}},
			{"cacti", 0.00005, 0.005, []chunk.Block{chunk.Cactus}},
		}
		seen, columns := map[chunk.Block]int{}, 0
		for seed := int64(1); seed <= 4; seed++ {
			sampleChunks(newGenerator(t, version, seed, 4), func(_ grid.ChunkPos, blocks []chunk.Block) {
				for i := range 1024 {
					top := len(blocks) - 1024 + i
					for blocks[top] == chunk.Air || blocks[top].Plant() {
						top -= 1024
					}
					seen[blocks[top]]++
					columns++
				}
			})
		}
		for _, band := range bands {
			n := 0
			for _, b := range band.kinds {
				n += seen[b]
			}
			share := float64(n) / float64(columns)
			t.Logf("%s: %.2f %%", band.name, 100*share)
			if share < band.low || share > band.high {
				t.Errorf("%s covers %.3f of the land, want %v to %v", band.name, share, band.low, band.high)
			}
		}
	})
}

// Every tree has its own wood: leaves are nearest to logs of their kind, and each kind occurs.
func TestTreesHaveTheirOwnWood(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		seen, own, foreign := map[chunk.Block]int{}, 0, 0
		for _, seed := range []int64{1, 2, 3, 4} {
			sampleChunks(newGenerator(t, version, seed, 4), func(_ grid.ChunkPos, blocks []chunk.Block) {
				for i, b := range blocks {
					seen[b]++
					if x, _, _ := chunk.Index(i).XYZ(); !isWood(b) || x == 31 || !isLeaves(blocks[i+1]) {
						continue
					}
					switch pair := [2]chunk.Block{b, blocks[i+1]}; pair {
					case [2]chunk.Block{oakTree.wood, oakTree.leaves}, [2]chunk.Block{birchTree.wood, birchTree.leaves},
						[2]chunk.Block{pineTree.wood, pineTree.leaves}, [2]chunk.Block{dryTree.wood, dryTree.leaves}:
						own++
					default: // a neighbour's crown
						foreign++
					}
				}
			})
		}
		for _, b := range []chunk.Block{
			chunk.Log, chunk.BirchLog, chunk.PineLog, chunk.Leaves, chunk.BirchLeaves, chunk.PineLeaves, chunk.DryLeaves,
		} {
			if seen[b] < 100 {
				t.Errorf("%d blocks of %s", seen[b], b.Name())
			}
		}
		t.Logf("wood beside its own leaves: %d times, beside others: %d times", own, foreign)
		if own < 20*foreign {
			t.Errorf("wood stands beside its own leaves %d times, beside others %d times", own, foreign)
		}
	})
}

// Plants root in the soil of their kind and never under water, and each kind occurs. About a fifth of the grass bears
// one, and no climate is overgrown with them.
func TestPlantsFindTheirPlace(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		soils := map[chunk.Block][]chunk.Block{
			chunk.TallGrass:  {chunk.Grass},
			chunk.DryGrass:   {chunk.Grass, chunk.SnowyGrass, chunk.Dirt, chunk.Sand},
			chunk.Fern:       {chunk.Grass, chunk.SnowyGrass},
			chunk.Poppy:      {chunk.Grass},
			chunk.Dandelion:  {chunk.Grass},
			chunk.Cornflower: {chunk.Grass},
			chunk.Daisy:      {chunk.Grass},
			chunk.DeadBush:   {chunk.Grass, chunk.Dirt, chunk.Sand},
			chunk.Reeds:      {chunk.Grass, chunk.Dirt, chunk.Sand, chunk.Reeds},
		}
		seen := map[chunk.Block]int{}
		grass, overgrown := 0, 0
		for _, seed := range []int64{1, 2, 3, 4} {
			g := newGenerator(t, version, seed, 4)
			sampleChunks(g, func(p grid.ChunkPos, blocks []chunk.Block) {
				for i, b := range blocks {
					if b == chunk.Grass && blocks[i+1024] == chunk.Air {
						grass++
					}
					if !b.Plant() {
						continue
					}
					seen[b]++
					x, y, z := chunk.Index(i).XYZ()
					under := blocks[i-1024]
					if !slices.Contains(soils[b], under) {
						t.Fatalf("seed %d, chunk %v: %s at (%d, %d, %d) stands on %s", seed, p, b.Name(), x, y, z, under.Name())
					}
					if y <= g.sea {
						t.Fatalf("seed %d, chunk %v: %s at (%d, %d, %d), not over the sea", seed, p, b.Name(), x, y, z)
					}
					if under == chunk.Grass {
						overgrown++
					}
					if b == chunk.Reeds && under != chunk.Reeds && y != g.sea+1 {
						t.Fatalf("seed %d, chunk %v: reeds at (%d, %d, %d), away from water", seed, p, x, y, z)
					}
				}
			})
		}
		for b := range soils {
			t.Logf("%s: %d", b.Name(), seen[b])
			if seen[b] < 50 {
				t.Errorf("only %d blocks of %s", seen[b], b.Name())
			}
		}
		share := float64(overgrown) / float64(grass+overgrown)
		t.Logf("%.1f %% of the open grass bears a plant", 100*share)
		if share < 0.1 || share > 0.35 {
			t.Errorf("%.3f of the open grass bears a plant, want 0.1 to 0.35", share)
		}
	})
}

// No block that would fall or flow hangs in the air, bedrock closes the bottom, and the sky stays free.
func TestNothingFloats(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		for _, sections := range []int{2, 4, 10} {
			g := newGenerator(t, version, 11, sections)
			sea := int(SeaLevel(sections))
			sampleChunks(g, func(p grid.ChunkPos, blocks []chunk.Block) {
				for i, b := range blocks {
					x, y, z := chunk.Index(i).XYZ()
					if (b == chunk.Bedrock) != (y == 0) {
						t.Fatalf("%v at y=%d", b.Name(), y)
					}
					if y == 0 {
						continue
					}
					under, wet := blocks[i-1024], b == chunk.Water || b == chunk.Ice
					if wet && y > sea {
						t.Fatalf("chunk %v: water at (%d, %d, %d), over the sea level", p, x, y, z)
					}
					for _, n := range besides(x, z) {
						if wet && blocks[chunk.IndexOf(n[0], y, n[1])] == chunk.Air {
							t.Fatalf("chunk %v: air beside the water at (%d, %d, %d)", p, x, y, z)
						}
					}
					if wet && under == chunk.Air {
						t.Fatalf("chunk %v: water at (%d, %d, %d) over air", p, x, y, z)
					}
					if loose := b == chunk.Sand || b == chunk.Gravel; loose && !under.Solid() {
						t.Fatalf("chunk %v: %v at (%d, %d, %d) over %v", p, b.Name(), x, y, z, under.Name())
					}
					if b == chunk.Air && y <= sea && under == chunk.Water {
						t.Fatalf("chunk %v: water ends under air at (%d, %d, %d)", p, x, y, z)
					}
				}
			})
		}
	})
}

// Where a dry column is right beside water, caves leave the wall between them. Such banks are rare, so the test makes
// one: a column of grass at (0, 0) of a slab, three blocks over the sea, with water 5 deep beside it.
func TestCavesKeepOutOfWater(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		tempted := 0
		for seed := range int64(300) {
			g := newGenerator(t, version, seed, 4)
			s := newSlab(g, 0, 0, 1, 1)
			s.explore(g.height)
			grass := skin{top: chunk.Grass, fill: chunk.Dirt, depth: 3, fertile: true}
			for _, at := range [...][2]int{{0, 0}, {-1, 0}, {0, -1}, {0, 1}} {
				*s.at(at[0], at[1]) = cached{column: column{ground: g.sea + 3, mouth: 1}, skin: grass, hasColumn: true, hasSkin: true}
			}
			wet := g.sea - 5
			*s.at(1, 0) = cached{column: column{ground: wet}, hasColumn: true}
			for y := wet; y <= g.sea+3; y++ {
				if n := s.caveAt(0, y, 0); n[tunnelA]*n[tunnelA]+n[tunnelB]*n[tunnelB] < tunnelWidth*tunnelWidth {
					tempted++
				}
				if s.hollow(0, y, 0) {
					t.Errorf("seed %d: a cave opens at y=%d beside the water", seed, y)
				}
			}
		}
		if tempted < 20 {
			t.Errorf("only %d blocks would be hollow if there were no water", tempted)
		}
	})
}

// besides lists the horizontal neighbours of a column within its chunk.
func besides(x, z int) [][2]int {
	all := make([][2]int, 0, 4)
	for _, n := range [...][2]int{{x - 1, z}, {x + 1, z}, {x, z - 1}, {x, z + 1}} {
		if n[0] >= 0 && n[0] < 32 && n[1] >= 0 && n[1] < 32 {
			all = append(all, n)
		}
	}
	return all
}

// A crown cut at a chunk's border would end there in a straight wall: no more leaves may end between two chunks than
// between any other two columns.
func TestNoCutTrees(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		var ends [32]int // by x mod 32 of the leaf that has no leaf at x+1
		for _, seed := range []int64{1, 2, 3, 4} {
			g := newGenerator(t, version, seed, 4)
			for _, at := range [][2]int32{{-3, 2}, {5, 5}, {-9, -12}, {14, -4}} {
				land := neighbourhood(g, at[0], at[1])
				for i, b := range land {
					if x := i % 96; x < 64 && isLeaves(b) && land[i+1] == chunk.Air {
						ends[x%32]++
					}
				}
			}
		}
		sum := 0
		for _, n := range ends {
			sum += n
		}
		t.Logf("crowns end %d times; by column: %v", sum, ends)
		if mean := sum / 32; mean < 100 || ends[31] > mean*5/4 {
			t.Errorf("crowns end %d times at a border, %d times elsewhere", ends[31], mean)
		}
	})
}

// Leaves belong to a tree with a trunk nearby, or are a bush on the ground.
func TestLeavesHaveTrunks(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		for _, seed := range []int64{1, 2, 3, 4} {
			g := newGenerator(t, version, seed, 4)
			for _, at := range [][2]int32{{-3, 2}, {14, -4}} {
				land := neighbourhood(g, at[0], at[1])
				for i, b := range land {
					x, y, z := i%96, i/(96*96), i/96%96
					if !isLeaves(b) || x < 3 || x >= 93 || z < 3 || z >= 93 {
						continue
					}
					if under := land[i-96*96]; !isLeaves(under) && under.Solid() {
						continue
					}
					if !woodNear(land, x, y, z) {
						t.Fatalf("seed %d: leaves without a trunk at (%d, %d, %d)", seed, int(at[0])*32+x, y, int(at[1])*32+z)
					}
				}
			}
		}
	})
}

// neighbourhood assembles 3×3 chunks from chunk (X, Z), in the order y, z, x.
func neighbourhood(g *Generator, chunkX, chunkZ int32) []chunk.Block {
	land := make([]chunk.Block, 96*96*g.height)
	for i := range int32(9) {
		for j, b := range g.Chunk(grid.ChunkPos{X: chunkX + i%3, Z: chunkZ + i/3}).Blocks() {
			x, y, z := chunk.Index(j).XYZ()
			land[(y*96+z+int(i/3)*32)*96+x+int(i%3)*32] = b
		}
	}
	return land
}

func woodNear(land []chunk.Block, x, y, z int) bool {
	for dy := -3; dy <= 1; dy++ {
		for dz := -3; dz <= 3; dz++ {
			for dx := -3; dx <= 3; dx++ {
				if isWood(land[((y+dy)*96+z+dz)*96+x+dx]) {
					return true
				}
			}
		}
	}
	return false
}

// Caves take a few hundredths of the rock, and some can be walked into from the open.
func TestCavesOpenToTheSky(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		hollow, rock, deepest := 0, 0, 0
		for _, seed := range []int64{1, 2, 3} {
			g := newGenerator(t, version, seed, 4)
			for _, at := range [][2]int32{{-3, 2}, {5, 5}, {-9, -12}, {14, -4}, {-20, 7}} {
				land := neighbourhood(g, at[0], at[1])
				ground := make([]int, 96*96)
				for i := range ground {
					ground[i] = columnAt(g, int(at[0])*32+i%96, int(at[1])*32+i/96).ground
					for y := 1; y < ground[i]; y++ {
						if land[y*96*96+i] == chunk.Air {
							hollow++
						} else {
							rock++
						}
					}
				}
				deepest = max(deepest, walkDown(land, ground))
			}
		}
		share := float64(hollow) / float64(hollow+rock)
		t.Logf("caves take %.2f %%; one can walk %d blocks down", 100*share, deepest)
		if share < 0.02 || share > 0.12 {
			t.Errorf("caves take %.3f of the rock, want 0.02 to 0.12", share)
		}
		if deepest < 15 {
			t.Errorf("no cave leads from the open deeper than %d blocks, want 15", deepest)
		}
	})
}

// walkDown floods the air of a neighbourhood from the sky and returns how far below the ground it gets.
func walkDown(land []chunk.Block, ground []int) int {
	const layer = 96 * 96
	seen := make([]bool, len(land))
	var queue []int
	for i := len(land) - layer; i < len(land); i++ {
		queue = append(queue, i)
		seen[i] = true
	}
	deepest := 0
	for len(queue) > 0 {
		i := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		deepest = max(deepest, ground[i%layer]-i/layer)
		x, z := i%96, i/96%96
		for _, n := range [...]struct {
			step int
			ok   bool
		}{{-1, x > 0}, {1, x < 95}, {-96, z > 0}, {96, z < 95}, {-layer, i >= layer}} {
			if j := i + n.step; n.ok && !seen[j] && land[j] == chunk.Air {
				seen[j] = true
				queue = append(queue, j)
			}
		}
	}
	return deepest
}

// Ores lie at their depths, the rarer the deeper.
func TestOresByDepth(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		var count, highest [256]int // by block
		for seed := int64(1); seed <= 2; seed++ {
			sampleChunks(newGenerator(t, version, seed, 4), func(_ grid.ChunkPos, blocks []chunk.Block) {
				for i, b := range blocks {
					count[b]++
					highest[b] = max(highest[b], i/1024)
				}
			})
		}
		order := []chunk.Block{chunk.CoalOre, chunk.IronOre, chunk.GoldOre, chunk.DiamondOre}
		for i, b := range order {
			t.Logf("%s: %d per million stones, up to y=%d", b.Name(), count[b]*1_000_000/count[chunk.Stone], highest[b])
			if count[b] == 0 {
				t.Errorf("no %s", b.Name())
			}
			if i > 0 && (count[b] >= count[order[i-1]] || highest[b] >= highest[order[i-1]]) {
				t.Errorf("%s is not rarer and deeper than %s", b.Name(), order[i-1].Name())
			}
		}
		if highest[chunk.DiamondOre] > int(SeaLevel(4))/2 {
			t.Errorf("diamonds up to y=%d", highest[chunk.DiamondOre])
		}
	})
}

// Worlds of every height have land and sea, and their summits keep below the sky.
func TestEveryHeight(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		for sections := 2; sections <= maxSections; sections++ {
			g := newGenerator(t, version, 11, sections)
			dry, columns, top := 0, 0, 0
			for z := -1024; z < 1024; z += 24 {
				for x := -1024; x < 1024; x += 24 {
					ground := columnAt(g, x, z).ground
					columns++
					if ground > g.sea {
						dry++
					}
					top = max(top, ground)
					if ground < 5 || ground > g.height-10 {
						t.Fatalf("%d sections: ground at y=%d of %d", sections, ground, g.height)
					}
				}
			}
			if share := float64(dry) / float64(columns); share < 0.3 || share > 0.95 {
				t.Errorf("%d sections: %.2f of the land is dry", sections, share)
			}
			if climb := top - g.sea; float64(climb) < 30*g.lift {
				t.Errorf("%d sections: the highest mountain rises %d blocks over the sea", sections, climb)
			}
		}
	})
}

// columnAt computes a single column.
func columnAt(g *Generator, x, z int) column {
	var r relief
	r.begin(g)
	return r.at(x, z)
}
