package bot

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
)

// walker walks at random over the ground, in straight legs of one to four seconds: down slopes, and up over
// obstacles, as a player who jumps repeatedly would. It has no clock: the same rng, land and steps produce the same
// walk.
type walker struct {
	rng   *rand.Rand
	pose  motion.Pose
	speed float64 // blocks/s

	// home, if not empty, is the area in chunks where the walker belongs: outside it walks towards its middle, inside
	// it stays.
	home grid.Area

	legLeft time.Duration // until the next turn
	waited  time.Duration // for land to arrive
}

// turnAfter is how long a walker waits for land before it turns.
const turnAfter = 3 * time.Second

// step walks for dt and reports whether the pose has changed.
func (w *walker) step(dt time.Duration, g *ground) bool {
	w.legLeft -= dt
	if w.legLeft <= 0 {
		w.turn(w.heading())
	}
	distance := w.speed * dt.Seconds()
	x := w.pose.X - distance*math.Sin(float64(w.pose.Yaw)) // yaw grows clockwise seen from above: east (+X) is to the left of +Z
	z := w.pose.Z + distance*math.Cos(float64(w.pose.Yaw))
	if w.inside(w.pose.X, w.pose.Z) && !w.inside(x, z) {
		w.turn(w.homeward())
		return true
	}
	feet, known, ok := g.stand(x, w.pose.Y, z)
	switch {
	case !known:
		w.waited += dt
		if w.waited > turnAfter {
			w.waited = 0
			w.turn(w.rng.Float64() * 2 * math.Pi)
		}
		return false
	case !ok:
		w.turn(w.rng.Float64() * 2 * math.Pi)
		return true
	case feet > w.pose.Y:
		return w.climb(feet, distance, g)
	}
	w.waited = 0
	low := max(feet, w.pose.Y-distance)
	if free, known := g.free(x, low, z); !free || !known {
		w.turn(w.rng.Float64() * 2 * math.Pi)
		return true
	}
	w.pose.X, w.pose.Y, w.pose.Z = x, low, z
	return true
}

// climb moves straight up in front of an obstacle as high as feet.
func (w *walker) climb(feet, distance float64, g *ground) bool {
	y := min(feet, w.pose.Y+distance)
	if free, known := g.free(w.pose.X, y, w.pose.Z); !free || !known {
		w.turn(w.rng.Float64() * 2 * math.Pi)
		return true
	}
	w.pose.Y = y
	return true
}

// teleport moves the walker to a position that the server imposes.
func (w *walker) teleport(p motion.Pose) {
	yaw := w.pose.Yaw
	w.pose = p
	w.pose.Yaw = yaw
}

func (w *walker) turn(yaw float64) {
	w.pose.Yaw = float32(math.Mod(yaw+2*math.Pi, 2*math.Pi))
	w.pose.Pitch = float32((w.rng.Float64() - 0.5) * 0.6)
	w.legLeft = time.Second + time.Duration(w.rng.Int64N(int64(3*time.Second)))
}

// heading returns the yaw of the next leg: anywhere, or home.
func (w *walker) heading() float64 {
	if w.inside(w.pose.X, w.pose.Z) {
		return w.rng.Float64() * 2 * math.Pi
	}
	return w.homeward()
}

// homeward returns the yaw to the middle of home, plus or minus an eighth of a turn.
func (w *walker) homeward() float64 {
	dx := float64(w.home.MinX+w.home.MaxX)*grid.ChunkSize/2 - w.pose.X
	dz := float64(w.home.MinZ+w.home.MaxZ)*grid.ChunkSize/2 - w.pose.Z
	return math.Atan2(-dx, dz) + (w.rng.Float64()-0.5)*math.Pi/2
}

// inside reports whether a body at (x, z) is wholly within home. An empty home is everywhere.
func (w *walker) inside(x, z float64) bool {
	h := w.home
	if h == (grid.Area{}) {
		return true
	}
	return x-bodyHalf >= float64(h.MinX)*grid.ChunkSize && x+bodyHalf < float64(h.MaxX)*grid.ChunkSize &&
		z-bodyHalf >= float64(h.MinZ)*grid.ChunkSize && z+bodyHalf < float64(h.MaxZ)*grid.ChunkSize
}

// builder changes blocks near a player. It places one two or three blocks away and removes it the next time, and so
// on: the land stays nearly as it was.
type builder struct {
	rng    *rand.Rand
	blocks []chunk.Block // to choose from
	placed *grid.Pos     // placed and not removed
	keep   bool          // removes nothing
}

// next chooses an edit for a player at the pose; ok is false if there is no suitable place.
func (b *builder) next(p motion.Pose, reach float64, g *ground) (pos grid.Pos, block chunk.Block, ok bool) {
	if b.placed != nil && !b.keep {
		pos, b.placed = *b.placed, nil
		if near(p, pos, reach) {
			return pos, chunk.Air, true
		}
	}
	turn, dist := b.rng.Float64()*2*math.Pi, 2+b.rng.Float64()
	x, z := p.X+dist*math.Sin(turn), p.Z+dist*math.Cos(turn)
	top, known, ok := g.standColumn(floor(x), floor(p.Y), floor(z))
	pos = grid.Pos{X: floor(x), Y: top, Z: floor(z)}
	if !known || !ok || !near(p, pos, reach) {
		return grid.Pos{}, 0, false
	}
	if now, known := g.block(pos); !known || now != chunk.Air {
		return grid.Pos{}, 0, false
	}
	b.placed = &pos
	return pos, b.blocks[b.rng.IntN(len(b.blocks))], true
}

// near reports whether the middle of the block is within reach of the eyes, with half a block to spare.
func near(p motion.Pose, pos grid.Pos, reach float64) bool {
	dx, dy, dz := float64(pos.X)+0.5-p.X, float64(pos.Y)+0.5-p.Y-player.EyeHeight, float64(pos.Z)+0.5-p.Z
	return math.Sqrt(dx*dx+dy*dy+dz*dz) <= reach-0.5
}
