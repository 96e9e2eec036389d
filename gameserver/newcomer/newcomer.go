// Package newcomer chooses where a new player starts: beside what players have built recently, near the spawn of the
// world. Any goroutine may use it.
package newcomer

import (
	"context"
	"math"
	"sync"
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

const (
	// far is how far from the spawn, along X and Z, buildings may be, in blocks.
	far = 128
	// recent is how old changes may be, and maxChanges how many of the newest are looked at.
	recent     = 14 * 24 * time.Hour
	maxChanges = 1024
	// lot is the width of the squares of which that with the most new blocks is chosen, and enough how many these are
	// at least.
	lot, enough = 16, 12
	// farthest and nearest are the distances from the middle of the new blocks between which a newcomer may stand,
	// margin how far from any change.
	farthest, nearest, margin = 24, 4, 3
	directions                = 16
	// horizon is how far around the ground is looked at, so that nobody starts in a ravine; with farthest it is no more
	// than a chunk.
	horizon = 8
	// fresh is for how long a choice stands, patience how long a newcomer waits for one.
	fresh, patience = 15 * time.Second, time.Second
)

// Terrain generates the untouched land.
type Terrain interface {
	ChunkIn(room *terrain.Room, pos grid.ChunkPos) *chunk.Chunk
}

// Sources is what a choice is made of.
type Sources struct {
	History interface { // nil: newcomers start at the spawn
		Query(ctx context.Context, q rollback.Query) (rollback.Result, error)
	}
	Ranges  func(context.Context, region.RangeQuery) (region.RangeResult, error) // nil: newcomers start at the spawn
	Terrain Terrain
	Policy  func(func(*policy.State)) // reads it
	Height  int32                     // of the world
	Wall    func() time.Time
}

// Chooser chooses places. A choice costs other nodes a question about the history around the spawn, and one about the
// surface.
type Chooser struct {
	Sources

	mu struct {
		sync.Mutex
		at    time.Time // of the last choice
		spawn motion.Pose
		pose  motion.Pose
	}
}

// New returns a Chooser.
func New(s Sources) *Chooser { return &Chooser{Sources: s} }

// Pose returns where a new player starts. It is the spawn if an administrator has set it, if nothing was built near it,
// or if a part of the land around does not answer.
func (c *Chooser) Pose(ctx context.Context, spawn motion.Pose) motion.Pose {
	set := false
	c.Policy(func(p *policy.State) { set = p.Settings().Spawn != nil })
	if set || c.History == nil || c.Ranges == nil {
		return spawn
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.at.IsZero() || time.Since(c.mu.at) > fresh || c.mu.spawn != spawn {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		c.mu.spawn, c.mu.pose = spawn, c.choose(ctx, spawn)
		c.mu.at = time.Now()
	}
	return c.mu.pose
}

func (c *Chooser) choose(ctx context.Context, spawn motion.Pose) motion.Pose {
	at := spawn.Block()
	box := grid.Box{Min: grid.Pos{X: at.X - far, Z: at.Z - far}, Max: grid.Pos{X: at.X + far, Y: c.Height - 1, Z: at.Z + far}}
	changes, err := c.History.Query(ctx, rollback.Query{
		Filter: history.Filter{Box: box, Since: c.Wall().Add(-recent).UnixMilli()}, Newest: true, Most: maxChanges,
	})
	if err != nil || len(changes.Missing) > 0 {
		return spawn
	}
	middle, ok := busiest(changes.Records)
	if !ok {
		return spawn
	}
	home := middle.Chunk()
	around := grid.Area{MinX: home.X - 1, MinZ: home.Z - 1, MaxX: home.X + 2, MaxZ: home.Z + 2} // farthest is less than a chunk
	surface, err := c.Ranges(ctx, region.RangeQuery{Area: around, Surface: true, Time: patience})
	if err != nil || len(surface.Missing) > 0 {
		return spawn
	}
	l := land{terrain: c.Terrain, chunks: make(map[grid.ChunkPos]*chunk.Chunk), changed: make(map[column]bool)}
	for _, r := range changes.Records {
		l.changed[column{r.At.X, r.At.Z}] = true
	}
	for _, r := range surface.Regions {
		if r.Clipped {
			return spawn
		}
		l.addSurface(r.Surface)
	}
	for x := around.MinX; x < around.MaxX; x++ { // before the policy is read, which keeps others from changing it
		for z := around.MinZ; z < around.MaxZ; z++ {
			l.chunk(grid.ChunkPos{X: x, Z: z})
		}
	}
	pose := spawn
	c.Policy(func(p *policy.State) {
		border, claims := p.Settings().Border, p.Claims()
		free := func(at grid.Pos) bool { return border.Contains(at) && claims.At(at) == nil }
		if found, ok := l.beside(middle, at, free); ok {
			pose = found
		}
	})
	return pose
}

// busiest returns the middle of the lot in which most blocks were placed and are left, as far as the changes say, which
// are the newest first; false if there are too few.
func busiest(changes []nodemsg.HistoryRecord) (middle grid.Pos, ok bool) {
	seen := make(map[grid.Pos]bool)
	lots := make(map[column][]grid.Pos)
	var best []grid.Pos
	for _, r := range changes {
		if seen[r.At] {
			continue // changed again since
		}
		seen[r.At] = true
		if r.New == chunk.Air || r.New == history.Natural {
			continue
		}
		of := column{floorDiv(r.At.X, lot), floorDiv(r.At.Z, lot)}
		lots[of] = append(lots[of], r.At)
		if len(lots[of]) > len(best) {
			best = lots[of]
		}
	}
	if len(best) < enough {
		return grid.Pos{}, false
	}
	var x, y, z int
	for _, at := range best {
		x, y, z = x+int(at.X), y+int(at.Y), z+int(at.Z)
	}
	n := len(best)
	return grid.Pos{X: int32(x / n), Y: int32(y / n), Z: int32(z / n)}, true //nolint:gosec // means of such
}

func floorDiv(a, b int32) int32 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

type column struct{ x, z int32 }

// land is the land around buildings.
type land struct {
	terrain Terrain
	room    terrain.Room
	chunks  map[grid.ChunkPos]*chunk.Chunk // untouched
	changed map[column]bool
}

// addSurface adds squares whose surface was changed at any time.
func (l *land) addSurface(chunks []nodemsg.ChunkSurface) {
	const side = grid.ChunkSize / nodemsg.SurfaceStep
	for _, c := range chunks {
		for _, p := range c.Points {
			minX := c.Chunk.X*grid.ChunkSize + int32(p.Index)%side*nodemsg.SurfaceStep
			minZ := c.Chunk.Z*grid.ChunkSize + int32(p.Index)/side*nodemsg.SurfaceStep
			for x := minX; x < minX+nodemsg.SurfaceStep; x++ {
				for z := minZ; z < minZ+nodemsg.SurfaceStep; z++ {
					l.changed[column{x, z}] = true
				}
			}
		}
	}
}

// beside returns a place from which buildings are seen. It goes towards their middle until it comes to the first
// change, and takes the last place where one can stand: so the way out is open. The direction of the spawn is tried
// first.
func (l *land) beside(middle, spawn grid.Pos, free func(grid.Pos) bool) (motion.Pose, bool) {
	first := math.Atan2(float64(spawn.Z-middle.Z), float64(spawn.X-middle.X))
	for i := range directions {
		turn := float64((i+1)/2) * 2 * math.Pi / directions
		if i%2 == 1 {
			turn = -turn
		}
		dx, dz := math.Cos(first+turn), math.Sin(first+turn)
		var found grid.Pos
		ok := false
		for away := float64(farthest); away >= nearest; away-- {
			at := column{middle.X + int32(math.Round(dx*away)), middle.Z + int32(math.Round(dz*away))}
			if l.changedNear(at) {
				break
			}
			if y, stands := l.stand(at); stands && !l.enclosed(at, y) && free(grid.Pos{X: at.x, Y: y, Z: at.z}) {
				found, ok = grid.Pos{X: at.x, Y: y, Z: at.z}, true
			}
		}
		if ok {
			yaw := math.Atan2(float64(found.X-middle.X), float64(middle.Z-found.Z))
			return motion.Pose{X: float64(found.X) + .5, Y: float64(found.Y), Z: float64(found.Z) + .5, Yaw: float32(yaw)}, true
		}
	}
	return motion.Pose{}, false
}

func (l *land) changedNear(at column) bool {
	for x := at.x - margin; x <= at.x+margin; x++ {
		for z := at.z - margin; z <= at.z+margin; z++ {
			if l.changed[column{x, z}] {
				return true
			}
		}
	}
	return false
}

// stand returns the height at which a player stands on the ground of a column, and false where it is water, a tree or
// too steep.
func (l *land) stand(at column) (y int32, ok bool) {
	ground := l.top(at)
	for _, side := range []column{{at.x - 1, at.z}, {at.x + 1, at.z}, {at.x, at.z - 1}, {at.x, at.z + 1}, at} {
		top := l.top(side)
		if top.Y < ground.Y-1 || top.Y > ground.Y+1 {
			return 0, false
		}
		switch top.Block {
		case chunk.Grass, chunk.SnowyGrass, chunk.Dirt, chunk.Sand, chunk.Gravel, chunk.Stone, chunk.Snow, chunk.Clay:
		default:
			return 0, false
		}
	}
	return int32(ground.Y) + 1, true //nolint:gosec // at most 1,023
}

// enclosed reports whether most of the ground around is above the head of a player who stands at a height.
func (l *land) enclosed(at column, y int32) bool {
	above := 0
	for _, side := range [8]column{{-1, -1}, {-1, 0}, {-1, 1}, {0, -1}, {0, 1}, {1, -1}, {1, 0}, {1, 1}} {
		if l.top(column{at.x + side.x*horizon, at.z + side.z*horizon}).Y > int(y)+1 {
			above++
		}
	}
	return above > 4
}

// chunk returns a chunk of the untouched land.
func (l *land) chunk(pos grid.ChunkPos) *chunk.Chunk {
	c := l.chunks[pos]
	if c == nil {
		c = l.terrain.ChunkIn(&l.room, pos)
		l.chunks[pos] = c
	}
	return c
}

// top returns the highest block of a column of the untouched land, plants left out.
func (l *land) top(at column) terrain.TopBlock {
	c := l.chunk(grid.Pos{X: at.x, Z: at.z}.Chunk())
	for y := c.Height() - 1; y >= 0; y-- {
		if b := c.Get(chunk.At(grid.Pos{X: at.x, Y: int32(y), Z: at.z})); b != chunk.Air && !b.Plant() { //nolint:gosec // at most 1,023
			return terrain.TopBlock{Y: y, Block: b}
		}
	}
	return terrain.TopBlock{}
}
