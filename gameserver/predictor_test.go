package gameserver

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/mirror"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// A straight walk costs a few updates of the region; that the player has stopped is sent within 175 ms; a correction at
// once.
func TestRegionGetsPredictions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		ann := r.join("ann", 1)
		r.join("bob", 1)
		x := .5
		walk := func(moves int) (updates int) {
			before := r.lands.movesReceived()
			for range moves {
				x += .2
				ann.goTo(x, 25, .5)
				pass(region.TickEvery)
			}
			return r.lands.movesReceived() - before
		}
		there := func() nodemsg.Body { return r.lands.bodies(grid.ChunkPos{})[0] }
		if guestID("ann") != there().Player {
			there = func() nodemsg.Body { return r.lands.bodies(grid.ChunkPos{})[1] }
		}
		if updates := walk(60); updates < 3 || updates > 8 {
			t.Errorf("straight on: %d updates in 3 s", updates)
		}
		if !there().Velocity.Moving() {
			t.Error("she is not predicted")
		}
		pass(predictionSilence + frameLate + mirror.SendPause - region.TickEvery)
		if b := there(); b.Pose.X != x || b.Velocity.Moving() {
			t.Errorf("she rests at %v, and the region has %+v", x, b)
		}
		if updates := walk(10); updates > 3 {
			t.Errorf("she goes on: %d updates", updates)
		}
		ann.goTo(x+1e5, 25, .5)
		pass(2 * mirror.SendPause)
		if b := there(); b.Pose.X != x || b.Velocity.Moving() {
			t.Errorf("she is corrected to %v, and the region has %+v", x, b)
		}
		walk(10)
		r.lands.cut()
		pass(2 * mirror.FirstRetry)
		if b := there(); b.Pose.X != x || b.Velocity.Moving() {
			t.Errorf("over a new link the region has %+v, she rests at %v", b, x)
		}
		r.lands.down(true)
		pass(2 * predictionSilence)
		walk(5)
		pass(time.Second)
		r.lands.down(false)
		pass(10 * time.Second)
		if b := there(); b.Pose.X != x || b.Velocity.Moving() {
			t.Errorf("she stopped while there was no link: the region has %+v, she rests at %v", b, x)
		}
	})
}

// Players of other gateways are extrapolated as these predict: in both encodings, for the check of building into
// bodies, and for as long as allowed.
func TestMirrorExtrapolates(t *testing.T) {
	for _, encoding := range []string{sessionmsg.EncodingJSON, sessionmsg.EncodingCBOR} {
		synctest.Test(t, func(t *testing.T) {
			r := newHarness(t)
			r.encoding = encoding
			ann := r.join("ann", 1)
			eve := nodemsg.Body{Player: player.ID{9}, Name: "eve", Pose: motion.Pose{X: 2, Y: 25, Z: 4.5}}
			at := grid.ChunkPos{}
			r.lands.sendFrame(at, nodemsg.FromRegion{Tick: 1000, Chunks: []nodemsg.ChunkDelta{{Chunk: at, Enter: []nodemsg.Body{eve}}}})
			pass(time.Second)
			ticks := func() uint64 {
				r.g.interest.mu.Lock()
				defer r.g.interest.mu.Unlock()
				return r.g.interest.ix.Tick()
			}
			seen := func() (x float64) {
				ann.look(func() { x = ann.mu.avatars[eve.Player.String()].Pose.X })
				return x
			}
			if ann.cbor {
				seen = func() (x float64) {
					ann.look(func() {
						ann.view.scene.Each(float64(ticks()-ann.view.scene.Now()), func(_ uint32, id player.ID, p motion.Pose) {
							if id == eve.Player {
								x = p.X
							}
						})
					})
					return x
				}
			}
			r.lands.sendFrame(at, nodemsg.FromRegion{Tick: 1001, Chunks: []nodemsg.ChunkDelta{{Chunk: at, Moves: nodemsg.Moves{
				{Player: eve.Player, Pose: eve.Pose, Velocity: motion.VelocityOf(.2, 0, 0)},
			}}}})
			pass(10 * time.Millisecond)
			updates := time.Now()
			goes := func() float64 {
				return eve.Pose.X + .2*min(float64(time.Since(updates)/region.TickEvery), motion.ExtrapolationTicks)
			}
			for range 20 {
				pass(region.TickEvery)
				if x := seen(); math.Abs(x-goes()) > .45 {
					t.Errorf("%v after the update she is seen at %v, want %v", time.Since(updates), x, goes())
				}
			}
			into := ann.put(grid.Pos{X: int32(goes()), Y: 25, Z: 4}, chunk.Brick)
			behind := ann.put(grid.Pos{X: 2, Y: 25, Z: 4}, chunk.Brick)
			pass(mirror.SendPause)
			if why := ann.answer(into).Error; why != wire.RefusedInsidePlayer {
				t.Errorf("a block where she is: %q", why)
			}
			if why := ann.answer(behind).Error; why != "" {
				t.Errorf("a block where she was: %q", why)
			}
			pass(2 * time.Second)
			if x := seen(); math.Abs(x-2-.2*motion.ExtrapolationTicks) > .05 {
				t.Errorf("no more updates are sent, and she stands at %v", x)
			}
		})
	}
}

// In a crowd there are no predictions, and each move is sent.
func TestCrowdIsNotPredicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		ann := r.join("ann", 1)
		at := grid.ChunkPos{}
		var crowd []nodemsg.Body
		for i := range predictionCrowd {
			crowd = append(crowd, nodemsg.Body{Player: player.ID{byte(i + 1)}, Name: "x", Pose: motion.Pose{X: 9, Y: 25, Z: 9}})
		}
		r.lands.sendFrame(at, nodemsg.FromRegion{Tick: 1000, Chunks: []nodemsg.ChunkDelta{{Chunk: at, Enter: crowd}}})
		pass(time.Second)
		before := r.lands.movesReceived()
		for i := range 40 {
			ann.goTo(.7+.2*float64(i), 25, .5)
			pass(region.TickEvery)
		}
		if updates := r.lands.movesReceived() - before; updates < 39 {
			t.Errorf("%d updates of 40 moves", updates)
		}
	})
}

// As in the predictor.
const predictionSilence, predictionCrowd = 3 * region.TickEvery, 16
