package gameserver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire"
)

// Of somebody who sees nobody the region hears four times a second, where he has come to rest at last, and before he
// builds; once somebody comes into sight, each tick. So it does of one who would not see those who see him well.
func TestWhoIsAloneIsToldOfSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.encoding = wire.EncodingCBOR
		ann := r.join("ann", aloneView)
		x := .5
		walk := func() (told int) {
			r.lands.mu.Lock()
			before := r.lands.mu.moved
			r.lands.mu.Unlock()
			for i := range 40 {
				if x += .2; i%20 >= 10 {
					x -= .4
				}
				ann.goTo(x, 25, .5)
				pass(region.TickEvery)
			}
			r.lands.mu.Lock()
			defer r.lands.mu.Unlock()
			return r.lands.mu.moved - before
		}
		pass(time.Second)
		if told := walk(); told > 5 {
			t.Errorf("alone: told %d times in 2 s", told)
		}
		there := func() float64 { return r.lands.bodies(grid.ChunkPos{})[0].Pose.X }
		pass(calmPause)
		if at := there(); at != x {
			t.Errorf("the region has her at %v, she rests at %v", at, x)
		}
		ann.goTo(x+.2, 25, .5)
		ann.put(grid.Pos{X: 3, Y: 25, Z: 3}, chunk.Brick)
		pass(2 * feedPause)
		if at := there(); at != x+.2 {
			t.Errorf("the region has her at %v when she builds, she stands at %v", at, x+.2)
		}
		ann.send(wire.View{View: aloneView - 1})
		pass(time.Second)
		if told := walk(); told < 38 {
			t.Errorf("with a short view: told %d times in 2 s", told)
		}
		ann.send(wire.View{View: aloneView})
		pass(time.Second)
		if told := walk(); told > 5 {
			t.Errorf("alone again: told %d times in 2 s", told)
		}
		r.join("bob", 1)
		pass(time.Second)
		if told := walk(); told < 38 {
			t.Errorf("seen by bob: told %d times in 2 s", told)
		}
	})
}
