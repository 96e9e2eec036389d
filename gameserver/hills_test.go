package gameserver

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/outbox"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/terrain"
)

// hills are the chunk where players enter a natural world, trees and all, and the way strollers cross it: straight
// towards a goal, straight up before what is higher, and down behind it. The players of test/bench/crowd do the same.
type hills struct {
	top   [grid.ChunkSize][grid.ChunkSize]float64 // the height of feet, by x and z
	goals map[int][2]float64                      // of each stroller
}

func newHills(t testing.TB) *hills {
	land, err := terrain.New(terrain.Params{Seed: 1, Sections: 4, Version: terrain.Version})
	if err != nil {
		t.Fatal(err)
	}
	h := &hills{goals: make(map[int][2]float64)}
	column := land.Chunk(land.Spawn().Chunk())
	for x := range h.top {
		for z := range h.top[x] {
			y := column.Height()
			for y > 0 && !footing(column.Get(chunk.IndexOf(x, y-1, z))) {
				y--
			}
			h.top[x][z] = float64(y)
		}
	}
	return h
}

func footing(b chunk.Block) bool { return b.Solid() || b == chunk.Water }

// stand returns the height of feet on the highest column under a body.
func (h *hills) stand(x, z float64) (top float64) {
	const half = .32
	for _, dx := range [2]float64{-half, half} {
		for _, dz := range [2]float64{-half, half} {
			top = max(top, h.top[int(x+dx)][int(z+dz)])
		}
	}
	return top
}

// climb moves a stroller by a tick.
func (h *hills) climb(stroller int, p *motion.Pose, rng *rand.Rand) {
	const step = 4. / 20
	x, z := p.X, p.Z
	goal, walks := h.goals[stroller]
	dx, dz := goal[0]-x, goal[1]-z
	if far := math.Hypot(dx, dz); walks && far > step {
		p.Yaw = float32(math.Mod(math.Atan2(-dx, dz)+2*math.Pi, 2*math.Pi))
		x, z = x+dx/far*step, z+dz/far*step
	} else {
		h.goals[stroller] = [2]float64{.5 + 31*rng.Float64(), .5 + 31*rng.Float64()}
	}
	if ground := h.stand(x, z); ground > p.Y {
		p.Y = min(ground, p.Y+step)
	} else {
		p.X, p.Z, p.Y = x, z, max(ground, p.Y-2*step)
	}
}

// On natural land, the error of what sessions see of a crowd is bounded by the budget and the delay: against where
// everybody is by now, in blocks.
func TestCrowdOnHills(t *testing.T) {
	for _, c := range []struct {
		players   int
		bytes     float64 // a second, at most
		mean, p99 float64 // error within 16 blocks, at most
	}{
		{100, 9500, .1, .5},
		{500, 20000, .1, .5},
		{1000, 20000, .14, .55},
		{1500, 20000, .18, .75},
	} {
		t.Run(fmt.Sprint(c.players), func(t *testing.T) {
			h := newCrowdScene(c.players, jitter)
			h.crowd.hills = newHills(t)
			bytes, errors := h.look(t, 4, 240, 240)
			sum := 0.
			for _, e := range errors {
				sum += e
			}
			mean, p99 := sum/float64(len(errors)), errors[len(errors)*99/100]
			t.Logf("%.0f bytes/s; error mean %.3f, p99 %.3f blocks", bytes, mean, p99)
			if bytes > c.bytes || mean > c.mean || p99 > c.p99 {
				t.Errorf("%.0f bytes/s, error mean %.3f, p99 %.3f blocks; want at most %.0f, %.2f, %.2f", bytes, mean, p99, c.bytes, c.mean, c.p99)
			}
		})
	}
}

// look runs some ticks in which viewers of the crowd watch the others, after some to begin with. It returns the bytes a
// second of each of them, and the errors within 16 blocks, in order.
func (h *crowdScene) look(t *testing.T, watchers, warm, ticks int) (bytes float64, errors []float64) {
	var sessions []*session
	var views []*avatarView
	desks := make([]outbox.Writer, watchers)
	for i := range watchers {
		sessions, views = append(sessions, h.addSession(i)), append(views, newAvatarView(t))
	}
	if err := h.begin(); err != nil {
		t.Fatal(err)
	}
	for tick := range warm + ticks {
		for i, s := range sessions {
			s.place.moveTo(h.crowd.bodies[i].Pose)
		}
		if err := h.tick(sessions); err != nil {
			t.Fatal(err)
		}
		for i, s := range sessions {
			if tick == warm {
				views[i].bytes = 0
			}
			if s.out.Woken() {
				if err := desks[i].WriteNext(s.out, views[i]); err != nil {
					t.Fatal(err)
				}
			}
			if tick < warm || tick%5 != 0 {
				continue
			}
			places := views[i].places(h.g.interest.ix.Tick())
			for _, b := range h.crowd.bodies {
				if poseDistance(b.Pose, h.crowd.bodies[i].Pose) <= 16 {
					errors = append(errors, poseDistance(places[b.Player], b.Pose))
				}
			}
		}
	}
	for _, e := range views {
		bytes += float64(e.bytes) / float64(watchers) / float64(ticks) * 20
	}
	slices.Sort(errors)
	return bytes, errors
}

func poseDistance(a, b motion.Pose) float64 {
	return math.Sqrt((a.X-b.X)*(a.X-b.X) + (a.Y-b.Y)*(a.Y-b.Y) + (a.Z-b.Z)*(a.Z-b.Z))
}
