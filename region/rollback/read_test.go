package rollback

import (
	"slices"
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/history"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// past returns the histories of two chunks, in which players take turns to change blocks, one a second.
func past(changes int) (s state) {
	var logs [2]history.Log
	for i := range changes {
		logs[i/3%2].Add(history.Record{
			Time: int64(1000 * (i + 1)), Player: player.GuestID([]string{"ada", "eve"}[i%2]), Guest: []string{"ada", "eve"}[i%2],
			At: chunk.Index(i % 100), Old: history.Natural, New: chunk.Block(i % 30),
		})
	}
	for i := range logs {
		s.chunks = append(s.chunks, chunkHistory{pos: grid.ChunkPos{X: int32(i)}, segments: logs[i].Segments(0)})
	}
	return s
}

var both = grid.Box{Max: grid.Pos{X: 63, Y: 100, Z: 31}}

// Pages, put together, are all changes in order, from either end.
func TestPages(t *testing.T) {
	const changes = 5000
	s := past(changes)
	for _, newest := range []bool{false, true} {
		var all []nodemsg.HistoryRecord
		for more := true; more; {
			q := nodemsg.HistoryRequest{Newest: newest, Skip: len(all), Most: 333}
			page, again, err := list(t.Context(), history.Filter{Box: both}, s, q)
			if err != nil || len(page) == 0 {
				t.Fatal(page, err)
			}
			all, more = append(all, page...), again
		}
		if newest {
			slices.Reverse(all)
		}
		if len(all) != changes {
			t.Fatalf("%d changes in pages, want %d", len(all), changes)
		}
		for i, r := range all {
			if r.Time != int64(1000*(i+1)) || r.New != chunk.Block(i%30) || r.At.X/32 != int32(i/3%2) {
				t.Fatalf("change %d is %+v", i, r)
			}
		}
	}
	only := history.Filter{Box: grid.Box{Max: grid.Pos{X: 31, Y: 100, Z: 31}}, Since: 2000, Until: 9000, Players: []player.ID{player.GuestID("eve")}}
	page, more, err := list(t.Context(), only, s, nodemsg.HistoryRequest{Most: 100})
	if err != nil || more || len(page) != 2 || page[0].Time != 2000 || page[1].Time != 8000 {
		t.Errorf("selected %+v, %v, %v", page, more, err)
	}
}

func TestProgress(t *testing.T) {
	s := past(600)
	r := history.Rollback{Number: -1, Filter: history.Filter{Box: both, Players: []player.ID{player.GuestID("eve")}}}
	a, err := progress(t.Context(), r, s)
	if err != nil || a.Done || a.Changed != 0 || a.Left == 0 || len(a.Columns) != 2 {
		t.Fatalf("%+v, %v", a, err)
	}
	columns := 0
	for _, c := range a.Columns {
		for _, bits := range c.Bits {
			for ; bits > 0; bits &= bits - 1 {
				columns++
			}
		}
	}
	if columns != a.Left { // all changes are on one level
		t.Errorf("%d columns for %d changes", columns, a.Left)
	}
	r.Number, s.rolledBack = 5, 5
	if a, err = progress(t.Context(), r, s); err != nil || !a.Done || a.Left != 0 {
		t.Errorf("a complete rollback is %+v, %v", a, err)
	}
}

// Rollbacks of a region are carried out in the order of their numbers; those elsewhere are none of its business.
func TestNext(t *testing.T) {
	cell := grid.CellAt(grid.ChunkPos{X: 5, Z: 5}, grid.FoundingLabel)
	at := func(number int64, x int32) policy.Rollback {
		r := policy.Rollback{}
		r.Number, r.Box = number, grid.Box{Min: grid.Pos{X: x}, Max: grid.Pos{X: x + 9, Y: 9, Z: 9}}
		return r
	}
	due := []policy.Rollback{at(3, 9), at(5, -5000), at(8, 0)}
	for after, want := range map[int64]int64{0: 3, 2: 3, 3: 8, 7: 8, 8: 0} {
		if next, found := nextFor(due, cell, after); found != (want != 0) || next.Number != want {
			t.Errorf("after %d comes %d, want %d", after, next.Number, want)
		}
	}
}
