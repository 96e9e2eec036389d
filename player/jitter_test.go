package player

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// Honest players walk, sprint, fly and fall as fast as the browser's client permits, and the network delays each move
// by up to 200 ms: at most one of a million moves may be corrected.
func TestJitterIsNoCheating(t *testing.T) {
	const (
		moves  = 1_000_000
		each   = 10_000 // moves of one player
		every  = 50 * time.Millisecond
		jitter = 200 * time.Millisecond
	)
	corrections := 0
	for player := range moves / each {
		rng := rand.New(rand.NewPCG(uint64(player), 0))
		x, y, z := 0., 200., 0.
		m := NewMotion(Rules{}, 0, x, y, z)
		arrived, yaw, speed, climb := time.Duration(0), 0., 0., 0.
		for i := range each {
			if i%20 == 0 {
				yaw = 2 * math.Pi * rng.Float64()
				speed = []float64{0, 4.5, 6.6, 10, 17}[rng.IntN(5)]
				climb = []float64{0, 8, -8, -50}[rng.IntN(4)]
			}
			x, z = x+speed*every.Seconds()*math.Sin(yaw), z+speed*every.Seconds()*math.Cos(yaw)
			y = min(380, max(-60, y+climb*every.Seconds()))
			arrived = max(arrived, time.Duration(i)*every+time.Duration(rng.Int64N(int64(jitter)))) // in order
			if ok, _ := m.Check(arrived, x, y, z, float32(yaw), 0); !ok {
				corrections++
				x, y, z = m.At()
			}
		}
	}
	if corrections > 1 {
		t.Errorf("%d of %d honest moves were corrected", corrections, moves)
	}
}

// A player who moves faster than the rules allow gains no distance, however often they try.
func TestSpeedingGainsNothing(t *testing.T) {
	rules := Rules{}.WithDefaults()
	for _, speed := range []float64{20.5, 25, 40, 400} {
		m := NewMotion(rules, 0, 0, 64, 0)
		x, refused := 0., 0
		const seconds = 1000
		for i := range seconds * 20 {
			now := time.Duration(i) * 50 * time.Millisecond
			if ok, _ := m.Check(now, x+speed/20, 64, 0, 0, 0); !ok {
				refused++
			}
			x, _, _ = m.At()
		}
		if most := rules.MaxSpeed*seconds + rules.Burst; x > most+1e-3 || refused == 0 {
			t.Errorf("at %v blocks/s the player got %v blocks far in %d s (%d moves refused), want %v at most", speed, x, seconds, refused, most)
		}
	}
}
