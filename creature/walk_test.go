package creature

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
)

// land is some blocks; all others are air above y = 0, and stone below.
type land map[grid.Pos]chunk.Block

func (l land) at(pos grid.Pos) (chunk.Block, bool) {
	if b, set := l[pos]; set {
		return b, true
	}
	if pos.Y < 10 {
		return chunk.Stone, true
	}
	return chunk.Air, true
}

// fill sets the blocks of a box, inclusive.
func (l land) fill(b chunk.Block, x0, y0, z0, x1, y1, z1 int32) {
	for x := x0; x <= x1; x++ {
		for y := y0; y <= y1; y++ {
			for z := z0; z <= z1; z++ {
				l[grid.Pos{X: x, Y: y, Z: z}] = b
			}
		}
	}
}

// walk walks a sheep from a place towards another one for some ticks.
func walk(l land, x, y, z, toX, toZ float64, ticks int) *Walker {
	w := NewWalker(Creature{Kind: Sheep, Pose: motion.Pose{X: x, Y: y, Z: z}, Goal: Goal{Do: GoTo, X: toX, Z: toZ}})
	random := rand.New(rand.NewPCG(1, 2)).Uint64
	for range ticks {
		w.Step(l.at, random)
	}
	return w
}

func TestWalk(t *testing.T) {
	for name, c := range map[string]struct {
		build   func(land)
		reaches bool
		height  float64 // in the end
	}{
		"flat":             {func(land) {}, true, 10},
		"a step":           {func(l land) { l.fill(chunk.Stone, 3, 10, -9, 9, 10, 9) }, true, 11},
		"a slab":           {func(l land) { l.fill(chunk.StoneSlab, 3, 10, -9, 9, 10, 9) }, true, 10.5},
		"a wall":           {func(l land) { l.fill(chunk.Stone, 3, 10, -99, 3, 11, 99) }, false, 10},
		"a fence":          {func(l land) { l.fill(chunk.PlankFence, 3, 10, -99, 3, 10, 99) }, false, 10},
		"a low roof":       {func(l land) { l.fill(chunk.Stone, 3, 11, -99, 4, 11, 99) }, false, 10},
		"a step down":      {func(l land) { l.fill(chunk.Air, 3, 9, -9, 9, 9, 9) }, true, 9},
		"a high edge":      {func(l land) { l.fill(chunk.Air, 3, 8, -99, 99, 9, 99) }, false, 10},
		"water":            {func(l land) { l.fill(chunk.Water, 3, 5, -9, 9, 9, 9) }, true, 10 - afloat},
		"water to be left": {func(l land) { l.fill(chunk.Water, 1, 5, -9, 4, 9, 9) }, true, 10},
	} {
		t.Run(name, func(t *testing.T) {
			l := land{}
			c.build(l)
			w := walk(l, -1.5, 10, .5, 6.5, .5, 400)
			if reached := math.Hypot(w.Pose.X-6.5, w.Pose.Z-.5) < 1; reached != c.reaches {
				t.Errorf("it is at %v", w.Pose)
			}
			if math.Abs(w.Pose.Y-c.height) > .01 {
				t.Errorf("it is at height %g, want %g", w.Pose.Y, c.height)
			}
		})
	}
}

// What a creature stands on is broken, or something is built around it.
func TestFallAndRise(t *testing.T) {
	l := land{}
	w := walk(l, .5, 10, .5, .5, .5, 5)
	l.fill(chunk.Air, -3, 5, -3, 3, 9, 3)
	random := rand.New(rand.NewPCG(1, 2)).Uint64
	last := w.Pose.Y
	for range 100 {
		if w.Step(l.at, random); w.Pose.Y > last {
			t.Fatalf("it rises from %g to %g", last, w.Pose.Y)
		}
		last = w.Pose.Y
	}
	if w.Pose.Y != 5 {
		t.Errorf("it fell to %g, want 5", w.Pose.Y)
	}
	l.fill(chunk.Stone, -3, 5, -3, 3, 7, 3)
	for range 100 {
		w.Step(l.at, random)
	}
	if w.Pose.Y != 8 {
		t.Errorf("it rose to %g, want 8", w.Pose.Y)
	}
}

// Wherever a creature wanders, it is never in a block, and its prediction is never far off.
func TestWander(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := land{}
		for range rapid.IntRange(0, 60).Draw(t, "boxes") {
			at := func(name string) int32 { return rapid.Int32Range(-8, 8).Draw(t, name) }
			x, z, y := at("x"), at("z"), rapid.Int32Range(8, 13).Draw(t, "y")
			b := rapid.SampledFrom([]chunk.Block{chunk.Stone, chunk.Air, chunk.Water, chunk.StoneSlab, chunk.PlankFence, chunk.Door}).Draw(t, "block")
			l.fill(b, x, y, z, x+2, y, z+1)
		}
		l.fill(chunk.Air, -1, 10, -1, 1, 13, 1)
		l.fill(chunk.Stone, -1, 9, -1, 1, 9, 1)
		w := NewWalker(Creature{Kind: Sheep, Pose: motion.Pose{X: .5, Y: 10, Z: .5}})
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)).Uint64
		shown := w.Pose
		var velocity motion.Velocity
		since := 0
		for tick := range 2000 {
			w.Step(l.at, random)
			if w.falling == 0 && !w.free(l.at, w.Pose) {
				t.Fatalf("tick %d: it is in a block at %v", tick, w.Pose)
			}
			if since++; w.Show() {
				shown, velocity, since = w.Pose, w.Velocity, 0
			}
			x, y, z := velocity.Displacement(float64(since))
			if off := math.Max(math.Hypot(shown.X+x-w.Pose.X, shown.Z+z-w.Pose.Z), math.Abs(shown.Y+y-w.Pose.Y)); off > .15 || since >= motion.ExtrapolationTicks && velocity.Moving() {
				t.Fatalf("tick %d: it is %g blocks from where it is shown", tick, off)
			}
		}
	})
}

// Land that is not known stops it, without a turn: whoever knows more decides.
func TestUnknownAhead(t *testing.T) {
	known := func(pos grid.Pos) (chunk.Block, bool) {
		b, _ := land{}.at(pos)
		return b, pos.X < 3
	}
	w := NewWalker(Creature{Kind: Sheep, Pose: motion.Pose{X: .5, Y: 10, Z: .5}, Goal: Goal{Do: GoTo, X: 8, Z: .5}})
	random := rand.New(rand.NewPCG(1, 2)).Uint64
	for range 100 {
		if ahead, unknown := w.Step(known, random); unknown {
			if ahead.X < 3 || w.Pose.X >= 3 {
				t.Errorf("from %v ahead is %v", w.Pose, ahead)
			}
			return
		}
	}
	t.Error("it never came to the border")
}

func TestAppend(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Creature{Kind: Kind(rapid.Byte().Draw(t, "kind")), Goal: Goal{Do: Do(rapid.ByteMax(byte(last)).Draw(t, "do"))}}
		coordinate := rapid.Float64Range(-1<<30, 1<<30)
		c.Pose.X, c.Pose.Y, c.Pose.Z = coordinate.Draw(t, "x"), rapid.Float64Range(-60, 200).Draw(t, "y"), coordinate.Draw(t, "z")
		c.Pose.Yaw = rapid.Float32Range(-math.Pi, math.Pi).Draw(t, "yaw")
		if c.Goal.Do == GoTo {
			c.Goal.X, c.Goal.Z = coordinate.Draw(t, "to x"), coordinate.Draw(t, "to z")
		}
		got, rest, err := Decode(append(c.Append(nil), 7))
		if err != nil || len(rest) != 1 {
			t.Fatal(got, rest, err)
		}
		turn := math.Remainder(float64(got.Pose.Yaw-c.Pose.Yaw), 2*math.Pi)
		if got.Kind != c.Kind || got.Goal.Do != c.Goal.Do || got.Pose.Chunk() != c.Pose.Chunk() || math.Abs(turn) > .02 ||
			math.Abs(got.Pose.X-c.Pose.X)+math.Abs(got.Pose.Y-c.Pose.Y)+math.Abs(got.Goal.Z-c.Goal.Z) > 3./unit {
			t.Fatalf("%+v has become %+v", c, got)
		}
		again, _, err := Decode(got.Append(nil))
		if err != nil || again != got {
			t.Fatalf("%+v has become %+v: %v", got, again, err)
		}
	})
}

func FuzzDecode(f *testing.F) {
	c := Creature{Kind: Sheep, Goal: Goal{Do: GoTo, X: 3, Z: -4}}
	f.Add(c.Append(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		if c, _, err := Decode(data); err == nil && c.Valid() != nil {
			t.Errorf("%+v is not valid", c)
		}
	})
}

func TestSkin(t *testing.T) {
	if k, is := KindOf(Sheep.Skin()); !is || k != Sheep {
		t.Errorf("the skin of a sheep is that of %v", k)
	}
	if _, is := KindOf(player.Skin(6<<24 | 1)); is {
		t.Error("a player is taken for a sheep")
	}
}
