package interest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// watched is an avatar alone in a cell, in the middle of chunk 0, 0, encoded in every tier when it is checked.
type watched struct {
	a    *avatar
	c    cell
	now  frameTime
	pose motion.Pose
	sent [tiers]int // records
}

func newWatched() *watched {
	w := &watched{a: &avatar{bucket: &bucket{}}, pose: motion.Pose{X: 12, Y: 64, Z: 12}}
	w.stand()
	w.a.cell = w.a.place.Cell()
	w.a.appear(0)
	w.c.add(w.a)
	return w
}

func (w *watched) stand() {
	w.a.place, w.a.fine = sessionmsg.PlaceOf(grid.ChunkPos{}, w.pose), finePosOf(grid.ChunkPos{}, w.pose)
	w.a.lastUpdate = w.now.frame
}

// move moves the avatar by a step, in blocks, and checks it.
func (w *watched) move(x, y float64) {
	w.pose.X, w.pose.Y = w.pose.X+x, w.pose.Y+y
	w.now.tick, w.now.frame = w.now.tick+1, w.now.frame+1
	w.stand()
	w.c.clear()
	w.c.encode(w.a.cell, allTiers, dueIn(w.now.frame), w.now)
	for g := range w.sent {
		if len(w.c.piece(lodTier(g))) > 0 {
			w.sent[g]++
		}
	}
}

// astray returns the error of the prediction of the tier's clients, in blocks.
func (w *watched) astray(tier lodTier) float64 {
	return float64(w.a.predictions[tier].deviation(&w.a.place, w.now.tick)) / sessionmsg.TickVelocityUnit
}

// A block up or down costs the coarser tiers one record, after which they predict an avatar that goes on as before
// correctly.
func TestStepIsSentOnce(t *testing.T) {
	const blocks = 4. / 20 // a tick
	for name, step := range map[string][][2]float64{
		"up":   {{0, blocks}, {0, blocks}, {0, blocks}, {0, blocks}, {0, blocks}},
		"down": {{blocks, -2 * blocks}, {blocks, -2 * blocks}, {blocks, -blocks}},
	} {
		for _, tier := range []lodTier{fair, loose} {
			t.Run(fmt.Sprint(name, " in ", tier), func(t *testing.T) {
				w := newWatched()
				for range 5 {
					w.move(blocks, 0)
				}
				before := w.sent[tier]
				for tick, s := range step {
					w.move(s[0], s[1])
					if deviation, most := w.astray(tier), float64(stepError)/sessionmsg.TickVelocityUnit; deviation > most {
						t.Errorf("in tick %d of the step clients are wrong by %.2f blocks, want at most %.2f", tick, deviation, most)
					}
				}
				for range 5 {
					w.move(blocks, 0)
				}
				if sent := w.sent[tier] - before; sent != 1 {
					t.Errorf("the step was sent in %d records, want 1", sent)
				}
				if deviation := w.astray(tier); deviation > .1 {
					t.Errorf("after the step clients are wrong by %.2f blocks, want at most .1", deviation)
				}
			})
		}
	}
}

// However an avatar steps up and down, the error in the coarser tiers stays within what ADR 11 states.
func TestStepsAreWithinBounds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		w := newWatched()
		floor, ahead := w.pose.Y, 1.
		for tick := range 60 {
			switch rng.IntN(12) {
			case 0:
				floor++
			case 1:
				floor--
			}
			if math.Abs(w.pose.X-12) > 3.5 { // and stay in the cell
				ahead = math.Copysign(1, 12-w.pose.X)
			}
			blocks := []float64{.1, .2, .2, .28}[rng.IntN(4)]
			if w.pose.Y < floor {
				w.move(0, min(blocks, floor-w.pose.Y))
			} else {
				w.move(ahead*blocks, -min(2*blocks, w.pose.Y-floor))
			}
			for _, tier := range []lodTier{fair, loose} {
				most := float64(tierRules[tier].error) / sessionmsg.TickVelocityUnit
				if w.a.steps() {
					most = float64(stepError) / sessionmsg.TickVelocityUnit
				}
				if deviation := w.astray(tier); deviation > most {
					t.Fatalf("tick %d: at %.2f, going to %.2f, clients of tier %d are wrong by %.2f blocks, want at most %.2f",
						tick, w.pose.Y, floor, tier, deviation, most)
				}
			}
		}
	}
}

// A walker who turns by a right angle, and looks there, costs one update, with the right velocity.
func TestSpeedAfterTurn(t *testing.T) {
	const blocks = 4. / 20 // a tick
	w := newWatched()
	for range 6 {
		w.move(blocks, 0)
	}
	before := w.sent[near]
	w.pose.Yaw = -math.Pi / 2
	for tick := range 10 {
		w.pose.Z += blocks
		w.move(0, 0)
		if sent := w.sent[near] - before; sent != 1 {
			t.Errorf("tick %d: the turn was sent in %d records, want 1", tick, sent)
		}
		if deviation := w.astray(near); deviation > .1 {
			t.Errorf("tick %d: clients are wrong by %.2f blocks, want at most .1", tick, deviation)
		}
	}
}

// A walker whose moves are held up, so that several of them come at once, is not taken for several times as fast; nor
// is one who was extrapolated too far.
func TestSpeedAfterPause(t *testing.T) {
	const blocks = 4. / 20 // a tick
	for name, c := range map[string]struct {
		steps []float64 // in blocks/20 a tick: along x
		aside float64   // the last step's, along z
		want  float64
	}{
		"back after a pause":      {[]float64{1, 1, 1, 1, 1, 1, 0, 0, -3}, 0, -1},
		"on after a pause":        {[]float64{1, 1, 1, 1, 1, 1, 0, 0, 4}, 0, 1},
		"aside after a pause":     {[]float64{1, 1, 1, 1, 1, 1, 0, 0, 0}, 3, 0},
		"back after a prediction": {[]float64{1, 1, 1, 1, 1, 1, 1, 1, -4}, 0, -1},
		"faster after a rest":     {[]float64{0, 0, 0, 0, 0, 0, 0, 0, 2}, 0, 2},
		"faster after a nudge":    {[]float64{0, 0, 0, 0, 0, 0, 0, -.1, 2}, 0, 2},
	} {
		w := newWatched()
		for _, step := range c.steps[:len(c.steps)-1] {
			w.move(step*blocks, 0)
		}
		w.pose.Z += c.aside * blocks
		w.move(c.steps[len(c.steps)-1]*blocks, 0)
		pred := &w.a.predictions[near]
		x, z := float64(pred.VelocityX)/sessionmsg.TickVelocityUnit/blocks, float64(pred.VelocityZ)/sessionmsg.TickVelocityUnit/blocks
		if math.Abs(x-c.want) > .1 || math.Abs(z-min(c.aside, 1)) > .1 {
			t.Errorf("%s: clients have a speed of %.2f, %.2f steps a tick, want %.2f, %.2f", name, x, z, c.want, min(c.aside, 1))
		}
	}
}

// An avatar that was sent in the middle of a jump is shown neither in the sky nor under the ground until the next
// check.
func TestJumpIsNotPrecededInDistance(t *testing.T) {
	every := int(tierRules[distant].every)
	jump := []float64{.42, .33, .25, .17, .08, -.08, -.17, -.25, -.33, -.42}
	for at := range jump {
		w := newWatched()
		for range 2*every - 1 - at { // so that the jump is checked in its tick at
			w.move(0, 0)
		}
		for _, y := range slices.Concat(jump, make([]float64, every-len(jump))) {
			w.move(0, y)
			if deviation := w.astray(distant); deviation > 1.3 { // as high as the jump
				t.Fatalf("looked at in tick %d of the jump, clients are wrong by %.1f blocks, want at most 1.3", at, deviation)
			}
		}
	}
}

// Nor is it if, in the middle of its jump, a client that had it in an exact tier gets it in the tier distant.
func TestJumpGoesOutOfSight(t *testing.T) {
	for at := 1; at < 5; at++ {
		w := newWatched()
		w.move(0, 0)
		for range at {
			w.move(0, .42)
		}
		w.a.valid = only(exact)
		if !w.a.shift(exact, distant) {
			t.Errorf("in tick %d of the jump nothing was sent when the tier changed", at)
		}
		jumped := float64(at) * .42
		for after := range tierRules[distant].every {
			if y := float64(w.a.predictions[distant].Height(w.now.tick+after)) / sessionmsg.TickVelocityUnit; y > 64-motion.MinY+jumped+.1 {
				t.Fatalf("%d ticks after the update at height %.2f, the client has the player at %.2f", after, 64+jumped, y+motion.MinY)
			}
		}
	}
}

// A long, drifting fall is shown to clients that are updated once a second, although they extrapolate for two at most.
func TestLongFallInDistance(t *testing.T) {
	w := newWatched()
	w.pose.X, w.pose.Y = 8.5, 200
	w.stand()
	w.a.appear(0)
	for tick := range 100 {
		w.move(.07, -.8)
		if deviation := w.astray(distant); tick > 40 && deviation > 1 {
			t.Fatalf("after %d ticks clients are wrong by %.1f blocks, want at most 1", tick, deviation)
		}
	}
}

// A walker who is a tick late is tolerated for some checks and then sent.
func TestSlipIsBorneForSomeLooks(t *testing.T) {
	w := newWatched()
	for range 6 {
		w.move(.2, 0)
	}
	before := w.sent[tight]
	w.move(0, 0)
	for range slipTicks - 1 {
		w.move(.2, 0)
	}
	if w.sent[tight] != before {
		t.Errorf("a tick late the player was sent within %d checks", slipTicks)
	}
	w.move(.2, 0)
	if w.sent[tight] != before+1 || w.astray(tight) > .05 {
		t.Errorf("after %d checks the player is still shown %.2f blocks ahead", slipTicks, w.astray(tight))
	}
}
