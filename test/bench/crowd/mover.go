package crowd

import (
	"math"
	"math/rand/v2"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
)

// Speeds in blocks a second. The server allows 20 horizontally and up, and 80 down (player.Rules).
const (
	walkSpeed   = 4  // in the home chunk, or between places
	travelSpeed = 16 // on the way to the home chunk
	overLand    = 6  // blocks above the world's top at which travellers fly
)

// mover is one player's movement. A player with a home chunk flies there, descends, and then walks on its land from
// one random place to the next. A player without one flies: first away from the entry, then from one place to another
// nearby.
type mover struct {
	rng     *rand.Rand
	pose    motion.Pose
	sky     float64 // height above all land
	home    grid.ChunkPos
	heights *chunkHeights // of home; nil for a player without one
	base    float64       // for a player without a home: radius in blocks around the entry within which they begin
	goalX   float64
	goalZ   float64
	flying  bool // on the way to home
	placed  bool // has a goal
}

// step moves for dt seconds.
func (b *mover) step(dt float64) {
	if !b.placed {
		b.begin()
	}
	if b.flying {
		b.travel(dt)
		return
	}
	if b.heights == nil {
		if b.moveTowards(walkSpeed * dt) {
			b.goalX, b.goalZ = b.pose.X+b.spread(100), b.pose.Z+b.spread(100)
		}
		return
	}
	b.walk(walkSpeed * dt)
}

func (b *mover) spread(r float64) float64 { return (2*b.rng.Float64() - 1) * r }

func (b *mover) begin() {
	b.placed, b.flying = true, true
	if b.heights == nil {
		b.goalX, b.goalZ = b.pose.X+b.spread(b.base), b.pose.Z+b.spread(b.base)
		return
	}
	b.choose()
	b.flying = b.pose.Chunk() != b.home || b.heights.groundHeight(b.pose.X, b.pose.Z) > b.pose.Y
}

// edgeInset is the distance in blocks that a body keeps from the edges of its chunk, so that all of it stays inside.
const edgeInset = .5

// choose picks a goal in the home chunk, at least edgeInset from its edges.
func (b *mover) choose() {
	b.goalX = float64(b.home.X)*grid.ChunkSize + edgeInset + b.rng.Float64()*(grid.ChunkSize-2*edgeInset)
	b.goalZ = float64(b.home.Z)*grid.ChunkSize + edgeInset + b.rng.Float64()*(grid.ChunkSize-2*edgeInset)
}

// travel flies up, then horizontally, then down.
func (b *mover) travel(dt float64) {
	step := travelSpeed * dt
	if b.pose.X != b.goalX || b.pose.Z != b.goalZ {
		if b.pose.Y < b.sky {
			b.pose.Y = min(b.sky, b.pose.Y+step)
			return
		}
		b.moveTowards(step)
		return
	}
	if b.heights == nil {
		b.flying = false
		return
	}
	ground := b.heights.groundHeight(b.pose.X, b.pose.Z)
	if b.pose.Y = max(ground, b.pose.Y-step); b.pose.Y == ground {
		b.flying = false
		b.choose()
	}
}

// moveTowards moves towards the goal horizontally, and reports whether it is reached.
func (b *mover) moveTowards(step float64) bool {
	dx, dz := b.goalX-b.pose.X, b.goalZ-b.pose.Z
	b.pose.Yaw = float32(math.Mod(math.Atan2(-dx, dz)+2*math.Pi, 2*math.Pi))
	far := math.Hypot(dx, dz)
	if far <= step {
		b.pose.X, b.pose.Z = b.goalX, b.goalZ
		return true
	}
	b.pose.X += dx / far * step
	b.pose.Z += dz / far * step
	return false
}

// walk moves towards the goal over the land: straight up in front of a higher column, and down behind it.
func (b *mover) walk(step float64) {
	before := b.pose
	if b.moveTowards(step) {
		b.choose()
	}
	ground := b.heights.groundHeight(b.pose.X, b.pose.Z)
	switch {
	case ground > before.Y:
		yaw := b.pose.Yaw
		b.pose = before
		b.pose.Yaw = yaw
		b.pose.Y = min(ground, before.Y+step)
	case ground < before.Y:
		b.pose.Y = max(ground, before.Y-2*step)
	}
}
