package players

import (
	"math"
	"testing"

	"github.com/voxelpopuli/voxeld/grid"
)

// Edits of a work area are within the reach of a player over the site's middle, in the work area's region, and in the
// area that is read. No site is worked on twice before all were.
func TestWorkAreas(t *testing.T) {
	cells := make(map[string]bool)
	for n := range areaCount {
		s := newArea(n, 1)
		cells[s.Cell()] = true
		seen := make(map[grid.Pos]int)
		for i := range sitesPerSide * sitesPerSide * editsPerSite {
			site, x, z := s.Middle()
			if site != i/editsPerSite {
				t.Fatalf("edit %d is of plot %d", i, site)
			}
			pos, b, ok := s.Edit(site)
			if !ok || !contains(pos) || CellOf(pos) != s.Cell() {
				t.Fatalf("edit %d at %v: %v, cell %s, want %s", i, pos, ok, CellOf(pos), s.Cell())
			}
			if pos.X >= Spawn.X-1 && pos.X <= Spawn.X+1 && pos.Z >= Spawn.Z-1 && pos.Z <= Spawn.Z+1 {
				t.Fatalf("%v is in the way of players who climb from the spawn", pos)
			}
			if before, ok := seen[pos]; ok && before != site {
				t.Fatalf("%v is of plots %d and %d", pos, before, site)
			}
			seen[pos] = site
			if b.Known() && b != 0 && !b.Placeable() {
				t.Fatalf("%v cannot be put", b)
			}
			gap := func(eye float64, low int32) float64 { return max(0, float64(low)-eye, eye-float64(low+1)) }
			reach := math.Hypot(math.Hypot(gap(float64(x)+.5, pos.X), gap(float64(z)+.5, pos.Z)), gap((worldHeight+.25)+1.62, pos.Y))
			if reach > 8 {
				t.Fatalf("%v is %v from the eyes over %d, %d", pos, reach, x, z)
			}
		}
		if _, _, ok := s.Edit(0); ok {
			t.Error("an edit in an earlier plot")
		}
	}
	if len(cells) != areaCount {
		t.Errorf("the work areas are in the regions %v", cells)
	}
}
