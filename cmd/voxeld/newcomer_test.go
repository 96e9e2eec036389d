package main

import (
	"fmt"
	"math"
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
)

// A player builds 60 blocks from the spawn. Newcomers at either node start beside that, on the ground, and look at it,
// until an administrator sets the spawn.
func TestNewcomersStartBesideBuildings(t *testing.T) {
	t.Parallel()
	all := cluster(t, 2)
	ada := join(t, all[0].Game, "ada", 3)
	spawn := ada.Welcome.Pose
	x, z := dryPlace(ada, spawn.X, spawn.Z, 60)
	fly([]*tester{ada}, nil, []float64{x}, []float64{z}, ground)
	foot := ada.Welcome.Pose.Block()
	var wall []grid.Pos
	for dx := int32(2); dx < 6; dx++ {
		for y := range int32(4) {
			wall = append(wall, grid.Pos{X: foot.X + dx, Y: foot.Y + 1 + y, Z: foot.Z})
		}
	}
	for _, at := range wall {
		ada.putPatiently(at, chunk.Brick)
	}
	newcomers := 0
	for _, d := range all {
		var eve *tester
		var dx, dz float64
		eventually(t, "newcomers start beside the wall", patience, func() bool { // a choice stands for some seconds
			newcomers++ // whose name is known starts where they were
			eve = join(t, d.Game, fmt.Sprint("eve", newcomers), 2)
			dx, dz = float64(foot.X)+4-eve.Welcome.Pose.X, float64(foot.Z)+.5-eve.Welcome.Pose.Z
			if far := math.Hypot(dx, dz); 3 < far && far < 30 {
				return true
			}
			eve.leave()
			return false
		})
		pose := eve.Welcome.Pose
		if turn := math.Remainder(float64(pose.Yaw)-math.Atan2(-dx, dz), 2*math.Pi); math.Abs(turn) > .3 {
			t.Errorf("%s looks %.1f rad away from the wall", eve.Welcome.Name, turn)
		}
		at := pose.Block()
		for dy, solid := range map[int32]bool{-1: true, 0: false, 1: false} {
			pos := grid.Pos{X: at.X, Y: at.Y + dy, Z: at.Z}
			eve.until("the ground", func() bool { _, ok := eve.at(pos); return ok })
			if b, _ := eve.at(pos); b.Solid() != solid {
				t.Errorf("%s stands at %v, and the block at %v is %v", eve.Welcome.Name, at, pos, b.Name())
			}
		}
		eve.leave()
	}
	all[0].operate("setspawn", "3", "90", "4")
	eventually(t, "newcomers start at the spawn that was set", patience, func() bool {
		newcomers++
		guest := join(t, all[0].Game, fmt.Sprint("eve", newcomers), 1)
		defer guest.leave()
		return guest.Welcome.Pose.Block() == grid.Pos{X: 3, Y: 90, Z: 4}
	})
}

// dryPlace returns a place on dry, natural ground so far from another.
func dryPlace(p *tester, x, z, far float64) (atX, atZ float64) {
	for angle := 0.; angle < 2*math.Pi; angle += .2 {
		atX, atZ = math.Floor(x+far*math.Cos(angle))+.5, math.Floor(z+far*math.Sin(angle))+.5
		y := ground(p, atX, atZ)
		if b, _ := p.at(grid.Pos{X: int32(math.Floor(atX)), Y: int32(y) - 1, Z: int32(math.Floor(atZ))}); b == chunk.Grass {
			return atX, atZ
		}
	}
	p.t.Fatal("there is no dry place")
	return 0, 0
}
