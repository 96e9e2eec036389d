package gameserver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/interest"
	"github.com/voxelpopuli/voxeld/gameserver/mirror"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// For a player who sees nobody and turns all the time, the region is updated a few times a second, when they have
// stopped, and before they build; once somebody comes into sight, in each tick. It is also updated in each tick for a
// player who cannot see those who see them well.
func TestLonePlayerIsUpdatedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		r.encoding = sessionmsg.EncodingCBOR
		ann := r.join("ann", interest.AloneView)
		x, z := .5, .5
		walk := func() (updates int) {
			before := r.lands.movesReceived()
			for i := range 40 {
				if i%2 == 0 {
					x += .3 - .6*float64(i/2%2)
				} else {
					z += .3 - .6*float64(i/2%2)
				}
				ann.goTo(x, 25, z)
				pass(region.TickEvery)
			}
			return r.lands.movesReceived() - before
		}
		pass(time.Second)
		if updates := walk(); updates > 10 {
			t.Errorf("alone: %d updates in 2 s", updates)
		}
		there := func() nodemsg.Body { return r.lands.bodies(grid.ChunkPos{})[0] }
		pass(3 * predictionSilence)
		if b := there(); b.Pose.X != x || b.Pose.Z != z || b.Velocity.Moving() {
			t.Errorf("the region has her at %v, she rests at %v, %v", b, x, z)
		}
		ann.goTo(x+.2, 25, z)
		ann.put(grid.Pos{X: 3, Y: 25, Z: 3}, chunk.Brick)
		pass(2 * mirror.SendPause)
		if at := there().Pose.X; at != x+.2 {
			t.Errorf("the region has her at %v when she builds, she stands at %v", at, x+.2)
		}
		pass(viewKept)
		ann.send(sessionmsg.View{View: interest.AloneView - 1})
		pass(time.Second)
		if updates := walk(); updates < 38 {
			t.Errorf("with a short view: %d updates in 2 s", updates)
		}
		ann.send(sessionmsg.View{View: interest.AloneView})
		pass(time.Second)
		if updates := walk(); updates > 10 {
			t.Errorf("alone again: %d updates in 2 s", updates)
		}
		r.join("bob", 1)
		pass(time.Second)
		if updates := walk(); updates < 38 {
			t.Errorf("seen by bob: %d updates in 2 s", updates)
		}
	})
}
