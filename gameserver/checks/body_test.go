package checks

import (
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
)

func TestBodyReaches(t *testing.T) {
	stand, half := motion.Pose{X: .5, Y: 10, Z: .5}, motion.Pose{X: .2, Y: 10.5, Z: .2}
	for _, c := range []struct {
		name string
		pose motion.Pose
		pos  grid.Pos
		b    chunk.Block
		want bool
	}{
		{"feet", stand, grid.Pos{Y: 10}, chunk.Brick, true},
		{"head", stand, grid.Pos{Y: 11}, chunk.Brick, true},
		{"ground", stand, grid.Pos{Y: 9}, chunk.Brick, false},
		{"above", stand, grid.Pos{Y: 12}, chunk.Brick, false},
		{"beside", stand, grid.Pos{X: 1, Y: 10}, chunk.Brick, false},
		{"flush against", motion.Pose{X: .7, Y: 10, Z: .5}, grid.Pos{X: 1, Y: 10}, chunk.Brick, false},
		{"a hair inside", motion.Pose{X: .705, Y: 10, Z: .5}, grid.Pos{X: 1, Y: 10}, chunk.Brick, false},
		{"reaching over", motion.Pose{X: .75, Y: 10, Z: .5}, grid.Pos{X: 1, Y: 10}, chunk.Brick, true},
		{"corner", motion.Pose{X: .75, Y: 10, Z: .75}, grid.Pos{X: 1, Y: 10, Z: 1}, chunk.Brick, true},
		{"crouching in air", motion.Pose{X: .5, Y: 10.3, Z: .5}, grid.Pos{Y: 12}, chunk.Brick, true},
		{"negative", motion.Pose{X: -.75, Y: 10, Z: -.5}, grid.Pos{X: -2, Y: 10, Z: -1}, chunk.Brick, true},
		{"water", stand, grid.Pos{Y: 10}, chunk.Water, false},
		{"on a slab", half, grid.Pos{Y: 10}, chunk.StoneSlab, false},
		{"into an upper slab", half, grid.Pos{Y: 10}, chunk.StoneSlab + 1, true},
		{"on stairs", half, grid.Pos{Y: 10}, chunk.StoneStairs, false},
		{"into the high side of stairs", half, grid.Pos{Y: 10}, chunk.StoneStairs + 1, true},
	} {
		if got := BodyReaches(c.pose, c.pos, c.b); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestDistanceToBody(t *testing.T) {
	feet := motion.Pose{X: 10, Y: 20, Z: -5}
	for _, c := range []struct {
		eyes motion.Pose
		want float64
	}{
		{motion.Pose{X: 10, Y: 21, Z: -5}, 0},
		{motion.Pose{X: 15.3, Y: 21, Z: -5}, 5},
		{motion.Pose{X: 10, Y: 24.8, Z: -5}, 3},
		{motion.Pose{X: 6.7, Y: 16, Z: -5}, 5},
		{motion.Pose{X: 10, Y: 20 + player.EyeHeight, Z: -9.3}, 4},
	} {
		if got := DistanceToBody(c.eyes, feet); got < c.want-1e-9 || got > c.want+1e-9 {
			t.Errorf("from %+v: %v, want %v", c.eyes, got, c.want)
		}
	}
}
