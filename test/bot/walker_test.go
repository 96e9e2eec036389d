package bot

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/terrain"
)

const tick = 50 * time.Millisecond

// realLand returns generated terrain, in the square of chunks from -size to size-1.
func realLand(t testing.TB, seed int64, size int32) (*ground, *terrain.Generator) {
	t.Helper()
	gen, err := terrain.New(terrain.Params{Seed: seed, Sections: 4, Version: terrain.Version})
	if err != nil {
		t.Fatal(err)
	}
	g := newGround(chunk.Decode)
	for x := -size; x < size; x++ {
		for z := -size; z < size; z++ {
			at := grid.ChunkPos{X: x, Z: z}
			encoded, err := gen.Chunk(at).MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			g.put(at, encoded)
		}
	}
	return g, gen
}

func newWalker(seed uint64, g *ground, x, z, speed float64) *walker {
	w := &walker{rng: rand.New(rand.NewPCG(seed, 0)), speed: speed}
	w.pose.X, w.pose.Z = x, z
	w.pose.Y, _, _ = g.stand(x, 120, z)
	return w
}

// Wherever it walks, a walker touches nothing solid, keeps to its speed, passes the server's own check of moves, and
// covers some distance.
func TestWalkerWalksAsPlayersMay(t *testing.T) {
	g, gen := realLand(t, 7, 3)
	spawn := gen.Spawn() // a search, which takes a while
	rapid.Check(t, func(t *rapid.T) {
		speed := rapid.Float64Range(1, 8).Draw(t, "speed")
		x0, z0 := float64(spawn.X)+0.5, float64(spawn.Z)+0.5
		w := newWalker(rapid.Uint64().Draw(t, "seed"), g, x0, z0, speed)
		motion := player.NewMotion(player.Rules{}, 0, w.pose.X, w.pose.Y, w.pose.Z)
		farthest := 0.0
		for i := range 20 * 30 {
			before := w.pose
			w.step(tick, g)
			if free, known := g.free(w.pose.X, w.pose.Y, w.pose.Z); !free || !known {
				t.Fatalf("step %d: from %+v into something at %+v", i, before, w.pose)
			}
			distance := math.Hypot(w.pose.X-before.X, w.pose.Z-before.Z)
			if distance > speed*tick.Seconds()+1e-9 {
				t.Fatalf("step %d: %g blocks in %v", i, distance, tick)
			}
			p := w.pose
			if ok, why := motion.Check(time.Duration(i+1)*tick, p.X, p.Y, p.Z, p.Yaw, p.Pitch); !ok {
				t.Fatalf("step %d: server would refuse %+v after %+v: %s", i, p, before, why)
			}
			farthest = max(farthest, math.Hypot(p.X-x0, p.Z-z0))
		}
		if farthest < speed {
			t.Fatalf("in 30 s at %g blocks/s it came %g blocks far", speed, farthest)
		}
	})
}

func TestWalkerIsDeterministic(t *testing.T) {
	g, _ := realLand(t, 3, 2)
	a, b := newWalker(11, g, 5.5, 5.5, 4), newWalker(11, g, 5.5, 5.5, 4)
	other := newWalker(12, g, 5.5, 5.5, 4)
	for range 500 {
		a.step(tick, g)
		b.step(tick, g)
		other.step(tick, g)
	}
	if a.pose != b.pose {
		t.Errorf("the same seed came to %+v and %+v", a.pose, b.pose)
	}
	if a.pose == other.pose {
		t.Errorf("two seeds came to the same place %+v", a.pose)
	}
}

// A walker with a home chunk goes there, and stays.
func TestWalkerGoesHomeAndStays(t *testing.T) {
	g, _ := realLand(t, 5, 3)
	w := newWalker(1, g, -40.5, -40.5, 8)
	w.home = grid.Area{MinX: 1, MinZ: 1, MaxX: 2, MaxZ: 2}
	arrived := -1
	for i := range 20 * 240 {
		w.step(tick, g)
		at := w.pose.Chunk()
		switch {
		case arrived < 0 && w.inside(w.pose.X, w.pose.Z):
			arrived = i
		case arrived >= 0 && at != (grid.ChunkPos{X: 1, Z: 1}):
			t.Fatalf("step %d: left home for %v at %+v", i, at, w.pose)
		}
	}
	if arrived < 0 {
		t.Fatalf("never came home; is at %+v", w.pose)
	}
}

// Where no land has arrived, a walker waits.
func TestWalkerWaitsForLand(t *testing.T) {
	g, _ := realLand(t, 5, 1)
	w := newWalker(2, g, 0.5, 0.5, 8)
	for i := range 5000 {
		w.step(tick, g)
		if at := w.pose.Chunk(); g.lands[at] == nil {
			t.Fatalf("step %d: in unknown chunk %v", i, at)
		}
	}
}

func flat(height int) func([]byte) (*chunk.Chunk, error) {
	return func([]byte) (*chunk.Chunk, error) {
		c, err := chunk.FromBlocks(make([]chunk.Block, 32*32*32))
		if err != nil {
			return nil, err
		}
		for x := range grid.ChunkSize {
			for z := range grid.ChunkSize {
				for y := range height {
					c.Set(chunk.IndexOf(x, y, z), chunk.Stone)
				}
			}
		}
		return c, nil
	}
}

func TestStand(t *testing.T) {
	for _, tc := range []struct {
		name     string
		x, y, z  float64
		blocks   map[grid.Pos]chunk.Block
		feet     float64
		known    bool
		possible bool
	}{
		{"on flat land", 5.5, 10, 5.5, nil, 10, true, true},
		{"falls to it", 5.5, 25, 5.5, nil, 10, true, true},
		{"out of the earth", 5.5, 4, 5.5, nil, 10, true, true},
		{"on a block", 5.5, 10, 5.5, map[grid.Pos]chunk.Block{{X: 5, Y: 10, Z: 5}: chunk.Dirt}, 11, true, true},
		{"on a block that only an elbow touches", 5.8, 10, 5.5, map[grid.Pos]chunk.Block{{X: 6, Y: 10, Z: 5}: chunk.Dirt}, 11, true, true},
		{"not on a block beside", 5.5, 10, 5.5, map[grid.Pos]chunk.Block{{X: 6, Y: 10, Z: 5}: chunk.Dirt}, 10, true, true},
		{"on water", 5.5, 12, 5.5, map[grid.Pos]chunk.Block{{X: 5, Y: 10, Z: 5}: chunk.Water}, 11, true, true},
		{"under a roof", 5.5, 10, 5.5, map[grid.Pos]chunk.Block{{X: 5, Y: 12, Z: 5}: chunk.Planks}, 10, true, true},
		{"no room under a low roof", 5.5, 10, 5.5, map[grid.Pos]chunk.Block{{X: 5, Y: 11, Z: 5}: chunk.Planks}, 0, true, false},
		{"land unknown", 40.5, 10, 5.5, nil, 0, false, false},
		{"one foot on unknown land", 31.9, 10, 5.5, nil, 0, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := newGround(flat(10))
			g.put(grid.ChunkPos{}, nil)
			for pos, b := range tc.blocks {
				g.set(pos, b)
			}
			feet, known, ok := g.stand(tc.x, tc.y, tc.z)
			if known != tc.known || ok != tc.possible || ok && feet != tc.feet {
				t.Errorf("stand: %g, %v, %v; want %g, %v, %v", feet, known, ok, tc.feet, tc.known, tc.possible)
			}
		})
	}
}

// Changes apply whether they come before the chunk is first unpacked or after.
func TestGroundKeepsChanges(t *testing.T) {
	g := newGround(flat(10))
	g.put(grid.ChunkPos{}, nil)
	early, late := grid.Pos{X: 1, Y: 12, Z: 3}, grid.Pos{X: 2, Y: 3, Z: 31}
	g.set(early, chunk.Glass)
	if b, _ := g.block(early); b != chunk.Glass {
		t.Errorf("change before unpacking: %v, want glass", b.Name())
	}
	g.set(late, chunk.Air)
	if b, _ := g.block(late); b != chunk.Air {
		t.Errorf("change after unpacking: %v, want air", b.Name())
	}
	g.put(grid.ChunkPos{}, nil)
	if b, _ := g.block(early); b != chunk.Air {
		t.Errorf("new contents keep an old change: %v", b.Name())
	}
}

func TestGroundReportsBrokenChunks(t *testing.T) {
	bad := errors.New("bad")
	g := newGround(func([]byte) (*chunk.Chunk, error) { return nil, bad })
	g.put(grid.ChunkPos{}, nil)
	if _, known := g.block(grid.Pos{}); known || !errors.Is(g.broken, bad) {
		t.Errorf("broken chunk: known %v, error %v", known, g.broken)
	}
}

// A builder stays within reach, replaces air only, and removes what it has placed.
func TestBuilderBuildsWithinReach(t *testing.T) {
	g, _ := realLand(t, 9, 2)
	rules := player.Rules{Reach: 5}.WithDefaults()
	w := newWalker(4, g, 3.5, 3.5, 0.5)
	b := builder{rng: rand.New(rand.NewPCG(4, 1)), blocks: []chunk.Block{chunk.Planks, chunk.Glass}}
	put, taken := 0, 0
	for range 2000 {
		w.step(tick, g)
		pos, block, ok := b.next(w.pose, rules.Reach, g)
		if !ok {
			continue
		}
		if !rules.InReach(w.pose.X, w.pose.Y+player.EyeHeight, w.pose.Z, pos) {
			t.Fatalf("from %+v it reaches for %v", w.pose, pos)
		}
		switch now, known := g.block(pos); {
		case !known:
			t.Fatalf("edit of unknown land at %v", pos)
		case block == chunk.Air && !now.Breakable():
			t.Fatalf("breaks %s at %v", now.Name(), pos)
		case block == chunk.Air:
			taken++
		case now != chunk.Air || !block.Placeable():
			t.Fatalf("puts %s onto %s at %v", block.Name(), now.Name(), pos)
		default:
			put++
		}
		g.set(pos, block)
	}
	if put < 500 || taken < put*9/10 {
		t.Errorf("put %d blocks, took %d away", put, taken)
	}
}

func TestWalkerKeepsItsYawWhenPutBack(t *testing.T) {
	w := walker{pose: motion.Pose{X: 1, Yaw: 2}}
	w.teleport(motion.Pose{X: 5, Y: 6, Z: 7, Yaw: 1})
	if w.pose != (motion.Pose{X: 5, Y: 6, Z: 7, Yaw: 2}) {
		t.Errorf("put: %+v", w.pose)
	}
}
