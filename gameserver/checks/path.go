package checks

import (
	"math"
	"slices"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
)

// Land returns the parts of a block's space that stop a player's body, as far as known.
type Land func(pos grid.Pos) []chunk.Box

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
	start := bodyAt(from)
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

// body is the space of a body, less the leeway.
type body struct{ low, high [3]float64 }

func bodyAt(feet [3]float64) body {
	const half, height = bodyWidth/2 - leeway, bodyHeight - leeway
	return body{
		low:  [3]float64{feet[0] - half, feet[1] + leeway, feet[2] - half},
		high: [3]float64{feet[0] + half, feet[1] + height, feet[2] + half},
	}
}

// reaches reports whether the body reaches into one of the boxes of a block.
func (b body) reaches(pos grid.Pos, boxes []chunk.Box) bool {
	at := [3]float64{float64(pos.X), float64(pos.Y), float64(pos.Z)}
	return slices.ContainsFunc(boxes, func(box chunk.Box) bool {
		for axis, from := range at {
			if b.high[axis] < from+float64(box.Low[axis])/16 || b.low[axis] >= from+float64(box.High[axis])/16 {
				return false
			}
		}
		return true
	})
}

// anyBlock reports whether a condition holds for one of the blocks that the body is in.
func (b body) anyBlock(is func(pos grid.Pos) bool) bool {
	for x := floor(b.low[0]); x <= floor(b.high[0]); x++ {
		for z := floor(b.low[2]); z <= floor(b.high[2]); z++ {
			for y := floor(b.low[1]); y <= floor(b.high[1]); y++ {
				if is(grid.Pos{X: x, Y: y, Z: z}) {
					return true
				}
			}
		}
	}
	return false
}

// isAbove reports whether a block is above the body.
func (b body) isAbove(pos grid.Pos) bool {
	return pos.Y > floor(b.high[1]) && pos.X >= floor(b.low[0]) && pos.X <= floor(b.high[0]) && pos.Z >= floor(b.low[2]) && pos.Z <= floor(b.high[2])
}

// collides reports whether a body with its feet there is inside a solid block that it was not inside of at the start. A buried
// player may rise through what is above: that is how clients get out.
func (land Land) collides(start body, feet [3]float64) bool {
	b := bodyAt(feet)
	return b.anyBlock(func(pos grid.Pos) bool {
		boxes := land(pos)
		return b.reaches(pos, boxes) && !start.reaches(pos, boxes) && (!start.isAbove(pos) || !land.buries(start))
	})
}

// Free reports whether a body with its feet there is in no solid block.
func (land Land) Free(feet [3]float64) bool { return !land.buries(bodyAt(feet)) }

// buries reports whether a body is inside solid blocks.
func (land Land) buries(b body) bool {
	return b.anyBlock(func(pos grid.Pos) bool { return b.reaches(pos, land(pos)) })
}
