package player

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/grid"
)

func TestRulesDefaults(t *testing.T) {
	want := Rules{MaxSpeed: 20, MaxRise: 20, MaxFall: 80, Burst: 20, Reach: 8, Height: 128}
	if got := (Rules{}).WithDefaults(); got != want {
		t.Errorf("defaults %+v, want %+v", got, want)
	}
	if got := (Rules{MaxSpeed: 5}).WithDefaults(); got.Burst != 5 {
		t.Errorf("burst %v at 5 blocks/s", got.Burst)
	}
	own := Rules{MaxSpeed: 1, MaxRise: 2, MaxFall: 3, Burst: 4, Reach: 5, Height: 6}
	if got := own.WithDefaults(); got != own {
		t.Errorf("%+v became %+v", own, got)
	}
}

func TestRulesValidate(t *testing.T) {
	if err := (Rules{}).Validate(); err != nil {
		t.Error(err)
	}
	for _, test := range []struct {
		rules Rules
		field string
	}{
		{Rules{MaxSpeed: -1}, "max speed"},
		{Rules{MaxRise: math.NaN()}, "max rise"},
		{Rules{MaxFall: math.Inf(1)}, "max fall"},
		{Rules{Burst: -0.5}, "burst"},
		{Rules{Reach: math.Inf(-1)}, "reach"},
		{Rules{Height: -32}, "height"},
	} {
		if err := test.rules.Validate(); err == nil || !strings.Contains(err.Error(), test.field) {
			t.Errorf("%+v: %v", test.rules, err)
		}
	}
}

func TestInReach(t *testing.T) {
	rules := Rules{Reach: 5}
	for _, test := range []struct {
		name    string
		x, y, z float64
		block   grid.Pos
		want    bool
	}{
		{"inside the block", 0.5, 0.5, 0.5, grid.Pos{}, true},
		{"5 before its near face", -5, 0.5, 0.5, grid.Pos{}, true},
		{"a little more", -5.001, 0.5, 0.5, grid.Pos{}, false},
		{"5 behind its far face", 6, 0.5, 0.5, grid.Pos{}, true},
		{"a little more there", 6.001, 0.5, 0.5, grid.Pos{}, false},
		{"5 above", 0.5, 6, 0.5, grid.Pos{}, true},
		{"5 along z", 0.5, 0.5, -5, grid.Pos{}, true},
		{"3-4-5 across an edge", -3, 0.5, -4, grid.Pos{}, true},
		{"beyond an edge", -3.1, 0.5, -4, grid.Pos{}, false},
		{"NaN", math.NaN(), 0, 0, grid.Pos{}, false},
		{"infinite", 0, math.Inf(1), 0, grid.Pos{}, false},
		{"the last block of the world", math.MaxInt32, 3, 0, grid.Pos{X: math.MaxInt32}, true},
	} {
		if got := rules.InReach(test.x, test.y, test.z, test.block); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

// Compared with a model that samples the cube.
func TestInReachMeasuresToTheNearestPoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		eye := rapid.SliceOfN(rapid.Float64Range(-12, 12), 3, 3).Draw(t, "eye")
		nearest := math.Inf(1)
		for i := range 11 * 11 * 11 {
			dx, dy, dz := eye[0]-float64(i%11)/10, eye[1]-float64(i/11%11)/10, eye[2]-float64(i/121)/10
			nearest = min(nearest, math.Sqrt(dx*dx+dy*dy+dz*dz))
		}
		if math.Abs(nearest-8) < 0.1 {
			return // too close to the limit for the samples
		}
		if got := (Rules{Reach: 8}).InReach(eye[0], eye[1], eye[2], grid.Pos{}); got != (nearest < 8) {
			t.Fatalf("in reach: %v at distance %v", got, nearest)
		}
	})
}
