package checks

import (
	"math"
	"slices"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
)

// Obstacle is a block that stops a player's body, and the parts of its space that do.
type Obstacle struct {
	At    grid.Pos
	Boxes []chunk.Box
}

// Land returns the obstacles among the blocks from low to high, both included, as far as known. The result is valid
// until the next call.
type Land func(low, high grid.Pos) []Obstacle

const (
	// stepLength is the distance of the points checked along a path, in blocks, and the longest step of which only the
	// end is checked: the body is wider.
	stepLength = .4
	// leeway is how deep a body may reach into a block without being inside, for clients that round, and for corners
	// cut by a straight line between two moves.
	leeway = .1
)

// The axes, as bits, and the paths from one place to another: along all axes at once, or one after the other. A client
// reports its place now and then; in between the player may have climbed first and walked on then.
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

// Blocked reports whether a body cannot get from one place to the other without passing through solid blocks. Blocks
// that it is inside of already do not count: a buried player may get out.
func (land Land) Blocked(before, after motion.Pose) bool {
	from, to := [3]float64{before.X, before.Y, before.Z}, [3]float64{after.X, after.Y, after.Z}
	start := bodyAt(from, leeway)
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
func (land Land) passes(start body, from, to [3]float64, path []int) bool {
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

// body is the space of a body, less a margin at each side.
type body struct{ low, high [3]float64 }

func bodyAt(feet [3]float64, margin float64) body {
	half := bodyWidth/2 - margin
	return body{
		low:  [3]float64{feet[0] - half, feet[1] + margin, feet[2] - half},
		high: [3]float64{feet[0] + half, feet[1] + bodyHeight - margin, feet[2] + half},
	}
}

// reaches reports whether the body reaches into an obstacle.
func (b body) reaches(o Obstacle) bool {
	at := [3]float64{float64(o.At.X), float64(o.At.Y), float64(o.At.Z)}
	return slices.ContainsFunc(o.Boxes, func(box chunk.Box) bool {
		for axis, from := range at {
			if b.high[axis] < from+float64(box.Low[axis])/16 || b.low[axis] >= from+float64(box.High[axis])/16 {
				return false
			}
		}
		return true
	})
}

// isBelow reports whether the body is below a block.
func (b body) isBelow(pos grid.Pos) bool {
	return pos.Y > floor(b.high[1]) && pos.X >= floor(b.low[0]) && pos.X <= floor(b.high[0]) && pos.Z >= floor(b.low[2]) && pos.Z <= floor(b.high[2])
}

// around returns the obstacles in the blocks that a body is in.
func (land Land) around(b body) []Obstacle { return land(blockOf(b.low), blockOf(b.high)) }

// collides reports whether a body with its feet there is inside a solid block that it was not inside of at the start. A
// buried player may rise through what is above: that is how clients get out.
func (land Land) collides(start body, feet [3]float64) bool {
	b, above := bodyAt(feet, leeway), false
	for _, o := range land.around(b) {
		if !b.reaches(o) || start.reaches(o) {
			continue
		}
		if !start.isBelow(o.At) {
			return true
		}
		above = true
	}
	return above && !land.buries(start)
}

// Free reports whether a body with its feet there is in no solid block.
func (land Land) Free(feet [3]float64) bool { return !land.buries(bodyAt(feet, leeway)) }

// buries reports whether a body is inside solid blocks.
func (land Land) buries(b body) bool { return slices.ContainsFunc(land.around(b), b.reaches) }
