package terrain

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// A lattice returns its samples at its corners and is linear between them along each axis, whatever it keeps, and in
// any order of calls.
func TestLattice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shift := uint(rapid.IntRange(0, 4).Draw(t, "shift"))
		edge := 1 << shift
		coordinate := rapid.IntRange(-100, 100)
		sample := func(x, z int) float64 {
			if x%edge != 0 || z%edge != 0 {
				t.Fatalf("sampled at (%d, %d), off the lattice of %d blocks", x, z, edge)
			}
			return math.Sin(float64(x)) + math.Cos(float64(3*z))
		}
		var whole, kept lattice[float64]
		whole.begin(shift, sample, mixElevation)
		kept.begin(shift, sample, mixElevation)
		kept.cover(coordinate.Draw(t, "minX"), coordinate.Draw(t, "minZ"), rapid.IntRange(1, 50).Draw(t, "w"), rapid.IntRange(1, 50).Draw(t, "d"))
		var r row[float64]
		z := coordinate.Draw(t, "z")
		r.begin(&kept, z)
		for range 20 {
			x := coordinate.Draw(t, "x")
			want := *whole.at(x, z)
			if got := *kept.at(x, z); got != want {
				t.Fatalf("(%d, %d) is %v for who keeps corners, %v for who keeps none", x, z, got, want)
			}
			if got := *r.at(x); got != want {
				t.Fatalf("(%d, %d) is %v in a row, %v by itself", x, z, got, want)
			}
			if x%edge == 0 && z%edge == 0 && want != sample(x, z) {
				t.Fatalf("corner (%d, %d) is %v, sampled %v", x, z, want, sample(x, z))
			}
			if x%edge != 0 {
				before := *whole.at(x-1, z)
				after := *whole.at(x+1, z)
				if bend := want - (before+after)/2; math.Abs(bend) > 1e-9 {
					t.Fatalf("the line through (%d, %d) bends by %v between corners", x, z, bend)
				}
			}
		}
	})
}

// A column is the same in every slab, and whether or not the slab keeps it.
func TestColumnsAgree(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		g := newGenerator(t, version, 5, 4)
		var single relief
		single.begin(g)
		rapid.Check(t, func(t *rapid.T) {
			coordinate := rapid.IntRange(-3000, 3000)
			x, z := coordinate.Draw(t, "x"), coordinate.Draw(t, "z")
			s := newSlab(g, x-rapid.IntRange(-12, 12).Draw(t, "west"), z-rapid.IntRange(-12, 12).Draw(t, "north"), 5, 3)
			if got, want := *s.column(x, z), single.at(x, z); got != want {
				t.Fatalf("column (%d, %d) is %+v in a slab, %+v by itself", x, z, got, want)
			}
		})
	})
}

// A coarser version generates nearly the same land: nowhere far from the first version, and almost everywhere within a
// block.
func TestVersionsAreAlike(t *testing.T) {
	for version := 2; version <= Version; version++ {
		for _, seed := range []int64{1, 2, 3} {
			first, other := newGenerator(t, 1, seed, 4), newGenerator(t, version, seed, 4)
			columns, off := 0, 0
			for z := -1500; z < 1500; z += 31 {
				for x := -1500; x < 1500; x += 31 {
					apart := abs(columnAt(first, x, z).ground - columnAt(other, x, z).ground)
					columns++
					if apart > 1 {
						off++
					}
					if apart > 9 {
						t.Errorf("seed %d: the ground at (%d, %d) is %d blocks from version 1's", seed, x, z, apart)
					}
				}
			}
			t.Logf("version %d, seed %d: %.2f %% of the ground is more than a block from version 1's",
				version, seed, 100*float64(off)/float64(columns))
			if off > columns/400 {
				t.Errorf("version %d, seed %d: %d of %d columns are more than a block from version 1's", version, seed, off, columns)
			}
		}
	}
}
