package checks

import (
	"math"
	"slices"

	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
)

// lookStep is the distance, in blocks, of the points checked along a line of sight.
const lookStep = .1

// aims are the heights above the other player's feet, in blocks, at one of which they must be visible.
var aims = [...]float64{player.EyeHeight, bodyHeight / 2, .2}

// Visible reports whether some part of a body is visible: no solid block stands in between.
func (land Land) Visible(eyes, feet motion.Pose) bool {
	for _, height := range aims {
		if land.clear([3]float64{eyes.X, eyes.Y, eyes.Z}, [3]float64{feet.X, feet.Y + height, feet.Z}) {
			return true
		}
	}
	return false
}

// clear reports whether a line is free of solid blocks. Those at its ends do not count: eyes and bodies may be inside
// them.
func (land Land) clear(from, to [3]float64) bool {
	pointAt := func(part float64) (at [3]float64) {
		for axis := range at {
			at[axis] = from[axis] + part*(to[axis]-from[axis])
		}
		return at
	}
	steps := math.Ceil(distanceOf(from, to) / lookStep)
	previous, last := blockOf(from), blockOf(to)
	var here []Obstacle // at previous
	for i := 1.; i < steps; i++ {
		at := pointAt(i / steps)
		pos := blockOf(at)
		if pos == last {
			continue
		}
		if pos != previous {
			previous, here = pos, land(pos, pos)
		}
		if slices.ContainsFunc(here, body{at, at}.reaches) {
			return false
		}
	}
	return true
}
