package world

import (
	"fmt"
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// guest returns an edit of a guest with a number.
func guest(n int, seq uint64, at grid.Pos, block chunk.Block) nodemsg.Intent {
	name := fmt.Sprint("guest", n)
	return nodemsg.Intent{Player: player.GuestID(name), Proof: nodemsg.Proof{Name: name}, Seq: seq, Pos: at, Block: block}
}

// mustApply applies an entry, and returns the step.
func mustApply(t *testing.T, l *Land, index uint64, entry []byte) Step {
	t.Helper()
	out, err := l.Apply(index, entry)
	if err != nil {
		t.Fatal(err)
	}
	return out.Step
}

// children splits a land by the entry at the index, and returns its children.
func children(t *testing.T, l *Land, index uint64) (halves [2]*Land) {
	t.Helper()
	if mustApply(t, l, index, EncodeSplit()) != Splits {
		t.Fatal("not split")
	}
	for half, c := range l.Children(index) {
		halves[half] = NewLand(c.ID, c.Cell, testHeight)
		for _, row := range c.Rows {
			if err := halves[half].Load(row.Key, row.Value); err != nil {
				t.Fatal(err)
			}
		}
	}
	l.Writes()
	l.Split(index)
	return halves
}

// merge merges the frozen children.
func merge(t *testing.T, l *Land, index, attempt uint64, halves [2]*Land) Step {
	t.Helper()
	var rows [2][]byte
	for half, child := range halves {
		var err error
		if rows[half], err = child.PackedRows(0, 0); err != nil {
			t.Fatal(err)
		}
	}
	return mustApply(t, l, index, EncodeMerge(attempt, rows))
}

// firstOf returns an edit of a guest of the first chunk of a land, with the chunk's pin.
func firstOf(l *Land, n int, seq uint64) []byte {
	pos := grid.ChunkPos{X: l.cell.Area().MinX, Z: l.cell.Area().MinZ}
	at := grid.Pos{X: pos.X * grid.ChunkSize, Y: 1, Z: pos.Z * grid.ChunkSize}
	return Batch{Time: 1e12, Pins: []Pin{{Chunk: pos}}, Edits: []nodemsg.Intent{guest(n, seq, at, 1)}}.Encode()
}

// A parent that was put back to an earlier state is behind its frozen children: an attempt that they abandon is over
// with all before it, and is not made again.
func TestAbandonLaterAttempt(t *testing.T) {
	parent := newTestLand()
	halves := children(t, parent, 10)
	for _, child := range halves {
		if mustApply(t, child, 11, EncodeFreeze(5)) != Froze {
			t.Fatal("not frozen")
		}
	}
	if mustApply(t, parent, 11, EncodeAbandon(5)) != Abandoned || parent.Structure().Attempt != 6 {
		t.Fatalf("after the abandonment: %+v", parent.Structure())
	}
	if merge(t, parent, 12, 5, halves) != NoStep || mustApply(t, parent, 13, EncodeAbandon(2)) != NoStep {
		t.Fatalf("an abandoned attempt took effect: %+v", parent.Structure())
	}
	if merge(t, parent, 14, 6, halves) != Merged {
		t.Fatal("not merged")
	}
}

// If both children together remember more players than a region may, those are dropped who have not edited for longest:
// an edit of the others that is sent again is still recognised. The children's logs are longer than the parent's.
func TestMergeDropsIdlePlayers(t *testing.T) {
	parent := newTestLand()
	halves := children(t, parent, 10)
	index := uint64(1000)
	for n := range rememberedPlayers {
		for half, child := range halves {
			index++
			mustApply(t, child, index, firstOf(child, 2*rememberedPlayers-2*n-half, 1)) // the lowest numbers last
		}
	}
	for _, child := range halves {
		mustApply(t, child, index+1, EncodeFreeze(0))
	}
	if merge(t, parent, 20, 0, halves) != Merged {
		t.Fatal("not merged")
	}
	if len(parent.recents) != rememberedPlayers {
		t.Fatalf("%d players", len(parent.recents))
	}
	for n := 1; n <= rememberedPlayers; n++ {
		if r := parent.recents[guest(n, 1, grid.Pos{}, 1).Player]; r == nil || r.last > 20 {
			t.Fatalf("player %d, one of the last to edit: %+v", n, r)
		}
	}
}

// An edit that is sent again after a split, or a merge, changes nothing a second time, whatever was built since: a
// player's edits of the parent count in both children, and those of both children in the parent.
func TestEditsAreAppliedOnceAcrossSplits(t *testing.T) {
	parent := newTestLand()
	changes := func(l *Land, index, seq uint64) bool {
		t.Helper()
		out, err := l.Apply(index, firstOf(l, 1, seq))
		if err != nil {
			t.Fatal(err)
		}
		return len(out.Changes) == 1
	}
	if !changes(parent, 5, 7) {
		t.Fatal("nothing was built")
	}
	halves := children(t, parent, 10)
	for half, child := range halves {
		if changes(child, 11, 7) {
			t.Errorf("half %d applies an edit again that its parent has applied", half)
		}
		mustApply(t, child, 12, firstOf(child, 2, uint64(1+half)))
		mustApply(t, child, 13, EncodeFreeze(0))
	}
	if merge(t, parent, 20, 0, halves) != Merged {
		t.Fatal("not merged")
	}
	if changes(parent, 21, 7) {
		t.Error("the parent applies its own edit again after the merge")
	}
	for seq := range uint64(2) {
		out, err := parent.Apply(22+seq, firstOf(parent, 2, 1+seq))
		if err != nil || len(out.Changes) != 0 {
			t.Errorf("the parent applies the edit %d of a child again: %+v, %v", 1+seq, out, err)
		}
	}
}

// A child is frozen for an attempt of its parent or a later one, takes no edits then, and is thawed only by the end of
// that attempt.
func TestFreeze(t *testing.T) {
	child := children(t, newTestLand(), 10)[0]
	for i, step := range []struct {
		entry  []byte
		want   Step
		frozen uint64
	}{
		{EncodeThaw(0), NoStep, 0},
		{EncodeFreeze(3), Froze, 4},
		{EncodeFreeze(2), NoStep, 4},
		{EncodeThaw(2), NoStep, 4},
		{EncodeThaw(4), NoStep, 4},
		{EncodeFreeze(5), Froze, 6},
		{EncodeThaw(3), NoStep, 6},
		{EncodeThaw(5), Thawed, 0},
	} {
		index := uint64(20 + 2*i)
		if got := mustApply(t, child, index, step.entry); got != step.want || child.Structure().Frozen != step.frozen {
			t.Fatalf("step %d: %v, %+v", i, got, child.Structure())
		}
		out, err := child.Apply(index+1, firstOf(child, 1, index))
		if err != nil || (len(out.Results) == 0) != (step.frozen != 0) {
			t.Fatalf("step %d: an edit has the results %v, %v", i, out.Results, err)
		}
	}
}
