package gameserver

import (
	"math"

	"github.com/voxelpopuli/voxeld/gameserver/mirror"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file keeps sessions out of walls.

// insideBlock is the reason of a correction: the path leads into solid blocks. Clients receive it (docs/protocol.md): never
// change it.
const insideBlock = "inside_block"

const (
	// stepLength is the distance of the points checked along a path, in blocks, and the longest step of which only the end is
	// checked: the body is wider.
	stepLength = .4
	// leeway is how deep a body may reach into a block without being inside, for clients that round, and for corners cut by a
	// straight line between two moves.
	leeway = .1
)

// The axes, as bits, and the paths from one place to another: along all axes at once, or one after the other. A client reports
// its place now and then; in between the player may have climbed first and walked on then.
const (
	alongX = 1 << iota
	alongY
	alongZ
)

var paths = [...][]int{
	{alongX | alongY | alongZ},
	{alongY, alongX | alongZ},
	{alongX | alongZ, alongY},
	{alongY, alongX, alongZ},
	{alongY, alongZ, alongX},
	{alongX, alongZ, alongY},
	{alongZ, alongX, alongY},
	{alongX, alongY, alongZ},
	{alongZ, alongY, alongX},
}

// blocked reports whether a body cannot get from one place to the other without passing through solid blocks. Blocks that it is
// inside of already do not count: a buried player may get out. Nor does land that is not loaded here.
func (s *session) blocked(before, after motion.Pose) bool {
	from, to := [3]float64{before.X, before.Y, before.Z}, [3]float64{after.X, after.Y, after.Z}
	start := insideOf(from)
	if s.collides(start, to) {
		return true
	}
	if distanceOf(from, to) <= stepLength {
		return false
	}
	for _, way := range paths {
		if s.passes(start, from, to, way) {
			return false
		}
	}
	return true
}

// passes reports whether one path is free.
func (s *session) passes(start box, from, to [3]float64, way []int) bool {
	at := from
	for _, axes := range way {
		leg := at
		for axis := range 3 {
			if axes&(1<<axis) != 0 {
				leg[axis] = to[axis]
			}
		}
		steps := math.Ceil(distanceOf(at, leg) / stepLength)
		for i := 1.; i <= steps; i++ {
			var place [3]float64
			for axis := range 3 {
				place[axis] = at[axis] + (leg[axis]-at[axis])*i/steps
			}
			if s.collides(start, place) {
				return false
			}
		}
		at = leg
	}
	return true
}

func distanceOf(a, b [3]float64) float64 {
	return math.Hypot(math.Hypot(a[0]-b[0], a[2]-b[2]), a[1]-b[1])
}

// box is the blocks that a body is inside of: from low to high, both included.
type box struct{ low, high grid.Pos }

func insideOf(feet [3]float64) box {
	const half, height = bodyWidth/2 - leeway, bodyHeight - leeway
	return box{
		low:  grid.Pos{X: floor(feet[0] - half), Y: floor(feet[1] + leeway), Z: floor(feet[2] - half)},
		high: grid.Pos{X: floor(feet[0] + half), Y: floor(feet[1] + height), Z: floor(feet[2] + half)},
	}
}

// floor returns the block coordinate; at the world's last edge the one before, so that counting beyond it ends.
func floor(v float64) int32 { return int32(min(math.Floor(v), math.MaxInt32-1)) }

// collides reports whether a body with its feet there is inside a solid block that it was not inside of at the start. A buried
// player may rise through what is above: that is how clients get out.
func (s *session) collides(start box, feet [3]float64) bool {
	b := insideOf(feet)
	for x := b.low.X; x <= b.high.X; x++ {
		for z := b.low.Z; z <= b.high.Z; z++ {
			beside := x < start.low.X || x > start.high.X || z < start.low.Z || z > start.high.Z
			for y := b.low.Y; y <= b.high.Y; y++ {
				pos := grid.Pos{X: x, Y: y, Z: z}
				switch {
				case !beside && y >= start.low.Y && y <= start.high.Y:
				case !s.solid(pos):
				case !beside && y > start.high.Y && s.buried(start):
				default:
					return true
				}
			}
		}
	}
	return false
}

// buried reports whether a body is inside solid blocks.
func (s *session) buried(b box) bool {
	for x := b.low.X; x <= b.high.X; x++ {
		for z := b.low.Z; z <= b.high.Z; z++ {
			for y := b.low.Y; y <= b.high.Y; y++ {
				if s.solid(grid.Pos{X: x, Y: y, Z: z}) {
					return true
				}
			}
		}
	}
	return false
}

// solid reports whether a block stops the player's body, as far as known here. One that the player has requested to break does
// not: the client need not wait for the answer.
func (s *session) solid(pos grid.Pos) bool {
	if pos.Y < 0 || pos.Y >= s.g.World.Height() {
		return false
	}
	sub := s.subs[pos.Chunk()]
	return sub != nil && sub.Stops(pos, s.body.Player)
}

// A player's body, in blocks. Clients have the same (web/src/player/body.ts).
const bodyWidth, bodyHeight = .6, 1.8

// bodyReaches reports whether a body reaches into the block. A tiny overlap is tolerated, so that a client that rounds may stand
// flush against a block that it places.
func bodyReaches(p motion.Pose, pos grid.Pos) bool {
	const half, height, hair = bodyWidth / 2, bodyHeight, .01
	x, y, z := float64(pos.X), float64(pos.Y), float64(pos.Z)
	return p.X+half-hair > x && p.X-half+hair < x+1 &&
		p.Z+half-hair > z && p.Z-half+hair < z+1 &&
		p.Y+height-hair > y && p.Y+hair < y+1
}

// occupied reports whether the body of another player than self in the chunk reaches into the block.
func occupied(sub *mirror.Subscription, at grid.ChunkPos, pos grid.Pos, self player.ID) bool {
	return sub.AnyOccupant(at, func(b *nodemsg.Body) bool { return b.Player != self && bodyReaches(b.Pose, pos) })
}
