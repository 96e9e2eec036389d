package newcomer

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/history"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/region/rollback"
	"github.com/voxelpopuli/voxeld/terrain"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// changes are those of a world, the newest first.
type changes struct {
	rollback.Result
	err   error
	asked int
}

func (c *changes) Query(_ context.Context, q rollback.Query) (rollback.Result, error) {
	c.asked++
	var r rollback.Result
	r.Missing = c.Missing
	for _, change := range c.Records {
		if q.Box.Contains(change.At) && change.Time >= q.Since {
			r.Records = append(r.Records, change)
		}
	}
	return r, c.err
}

// world returns a Chooser for a generated world, its land, its spawn, and its history, in which nothing was changed.
func world(t *testing.T) (*Chooser, *terrain.Generator, motion.Pose, *changes) {
	t.Helper()
	ground, err := terrain.New(terrain.Params{Seed: 33, Sections: 4, Version: terrain.Version})
	if err != nil {
		t.Fatal(err)
	}
	at := ground.Spawn()
	past := &changes{}
	state := policy.New()
	return New(Sources{
		History: past, Terrain: ground, Height: 128, Wall: time.Now, Policy: func(read func(*policy.State)) { read(state) },
		Ranges: func(context.Context, region.RangeQuery) (region.RangeResult, error) { return region.RangeResult{}, nil },
	}), ground, motion.Pose{X: float64(at.X) + .5, Y: float64(at.Y), Z: float64(at.Z) + .5}, past
}

// build adds a wall of 4×4 blocks on the ground, some blocks from the spawn, a while ago.
func (c *changes) build(ground *terrain.Generator, spawn motion.Pose, dx, dz int32, ago time.Duration) grid.Pos {
	at := spawn.Block()
	corner := grid.Pos{X: at.X + dx, Y: ground.Surface(at.X+dx, at.Z+dz), Z: at.Z + dz}
	for x := range int32(4) {
		for y := range int32(4) {
			c.Records = append(c.Records, nodemsg.HistoryRecord{
				Time: time.Now().Add(-ago).UnixMilli(), At: grid.Pos{X: corner.X + x, Y: corner.Y + y, Z: corner.Z}, Old: history.Natural, New: chunk.Brick,
			})
		}
	}
	return corner
}

func TestBesideWalls(t *testing.T) {
	c, ground, spawn, past := world(t)
	for _, side := range [][2]int32{{60, 0}, {-60, 20}, {10, 90}, {0, -60}, {3, 3}} {
		past.Records = nil
		c.mu.at = time.Time{}
		wall := past.build(ground, spawn, side[0], side[1], time.Hour)
		pose := c.Pose(t.Context(), spawn)
		at := pose.Block()
		if far := math.Hypot(pose.X-float64(wall.X)-2, pose.Z-float64(wall.Z)); far > farthest+2 || far < margin {
			t.Errorf("wall at %v: a newcomer starts at %v, %.0f blocks away", wall, at, far)
		}
		if on := ground.Surface(at.X, at.Z); at.Y != on {
			t.Errorf("wall at %v: a newcomer starts at %v, and the ground is at %d", wall, at, on)
		}
	}
}

// A newcomer looks at the land, not at the walls of a ravine: most of the ground around is not above their head.
func TestNobodyStartsInARavine(t *testing.T) {
	c, ground, spawn, past := world(t)
	rng := rand.New(rand.NewPCG(1, 4))
	beside := 0
	for range 60 {
		past.Records = nil
		c.mu.at = time.Time{}
		past.build(ground, spawn, rng.Int32N(2*far-8)-far, rng.Int32N(2*far-8)-far, time.Hour)
		pose := c.Pose(t.Context(), spawn)
		if pose == spawn {
			continue
		}
		beside++
		at := pose.Block()
		var around []int32
		for x := at.X - 8; x <= at.X+8; x++ {
			for z := at.Z - 8; z <= at.Z+8; z++ {
				around = append(around, ground.Surface(x, z))
			}
		}
		slices.Sort(around)
		if median := around[len(around)/2]; median > at.Y+2 {
			t.Errorf("a newcomer starts at %v, and half of the ground around is above %d", at, median)
		}
	}
	t.Logf("%d of 60 start beside buildings", beside)
}

// Callers that wait share the answer; after a while it is asked for again.
func TestChoiceIsShared(t *testing.T) {
	c, _, spawn, past := world(t)
	for range 3 {
		c.Pose(t.Context(), spawn)
	}
	c.mu.at = time.Now().Add(-fresh - time.Second)
	c.Pose(t.Context(), spawn)
	if past.asked != 2 {
		t.Errorf("the history was asked for %d times, want 2", past.asked)
	}
}

func TestSpawnStays(t *testing.T) {
	for name, change := range map[string]func(c *Chooser, past *changes){
		"nothing was built":         func(_ *Chooser, past *changes) { past.Records = nil },
		"too little was built":      func(_ *Chooser, past *changes) { past.Records = past.Records[:enough-1] },
		"it was built long ago":     func(_ *Chooser, past *changes) { past.Records[5].Time, past.Records = 0, past.Records[5:] },
		"a region does not answer":  func(_ *Chooser, past *changes) { past.Missing = []rollback.Missing{{}} },
		"the history is not there":  func(_ *Chooser, past *changes) { past.err = errors.New("no") },
		"the gateway has no ranges": func(c *Chooser, _ *changes) { c.Ranges = nil },
		"the surface is not known": func(c *Chooser, _ *changes) {
			c.Ranges = func(context.Context, region.RangeQuery) (region.RangeResult, error) {
				return region.RangeResult{Regions: []nodemsg.RangeRegion{{Clipped: true}}}, nil
			}
		},
		"all around was built before": func(c *Chooser, _ *changes) {
			c.Ranges = func(_ context.Context, q region.RangeQuery) (r region.RangeResult, err error) {
				var all nodemsg.RangeRegion
				for x := q.Area.MinX; x < q.Area.MaxX; x++ {
					for z := q.Area.MinZ; z < q.Area.MaxZ; z++ {
						s := nodemsg.ChunkSurface{Chunk: grid.ChunkPos{X: x, Z: z}}
						for i := range nodemsg.SurfacePoints {
							s.Points = append(s.Points, nodemsg.SurfacePoint{Index: uint8(i)})
						}
						all.Surface = append(all.Surface, s)
					}
				}
				return region.RangeResult{Regions: []nodemsg.RangeRegion{all}}, nil
			}
		},
		"it was broken again": func(_ *Chooser, past *changes) {
			var broken []nodemsg.HistoryRecord
			for _, r := range past.Records {
				r.New = chunk.Air
				broken = append(broken, r)
			}
			past.Records = append(broken, past.Records...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, ground, spawn, past := world(t)
			past.build(ground, spawn, 60, 0, time.Hour)
			change(c, past)
			if got := c.Pose(t.Context(), spawn); got != spawn {
				t.Errorf("a newcomer starts at %v, want the spawn %v", got.Block(), spawn.Block())
			}
		})
	}
}

func TestFloorDiv(t *testing.T) {
	for _, c := range [][3]int32{{0, 16, 0}, {15, 16, 0}, {16, 16, 1}, {-1, 16, -1}, {-16, 16, -1}, {-17, 16, -2}} {
		if got := floorDiv(c[0], c[1]); got != c[2] {
			t.Errorf("floorDiv(%d, %d) = %d, want %d", c[0], c[1], got, c[2])
		}
	}
}
