package checks

import (
	"math"

	"github.com/voxelpopuli/voxeld/grid"
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

// clear reports whether a line is free of solid blocks. Those at its ends do not count: eyes and bodies may be inside them.
func (land Land) clear(from, to [3]float64) bool {
	blockAt := func(part float64) grid.Pos {
		return grid.Pos{
			X: floor(from[0] + part*(to[0]-from[0])), Y: floor(from[1] + part*(to[1]-from[1])), Z: floor(from[2] + part*(to[2]-from[2])),
		}
	}
	first, last := blockAt(0), blockAt(1)
	steps := math.Ceil(distanceOf(from, to) / lookStep)
	previous := first
	for i := 1.; i < steps; i++ {
		pos := blockAt(i / steps)
		if pos == previous || pos == last {
			continue
		}
		if previous = pos; land(pos) {
			return false
		}
	}
	return true
}
