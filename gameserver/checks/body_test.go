package checks

import (
	"testing"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
)

func TestBodyReaches(t *testing.T) {
	stand := motion.Pose{X: .5, Y: 10, Z: .5}
	for _, c := range []struct {
		name string
		pose motion.Pose
		pos  grid.Pos
		want bool
	}{
		{"feet", stand, grid.Pos{Y: 10}, true},
		{"head", stand, grid.Pos{Y: 11}, true},
		{"ground", stand, grid.Pos{Y: 9}, false},
		{"above", stand, grid.Pos{Y: 12}, false},
		{"beside", stand, grid.Pos{X: 1, Y: 10}, false},
		{"flush against", motion.Pose{X: .7, Y: 10, Z: .5}, grid.Pos{X: 1, Y: 10}, false},
		{"a hair inside", motion.Pose{X: .705, Y: 10, Z: .5}, grid.Pos{X: 1, Y: 10}, false},
		{"reaching over", motion.Pose{X: .75, Y: 10, Z: .5}, grid.Pos{X: 1, Y: 10}, true},
		{"corner", motion.Pose{X: .75, Y: 10, Z: .75}, grid.Pos{X: 1, Y: 10, Z: 1}, true},
		{"crouching in air", motion.Pose{X: .5, Y: 10.3, Z: .5}, grid.Pos{Y: 12}, true},
		{"negative", motion.Pose{X: -.75, Y: 10, Z: -.5}, grid.Pos{X: -2, Y: 10, Z: -1}, true},
	} {
		if got := BodyReaches(c.pose, c.pos); got != c.want {
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
