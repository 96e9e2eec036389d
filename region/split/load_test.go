package split

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/actor"
)

const budget = 50 * time.Millisecond

var (
	cell   = grid.CellAt(grid.ChunkPos{}, grid.FoundingLabel)
	limits = Limits{Load: Load{Tick: .5, Players: 100, Edits: 50, Stored: 1000}, MergeAfter: time.Minute}
)

// watch returns a watch of the cell's region which had the load for some seconds, and the time then.
func watch(of grid.Cell, s actor.LoadSample, seconds int) *Watch {
	w := NewWatch(of)
	for i := range seconds + 1 {
		w.Add(time.Unix(int64(i), 0), s, budget, limits)
	}
	return w
}

func chunks(c actor.ChunkLoad, at ...grid.ChunkPos) actor.LoadSample {
	s := actor.LoadSample{Usable: true, Ticks: 20, Chunks: make(map[grid.ChunkPos]actor.ChunkLoad)}
	for _, pos := range at {
		s.Chunks[pos] = c
	}
	return s
}

func busy(s actor.LoadSample, d time.Duration) actor.LoadSample {
	s.Busy = d
	return s
}

var (
	corner = grid.ChunkPos{X: 0, Z: 0}
	beside = grid.ChunkPos{X: 1, Z: 0}
	far    = grid.ChunkPos{X: 15, Z: 15}
)

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		name    string
		sample  actor.LoadSample
		seconds int
		want    string
	}{
		{"nobody", chunks(actor.ChunkLoad{}), 10, ""},
		{"few players", chunks(actor.ChunkLoad{Players: 50}, corner, far), 10, ""},
		{"many players", chunks(actor.ChunkLoad{Players: 51}, corner, far), 10, "players"},
		{"many players, not for long", chunks(actor.ChunkLoad{Players: 51}, corner, far), 2, ""},
		{"in one chunk", chunks(actor.ChunkLoad{Players: 1000}, corner), 10, ""},
		{"in neighbouring chunks, which only the last split parts", chunks(actor.ChunkLoad{Players: 51}, corner, beside), 10, "players"},
		{"many edits", chunks(actor.ChunkLoad{Edits: 40}, corner, far), 10, "edits"},
		{"many edits in one chunk", chunks(actor.ChunkLoad{Edits: 400}, corner), 10, ""},
		{"many stored", chunks(actor.ChunkLoad{Stored: 501}, corner, far), 10, "stored"},
		{"long ticks", busy(chunks(actor.ChunkLoad{Players: 5}, corner, far), 600*time.Millisecond), 10, "tick"},
		{"short ticks", busy(chunks(actor.ChunkLoad{Players: 5}, corner, far), 400*time.Millisecond), 10, ""},
		{"long ticks without a reason that a split divides", busy(chunks(actor.ChunkLoad{}), time.Second), 10, ""},
	} {
		kind, splits := watch(cell, c.sample, c.seconds).Split(limits)
		if got := kind.String(); splits != (c.want != "") || splits && got != c.want {
			t.Errorf("%s: %v by %s, want %q", c.name, splits, got, c.want)
		}
	}
	crowd := watch(cell, chunks(actor.ChunkLoad{Players: 51}, corner, far), 10)
	if _, splits := crowd.Split(Limits{}); splits {
		t.Error("split without limits")
	}
	calm := watch(cell, chunks(actor.ChunkLoad{Players: 1}, corner, far), 60)
	for i, want := range []bool{false, false, true} {
		calm.Add(time.Unix(61+int64(i), 0), chunks(actor.ChunkLoad{Players: 51}, corner, far), budget, limits)
		if _, splits := calm.Split(limits); splits != want {
			t.Errorf("a calm region has too many players for the %dth second: %v, want %v", i+1, splits, want)
		}
	}
	one := grid.CellAt(corner, grid.MaxLabel)
	if _, splits := watch(one, chunks(actor.ChunkLoad{Players: 1000}, corner), 10).Split(limits); splits {
		t.Error("a single chunk is split")
	}
}

func TestMerge(t *testing.T) {
	lower, upper := cell.Children()
	quiet := Sibling{QuietFor: time.Minute, Pressure: .1}
	for _, c := range []struct {
		name    string
		of      grid.Cell
		sample  actor.LoadSample
		seconds int
		sibling Sibling
		want    bool
	}{
		{"both quiet", lower, chunks(actor.ChunkLoad{Players: 10}, corner), 60, quiet, true},
		{"the upper half does not decide", upper, chunks(actor.ChunkLoad{Players: 10}, far), 60, quiet, false},
		{"unless the lower one is asleep", upper, chunks(actor.ChunkLoad{Players: 10}, far), 60, Sibling{Asleep: true}, true},
		{"unless that has too much stored", upper, chunks(actor.ChunkLoad{Players: 10}, far), 60, Sibling{Asleep: true, Pressure: .3}, false},
		{"not for long enough", lower, chunks(actor.ChunkLoad{Players: 10}, corner), 59, quiet, false},
		{"the sibling not for long enough", lower, chunks(actor.ChunkLoad{Players: 10}, corner), 60, Sibling{QuietFor: 59 * time.Second}, false},
		{"too much together", lower, chunks(actor.ChunkLoad{Players: 30}, corner), 60, quiet, false},
		{"too much here", lower, chunks(actor.ChunkLoad{Players: 40}, corner), 600, Sibling{Asleep: true}, false},
		{"a founded cell", cell, chunks(actor.ChunkLoad{}), 600, Sibling{Asleep: true}, false},
	} {
		if got := watch(c.of, c.sample, c.seconds).Merge(limits, c.sibling); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	w := watch(lower, chunks(actor.ChunkLoad{}), 100)
	if !w.StayAwake(limits) || w.StayAwake(Limits{}) || watch(cell, chunks(actor.ChunkLoad{}), 1).StayAwake(limits) || watch(lower, chunks(actor.ChunkLoad{}), 1000).StayAwake(limits) {
		t.Error("a region stays awake, or does not, at the wrong time")
	}
	if watch(lower, chunks(actor.ChunkLoad{Stored: 400}, corner), 100).StayAwake(limits) {
		t.Error("a half that stores too much to be merged stays awake for ever")
	}
}

// Whatever the load is: a region is not split and merged by the same load, halves that were split because of it are not
// merged at once, and splits end.
func TestHysteresis(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := chunks(actor.ChunkLoad{})
		for range rapid.IntRange(0, 40).Draw(t, "chunks") {
			pos := grid.ChunkPos{X: rapid.Int32Range(0, 15).Draw(t, "x"), Z: rapid.Int32Range(0, 15).Draw(t, "z")}
			s.Chunks[pos] = actor.ChunkLoad{
				Players: rapid.IntRange(0, 60).Draw(t, "players"), Edits: rapid.IntRange(0, 30).Draw(t, "edits"), Stored: rapid.IntRange(0, 500).Draw(t, "stored"),
			}
		}
		s.Busy = time.Duration(rapid.IntRange(0, 2000).Draw(t, "ms")) * time.Millisecond
		var check func(of grid.Cell)
		check = func(of grid.Cell) {
			part := actor.LoadSample{Usable: true, Busy: s.Busy, Ticks: s.Ticks, Chunks: make(map[grid.ChunkPos]actor.ChunkLoad)}
			for pos, c := range s.Chunks {
				if of.Contains(pos) {
					part.Chunks[pos] = c
				}
			}
			w := watch(of, part, 70)
			_, splits := w.Split(limits)
			if splits && w.MayMerge(limits) {
				t.Fatalf("%v is split, and merged, by %v", of, w.Load())
			}
			if !splits {
				return
			}
			if of.Label.Len() == grid.MaxLabel {
				t.Fatalf("%v is split", of)
			}
			lower, upper := of.Children()
			check(lower)
			check(upper)
		}
		check(cell)
	})
}
