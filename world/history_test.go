package world

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/history"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// editor edits a land in the names of guests.
type editor struct {
	t     interface{ Fatal(...any) }
	land  *Land
	index uint64
	now   int64
}

func newEditor(t interface{ Fatal(...any) }) *editor {
	e := &editor{t: t, land: newTestLand(), now: 1_700_000_000_000}
	origin := testCell.Area()
	e.apply(Batch{Time: e.now, Pins: []Pin{{Chunk: grid.ChunkPos{X: origin.MinX, Z: origin.MinZ}}, {Chunk: grid.ChunkPos{X: origin.MaxX - 1, Z: origin.MaxZ - 1}}}}.Encode())
	return e
}

func (e *editor) apply(entry []byte) Outcome {
	e.index++
	out, err := e.land.Apply(e.index, entry)
	if err != nil {
		e.t.Fatal(err)
	}
	return out
}

// set has a guest set a block, some time after the last change.
func (e *editor) set(name string, pos grid.Pos, block chunk.Block) {
	e.now += 1000
	out := e.apply(Batch{Time: e.now, Edits: []nodemsg.Intent{{
		Player: player.GuestID(name), Seq: uint64(e.now) * 1000, Pos: pos, Block: block, Proof: nodemsg.Proof{Name: name},
	}}}.Encode())
	if out.Results[0].Refused != "" {
		e.t.Fatal(out.Results[0].Refused)
	}
}

// rollBack carries out a rollback in both chunks, naming everything natural as what at says.
func (e *editor) rollBack(r history.Rollback, natural chunk.Block) (changed int) {
	e.now += 1000
	for pos := range e.land.pinned {
		for {
			changes, err := r.Changes(pos, e.land.History(pos, r.Since))
			if err != nil {
				e.t.Fatal(err)
			}
			if len(changes) == 0 {
				break
			}
			step := RollbackStep{Rollback: r, Time: e.now, Chunk: pos}
			for _, c := range changes[:min(len(changes), MaxRollback)] {
				if c.To == history.Natural {
					step.Natural = append(step.Natural, nodemsg.BlockAt{At: c.At, Block: natural})
				}
			}
			changed += len(e.apply(step.Encode()).Changes)
		}
	}
	e.apply(RollbackStep{Rollback: r, Done: true}.Encode())
	return changed
}

func (e *editor) blocks() map[grid.Pos]chunk.Block {
	all := make(map[grid.Pos]chunk.Block)
	for pos, g := range e.land.pinned {
		for at, block := range g.edits.All() {
			all[at.Pos(pos)] = block
		}
	}
	return all
}

// reload returns the land as it is stored.
func (e *editor) reload() *Land {
	table := rows{}
	table.store(e.land.rows())
	return table.load(e.t)
}

func corners() (a, b grid.Pos) {
	area := testCell.Area()
	a = grid.ChunkPos{X: area.MinX, Z: area.MinZ}.Origin()
	b = grid.ChunkPos{X: area.MaxX - 1, Z: area.MaxZ - 1}.Origin()
	return a, b
}

// What one player did is undone in the box and the time that were asked for; what others did there since stays, and
// undoing the rollback restores the damage block for block.
func TestRollbackInALand(t *testing.T) {
	e := newEditor(t)
	a, b := corners()
	at := func(n int32) grid.Pos { return grid.Pos{X: a.X + n%32, Y: 1 + n/32%32, Z: a.Z + n/1024} }
	e.set("ada", at(0), chunk.Brick)
	e.set("eve", at(9), chunk.Lamp) // before the time asked for
	since := e.now + 1
	const griefed = 3000
	for n := range int32(griefed) {
		e.set("eve", at(n), chunk.Air)
	}
	e.set("bob", at(1), chunk.Planks) // since then
	e.set("eve", b, chunk.Air)        // in the other half of the region
	damaged := e.blocks()

	job := history.Rollback{Number: e.now, Filter: history.Filter{
		Box: grid.BoxOf(at(griefed-1), a), Since: since, Until: e.now, Players: []player.ID{player.GuestID("eve")},
	}}
	job.Box.Max = grid.Pos{X: a.X + 31, Y: testHeight, Z: a.Z + 31}
	if got, want := e.rollBack(job, chunk.Stone), griefed-1; got != want {
		t.Errorf("%d blocks changed, want %d", got, want)
	}
	repaired := e.blocks()
	for pos, want := range map[grid.Pos]chunk.Block{
		at(0): chunk.Brick, at(1): chunk.Planks, at(2): chunk.Stone, at(9): chunk.Lamp, at(griefed - 1): chunk.Stone, b: chunk.Air,
	} {
		if repaired[pos] != want {
			t.Errorf("the block at %v is %v, want %v", pos, repaired[pos], want)
		}
	}
	if e.land.RolledBack() != job.Number || e.rollBack(job, chunk.Dirt) != 0 {
		t.Error("a rollback that was complete goes on")
	}

	undo := history.Rollback{Number: job.Number + 1, Filter: history.Filter{Box: job.Box, Until: e.now + 1000, Players: []player.ID{history.Author(job.Number)}}}
	e.rollBack(undo, chunk.Stone)
	if got := e.blocks(); !maps.Equal(got, damaged) {
		t.Errorf("undoing the rollback left %d blocks, want the damage of %d", len(got), len(damaged))
	}

	// Both halves know that it is done, and so does the region that they are merged into.
	halves := children(t, e.land, 1<<20)
	for _, half := range halves {
		for passed, want := range map[int64]int64{0: undo.Number, undo.Number + 1: undo.Number + 1} {
			rows, err := half.PackedRows(passed, 0)
			got, other := OrdersOf(rows)
			if want := binary.BigEndian.AppendUint64(nil, uint64(want)); !bytes.Equal(got, want) || err != nil || other != nil {
				t.Errorf("packed after rollback %d, a half has %x, want %x; %v, %v", passed, got, want, err, other)
			}
		}
		if half.RolledBack() != undo.Number {
			t.Errorf("a half has rolled back %d, want %d", half.RolledBack(), undo.Number)
		}
		mustApply(t, half, 1, EncodeFreeze(0))
	}
	if merge(t, e.land, 1<<21, 0, halves) != Merged || e.land.RolledBack() != undo.Number {
		t.Errorf("the merged region has rolled back %d, want %d", e.land.RolledBack(), undo.Number)
	}
	if got := e.blocks(); !maps.Equal(got, damaged) || len(e.land.History(a.Chunk(), 0)) == 0 {
		t.Error("the merged region is another one")
	}
	if !reflect.DeepEqual(e.reload().rows(), e.land.rows()) {
		t.Error("the region is loaded differently")
	}
}

// Blocks that were broken and put back do not keep a rollback from changing the others.
func TestRollbackOfWhatWasPutBack(t *testing.T) {
	e := newEditor(t)
	a, _ := corners()
	at := func(n int32) grid.Pos { return grid.Pos{X: a.X + n%32, Y: 1 + n/1024, Z: a.Z + n/32%32} }
	since := e.now
	for n := range int32(MaxRollback + 100) {
		e.set("eve", at(n), chunk.Air)
		e.set("eve", at(n), chunk.Stone)
	}
	broken := grid.Pos{X: a.X, Y: 60, Z: a.Z}
	e.set("eve", broken, chunk.Air)
	job := history.Rollback{Number: e.now, Filter: history.Filter{Box: grid.BoxOf(a, grid.Pos{X: a.X + 31, Y: testHeight, Z: a.Z + 31}), Since: since, Players: []player.ID{player.GuestID("eve")}}}
	if n := e.rollBack(job, chunk.Stone); n != 1 || e.blocks()[broken] != chunk.Stone {
		t.Errorf("%d blocks changed, and the broken one is %v", n, e.blocks()[broken])
	}
}

// Old history is dropped by time and by size, the same on all members, and what is stored stays what is in memory.
func TestTrim(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, table := newEditor(t), rows{}
		a, b := corners()
		names := []string{"ada", "bob", "eve"}
		for i := range rapid.IntRange(100, 1500).Draw(t, "edits") {
			pos := []grid.Pos{a, b}[i%7/6]
			pos.Y = 1 + int32(i%50)
			e.set(names[i%3], pos, chunk.Block(i%3))
		}
		table.store(e.land.Writes())
		before, oldest := e.land.HistorySize()
		cut := Trim{
			Before: oldest + rapid.Int64Range(-1, e.now-oldest+1).Draw(t, "before"),
			Bytes:  rapid.IntRange(0, before).Draw(t, "bytes"),
		}
		again := e.reload()
		e.apply(cut.Encode())
		table.store(e.land.Writes())
		if _, err := again.Apply(e.index, cut.Encode()); err != nil || !slices.EqualFunc(again.rows(), e.land.rows(), sameRow) {
			t.Fatalf("a member that was restarted drops others, %v", err)
		}
		if !slices.EqualFunc(table.load(t).rows(), e.land.rows(), sameRow) {
			t.Fatal("what is stored is not what is in memory")
		}
		size, oldest := e.land.HistorySize()
		if size > cut.Bytes || size > 0 && oldest < cut.Before {
			t.Fatalf("%d bytes are left, the oldest from %d, after %+v", size, oldest, cut)
		}
		e.set("ada", a, chunk.Lamp) // it goes on
		table.store(e.land.Writes())
		if !slices.EqualFunc(table.load(t).rows(), e.land.rows(), sameRow) {
			t.Fatal("what is stored is not what is in memory afterwards")
		}
	})
}

func sameRow(a, b kv.Write) bool { return bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value) }

// The history of a chunk has a bound.
func TestChunkHistoryIsBounded(t *testing.T) {
	e := newEditor(t)
	a, _ := corners()
	for i := range 4 * maxChunkHistory / 20 { // each change has a new author, of 16 bytes
		e.now++
		pos := a
		pos.Y = 1 + int32(i%50)
		id := player.GuestID(fmt.Sprint(i))
		var out Outcome
		e.land.setBlock(e.index, e.land.pinned[a.Chunk()], Change{Chunk: a.Chunk(), BlockAt: nodemsg.BlockAt{At: chunk.At(pos), Block: chunk.Block(i % 3)}}, id, "", e.now, &out)
	}
	size, oldest := e.land.HistorySize()
	if size > maxChunkHistory || size < maxChunkHistory/2 || oldest == 0 {
		t.Errorf("a chunk has %d bytes of history, want at most %d", size, maxChunkHistory)
	}
}

func FuzzRollbackStep(f *testing.F) {
	f.Add(Trim{Before: 1, Bytes: 2}.Encode())
	f.Add(RollbackStep{Done: true}.Encode())
	f.Add(RollbackStep{
		Rollback: history.Rollback{Number: 5, Filter: history.Filter{Box: grid.Box{Min: grid.Pos{X: -1}, Max: grid.Pos{Y: 9}}, Since: 1, Until: 2, Players: []player.ID{player.GuestID("eve")}}},
		Time:     3, Chunk: grid.ChunkPos{X: -1, Z: 1}, Natural: []nodemsg.BlockAt{{At: 5, Block: chunk.Stone}, {At: 5000, Block: chunk.Air}},
	}.Encode())
	f.Add(RollbackStep{Rollback: history.Rollback{Number: 5, Filter: history.Filter{Players: []player.ID{player.GuestID("eve"), player.GuestID("bob")}}}, Time: 3}.Encode())
	f.Add(RollbackStep{Rollback: history.Rollback{Number: 5, Marked: true, After: 4, Filter: history.Filter{Players: []player.ID{player.GuestID("eve")}}}, Time: 3}.Encode())
	f.Add(EncodeMarks([]history.Mark{{Number: 1, Since: 2, Box: grid.Box{Min: grid.Pos{X: -1}, Max: grid.Pos{Y: 9}}}, {Number: 3}}))
	f.Fuzz(func(t *testing.T, entry []byte) {
		if len(entry) == 0 {
			return
		}
		if marks, err := decodeMarks(entry); entry[0] == tagMarks {
			if len(marks) > MaxMarks || len(marks)*8 > len(entry) {
				t.Fatalf("%d bytes made %d marks", len(entry), len(marks))
			}
			if again, other := decodeMarks(EncodeMarks(marks)); err == nil && (other != nil || !slices.Equal(again, marks)) {
				t.Fatalf("%+v became %+v, %v", marks, again, other)
			}
		}
		if cut, err := decodeTrim(entry); entry[0] == tagTrim && err == nil {
			if again, err := decodeTrim(cut.Encode()); err != nil || again != cut {
				t.Fatalf("%+v became %+v, %v", cut, again, err)
			}
		}
		if entry[0] != tagRollback && entry[0] != tagRollbackPlayers && entry[0] != tagRollbackMarked {
			return
		}
		s, err := decodeRollback(entry)
		if err != nil {
			return
		}
		if len(s.Natural)*2 > len(entry) {
			t.Fatalf("%d bytes made %d blocks", len(entry), len(s.Natural))
		}
		if again, err := decodeRollback(s.Encode()); err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("%+v became %+v, %v", s, again, err)
		}
	})
}
