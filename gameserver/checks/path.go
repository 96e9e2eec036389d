package checks

import (
	"math"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
)

// Land reports whether a block stops a player's body, as far as known.
type Land func(pos grid.Pos) (solid bool)

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

// Blocked reports whether a body cannot get from one place to the other without passing through solid blocks. Blocks that it is
// inside of already do not count: a buried player may get out.
func (land Land) Blocked(before, after motion.Pose) bool {
	from, to := [3]float64{before.X, before.Y, before.Z}, [3]float64{after.X, after.Y, after.Z}
	start := insideOf(from)
	if land.collides(start, to) {
		return true
	}
	if distanceOf(from, to) <= stepLength {
		return false
	}
	for _, path := range paths {
		if land.passes(start, from, to, path) {
			return false
		}
	}
	return true
}

// passes reports whether one path is free.
func (land Land) passes(start box, from, to [3]float64, path []int) bool {
	at := from
	for _, axes := range path {
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
			if land.collides(start, place) {
				return false
			}
		}
		at = leg
	}
	return true
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

// collides reports whether a body with its feet there is inside a solid block that it was not inside of at the start. A buried
// player may rise through what is above: that is how clients get out.
func (land Land) collides(start box, feet [3]float64) bool {
	b := insideOf(feet)
	for x := b.low.X; x <= b.high.X; x++ {
		for z := b.low.Z; z <= b.high.Z; z++ {
			beside := x < start.low.X || x > start.high.X || z < start.low.Z || z > start.high.Z
			for y := b.low.Y; y <= b.high.Y; y++ {
				pos := grid.Pos{X: x, Y: y, Z: z}
				switch {
				case !beside && y >= start.low.Y && y <= start.high.Y:
				case !land(pos):
				case !beside && y > start.high.Y && land.buried(start):
				default:
					return true
				}
			}
		}
	}
	return false
}

// buried reports whether a body is inside solid blocks.
func (land Land) buried(b box) bool {
	for x := b.low.X; x <= b.high.X; x++ {
		for z := b.low.Z; z <= b.high.Z; z++ {
			for y := b.low.Y; y <= b.high.Y; y++ {
				if land(grid.Pos{X: x, Y: y, Z: z}) {
					return true
				}
			}
		}
	}
	return false
}
