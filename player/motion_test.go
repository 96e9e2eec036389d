package player

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var testRules = Rules{MaxSpeed: 10, MaxRise: 5, MaxFall: 50, Burst: 4, Reach: 6, Height: 128}

const second = time.Second

func wantRefused(t *testing.T, m *Motion, want string, now time.Duration, x, y, z float64) {
	t.Helper()
	beforeX, beforeY, beforeZ := m.At()
	if ok, reason := m.Check(now, x, y, z, 0, 0); ok || reason != want {
		t.Errorf("to %v,%v,%v: %v %q, want %q", x, y, z, ok, reason, want)
	}
	if afterX, afterY, afterZ := m.At(); afterX != beforeX || afterY != beforeY || afterZ != beforeZ {
		t.Errorf("a refused move went to %v,%v,%v", afterX, afterY, afterZ)
	}
}

func wantMoved(t *testing.T, m *Motion, now time.Duration, x, y, z float64) {
	t.Helper()
	if ok, reason := m.Check(now, x, y, z, 0, 0); !ok || reason != "" {
		t.Errorf("to %v,%v,%v: refused, %q", x, y, z, reason)
	}
	if gotX, gotY, gotZ := m.At(); gotX != x || gotY != y || gotZ != z {
		t.Errorf("stands at %v,%v,%v, want %v,%v,%v", gotX, gotY, gotZ, x, y, z)
	}
}

func TestMotionRefusesNumbersThatAreNone(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	m := NewMotion(testRules, 0, 1, 64, 1)
	for _, v := range []float64{nan, inf, -inf} {
		wantRefused(t, m, NotFinite, 0, v, 64, 1)
		wantRefused(t, m, NotFinite, 0, 1, v, 1)
		wantRefused(t, m, NotFinite, 0, 1, 64, v)
		for _, angles := range [][2]float32{{float32(v), 0}, {0, float32(v)}} {
			if ok, reason := m.Check(0, 1, 64, 1, angles[0], angles[1]); ok || reason != NotFinite {
				t.Errorf("angles %v: %v %q", angles, ok, reason)
			}
		}
	}
	wantMoved(t, m, 0, 1, 64, 2) // still alive
}

func TestMotionBounds(t *testing.T) {
	const edge = 1 << 31
	for _, test := range []struct {
		x, y, z float64
		in      bool
	}{
		{0, -64, 0, true},
		{0, -64.1, 0, false},
		{0, 384, 0, true},
		{0, 384.1, 0, false},
		{edge, 64, 0, false},
		{edge - 0.5, 64, 0, true},
		{-edge, 64, 0, false},
		{0, 64, edge, false},
		{0, 64, -edge, false},
		{0, 64, -edge + 0.5, true},
		{1e300, 64, 0, false},
		{0, 1e300, 0, false},
	} {
		m := NewMotion(testRules, 0, test.x, test.y, test.z)
		if test.in {
			wantMoved(t, m, 0, test.x, test.y, test.z)
		} else {
			wantRefused(t, m, OutOfWorld, 0, test.x, test.y, test.z)
		}
	}
}

func TestMotionSteadyAtFullSpeed(t *testing.T) {
	m := NewMotion(testRules, 0, 0, 64, 0)
	const tick = second / 20
	for i := 1; i <= 20*600; i++ { // ten minutes along a diagonal, so that the speed along each axis is irrational
		distance := 10 * float64(i) / 20
		wantMoved(t, m, time.Duration(i)*tick, distance*math.Sqrt2/2, 64, distance*math.Sqrt2/2)
	}
}

func TestMotionBurst(t *testing.T) {
	m := NewMotion(testRules, 0, 0, 64, 0)
	wantRefused(t, m, TooFast, 0, 4.1, 64, 0)
	wantMoved(t, m, 0, 2, 64, 2) // 2.83 of 4
	wantRefused(t, m, TooFast, 0, 2, 64, 4)
	wantMoved(t, m, 100*time.Millisecond, 2, 64, 4)            // 1.17 + 1, so 2 is enough
	wantRefused(t, m, TooFast, 150*time.Millisecond, 2, 64, 5) // 0.17 + 0.5
	wantRefused(t, m, TooFast, 3600*second, 2, 64, 8.1)        // an hour saves up no more than Burst
	wantMoved(t, m, 3600*second, 2, 64, 8)
}

func TestMotionUpAndDown(t *testing.T) {
	// The burst of 4 blocks at 10 blocks/s is 0.4 s: 2 blocks up, 20 down.
	m := NewMotion(testRules, 0, 0, 64, 0)
	wantRefused(t, m, TooFast, 0, 0, 66.1, 0)
	wantMoved(t, m, 0, 0, 66, 0)
	wantRefused(t, m, TooFast, 0, 0, 45.9, 0)
	wantMoved(t, m, 0, 4, 46, 0) // falling takes nothing from the way across
	wantRefused(t, m, TooFast, 0, 4, 45, 0)
	wantRefused(t, m, TooFast, 100*time.Millisecond, 4, 46.6, 0) // rising 0.6 with 0.5
	wantMoved(t, m, 100*time.Millisecond, 4, 46.5, 0)
	wantMoved(t, m, 100*time.Millisecond, 4, 41.5, 0) // falling 5 with 5
}

func TestMotionClockBackwardsAllowsNothing(t *testing.T) {
	m := NewMotion(testRules, 10*second, 0, 64, 0)
	wantMoved(t, m, 10*second, 4, 64, 0)
	for range 100 {
		wantRefused(t, m, TooFast, 5*second, 5, 64, 0)
		wantRefused(t, m, TooFast, 10*second, 5, 64, 0)
	}
}

func TestCorrectionsDoNotExtendTravel(t *testing.T) {
	m := NewMotion(testRules, 0, 0, 64, 0)
	wantMoved(t, m, 0, 4, 64, 0)
	for range 50 {
		wantRefused(t, m, TooFast, 0, 1000, 64, 0)
		m.Reset(m.At())
		wantRefused(t, m, TooFast, 0, 5, 64, 0)
	}
	m.Reset(500, 70, 500) // a teleport
	wantRefused(t, m, TooFast, 0, 501, 70, 500)
	wantMoved(t, m, 100*time.Millisecond, 501, 70, 500)
}

// Whatever a client sends, over any stretch of time it moves no farther than Burst + speed × time in any direction.
func TestMotionNeverOutrunsItsBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := NewMotion(testRules, 0, 0, 64, 0)
		now := time.Duration(0)
		across, up, down := 0.0, 0.0, 0.0
		for range rapid.IntRange(1, 200).Draw(t, "moves") {
			now += time.Duration(rapid.Int64Range(-1e6, 2e8).Draw(t, "ns"))
			x, y, z := m.At()
			toX, toZ := x+rapid.Float64Range(-3, 3).Draw(t, "dx"), z+rapid.Float64Range(-3, 3).Draw(t, "dz")
			toY := y + rapid.Float64Range(-6, 3).Draw(t, "dy")
			if ok, _ := m.Check(now, toX, toY, toZ, 0, 0); ok {
				across += math.Hypot(toX-x, toZ-z)
				up, down = up+max(0, toY-y), down+max(0, y-toY)
			}
			seconds := m.now.Seconds() + 0.4
			if across > 10*seconds+0.01 || up > 5*seconds+0.01 || down > 50*seconds+0.01 {
				t.Fatalf("after %v: %v across, %v up, %v down", m.now, across, up, down)
			}
		}
	})
}

func FuzzMotionCheck(f *testing.F) {
	f.Add(int64(0), 1.0, 64.0, 1.0, float32(0), float32(0))
	f.Add(int64(-1), math.Inf(-1), math.NaN(), 1e308, float32(1), float32(-1))
	f.Fuzz(func(t *testing.T, now int64, x, y, z float64, yaw, pitch float32) {
		m := NewMotion(testRules, 0, 0, 64, 0)
		ok, reason := m.Check(time.Duration(now), x, y, z, yaw, pitch)
		if ok != (reason == "") {
			t.Fatalf("%v with reason %q", ok, reason)
		}
		if ok && (math.Hypot(x, z) > 4.01 || math.Abs(y-64) > 20.01) {
			t.Fatalf("moved at once to %v,%v,%v", x, y, z)
		}
	})
}
