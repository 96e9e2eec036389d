package checks

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
)

// land is some blocks on a floor of stone: everything below y = 10.
type land map[grid.Pos]chunk.Block

func (l land) obstacles(low, high grid.Pos) (all []Obstacle) {
	for x := low.X; x <= high.X; x++ {
		for y := low.Y; y <= high.Y; y++ {
			for z := low.Z; z <= high.Z; z++ {
				pos := grid.Pos{X: x, Y: y, Z: z}
				b := l[pos]
				if pos.Y < 10 {
					b = chunk.Stone
				}
				if b.Solid() {
					all = append(all, Obstacle{pos, b.Boxes()})
				}
			}
		}
	}
	return all
}

func TestShapesStopBodies(t *testing.T) {
	at := grid.Pos{X: 2, Y: 10}
	for _, c := range []struct {
		name     string
		block    chunk.Block
		from, to motion.Pose
		blocked  bool
	}{
		{"onto a slab", chunk.StoneSlab, motion.Pose{X: 1.5, Y: 10, Z: .5}, motion.Pose{X: 2.2, Y: 10.5, Z: .5}, false},
		{"into a slab", chunk.StoneSlab, motion.Pose{X: 1.5, Y: 10, Z: .5}, motion.Pose{X: 2.2, Y: 10.3, Z: .5}, true},
		{"into an upper slab", chunk.StoneSlab + 1, motion.Pose{X: 1.5, Y: 10, Z: .5}, motion.Pose{X: 2.5, Y: 10, Z: .5}, true},
		{"onto the lower half of stairs", chunk.StoneStairs, motion.Pose{X: 1.5, Y: 10, Z: .5}, motion.Pose{X: 1.9, Y: 10.5, Z: .5}, false},
		{"onto the upper half of stairs", chunk.StoneStairs, motion.Pose{X: 1.9, Y: 10.5, Z: .5}, motion.Pose{X: 2.6, Y: 11, Z: .5}, false},
		{"into the upper half of stairs", chunk.StoneStairs, motion.Pose{X: 1.9, Y: 10.5, Z: .5}, motion.Pose{X: 2.6, Y: 10.5, Z: .5}, true},
		{"through an open door", chunk.Door + 4, motion.Pose{X: 1.5, Y: 10, Z: .5}, motion.Pose{X: 3.5, Y: 10, Z: .5}, false},
		{"through a door", chunk.Door, motion.Pose{X: 1.5, Y: 10, Z: .5}, motion.Pose{X: 3.5, Y: 10, Z: .5}, true},
		{"into a doorway", chunk.Door + 1, motion.Pose{X: 1.5, Y: 10, Z: .5}, motion.Pose{X: 2.4, Y: 10, Z: .5}, false},
		{"past a ladder", chunk.Ladder, motion.Pose{X: 1.5, Y: 10, Z: .5}, motion.Pose{X: 3.5, Y: 10, Z: .5}, false},
		{"through a fence", chunk.PlankFence, motion.Pose{X: 1.5, Y: 10, Z: .5}, motion.Pose{X: 3.5, Y: 10, Z: .5}, true},
		{"through an unknown block", 60000, motion.Pose{X: 1.5, Y: 10, Z: .5}, motion.Pose{X: 3.5, Y: 10, Z: .5}, true},
		{"out of a slab that was placed there", chunk.StoneSlab, motion.Pose{X: 2.5, Y: 10, Z: .5}, motion.Pose{X: 2.5, Y: 10.4, Z: .5}, false},
	} {
		l := land{at: c.block}
		if got := Land(l.obstacles).Blocked(c.from, c.to); got != c.blocked {
			t.Errorf("%s: blocked %v, want %v", c.name, got, c.blocked)
		}
	}
}

func TestSightOverSlab(t *testing.T) {
	l := land{{X: 2, Y: 10}: chunk.StoneSlab, {X: 2, Y: 11}: chunk.Stone}
	over, through := motion.Pose{X: .5, Y: 10.7, Z: .5}, motion.Pose{X: .5, Y: 10.3, Z: .5}
	feet := motion.Pose{X: 4.5, Y: 10, Z: .5}
	low := func(from motion.Pose) bool {
		return Land(l.obstacles).clear([3]float64{from.X, from.Y, from.Z}, [3]float64{feet.X, from.Y, feet.Z})
	}
	if !low(over) || low(through) {
		t.Errorf("between a slab and what is above it: %v; through the slab: %v", low(over), low(through))
	}
}

// The browser client's own walks among random shapes (web/test/shapes.test.ts) are allowed, and a body that walks
// through what stands in its way is not.
func TestClientsWalksAreAllowed(t *testing.T) {
	text, err := os.ReadFile("testdata/walks.json")
	if err != nil {
		t.Fatal(err)
	}
	var walks []struct {
		Blocks [][4]int32
		Moves  [][3]float64
	}
	if err := json.Unmarshal(text, &walks); err != nil {
		t.Fatal(err)
	}
	blocked := 0
	for i, walk := range walks {
		l := make(land)
		for _, b := range walk.Blocks {
			l[grid.Pos{X: b[0], Y: b[1], Z: b[2]}] = chunk.Block(b[3])
		}
		at := func(move [3]float64) motion.Pose { return motion.Pose{X: move[0], Y: move[1], Z: move[2]} }
		for j := 1; j < len(walk.Moves); j++ {
			before, after := at(walk.Moves[j-1]), at(walk.Moves[j])
			if Land(l.obstacles).Blocked(before, after) {
				t.Errorf("walk %d, move %d: from %+v to %+v is refused", i, j, before, after)
			}
			after.Y -= .5 // through what it stands on
			if Land(l.obstacles).Blocked(before, after) {
				blocked++
			}
		}
	}
	if blocked < 100 {
		t.Errorf("%d moves into the ground are refused", blocked)
	}
}
