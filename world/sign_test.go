package world

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/history"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// write has a guest write on a sign, and returns why that was refused.
func (e *editor) write(name string, pos grid.Pos, text string) (refused string) {
	e.now += 1000
	out := e.apply(Batch{Time: e.now, Edits: []nodemsg.Intent{{
		Player: player.GuestID(name), Seq: uint64(e.now) * 1000, Pos: pos, Block: chunk.Sign, Text: text, Proof: nodemsg.Proof{Name: name},
	}}}.Encode())
	return out.Results[0].Refused
}

func textsOf(l *Land, chunks ...grid.ChunkPos) map[grid.Pos]string {
	texts := make(map[grid.Pos]string)
	for _, pos := range chunks {
		for _, s := range l.Chunk(pos).Signs {
			texts[s.At.Pos(pos)] = s.Text
		}
	}
	return texts
}

// The texts of signs go with their blocks to both halves of a region that is split, and back when they are merged.
func TestSignsSurviveSplitAndMerge(t *testing.T) {
	e := newEditor(t)
	low, high := corners()
	low.Y, high.Y = 5, 6
	want := map[grid.Pos]string{low: "to the\nharbour", high: "ö 🌍"}
	for pos, text := range want {
		if refused := e.write("ada", pos, text); refused != "" {
			t.Fatal(refused)
		}
	}
	halves := children(t, e.land, e.index+1)
	if e.land.Edits() != 0 {
		t.Errorf("a region that is split has %d edits", e.land.Edits())
	}
	for i, pos := range []grid.Pos{low, high} {
		if got := textsOf(halves[i], pos.Chunk()); len(got) != 1 || got[pos] != want[pos] {
			t.Errorf("half %d has %v", i, got)
		}
		if mustApply(t, halves[i], e.index+2, EncodeFreeze(e.land.Structure().Attempt)) != Froze {
			t.Fatal("not frozen")
		}
	}
	if merge(t, e.land, e.index+3, e.land.Structure().Attempt, halves) != Merged {
		t.Fatal("not merged")
	}
	if got := textsOf(e.land, low.Chunk(), high.Chunk()); !reflect.DeepEqual(got, want) {
		t.Errorf("merged: %v, want %v", got, want)
	}
	stored := rows{}
	stored.store(e.land.Writes())
	if got := textsOf(stored.load(t), low.Chunk(), high.Chunk()); !reflect.DeepEqual(got, want) {
		t.Errorf("from its rows: %v, want %v", got, want)
	}
}

// A chunk has a bounded number of texts. Signs that have one can be written again, and a broken one makes room.
func TestSignsAreBounded(t *testing.T) {
	e := newEditor(t)
	pos, _ := corners()
	at := func(i int) grid.Pos { return grid.Pos{X: pos.X + int32(i%32), Y: 3, Z: pos.Z + int32(i/32)} }
	for i := range wire.MaxSigns {
		if refused := e.write("ada", at(i), fmt.Sprint(i)); refused != "" {
			t.Fatal(refused)
		}
	}
	next := at(wire.MaxSigns)
	if refused := e.write("ada", next, "one more"); refused != wire.RefusedSigns {
		t.Errorf("one text too many: %q", refused)
	}
	if refused := e.write("ada", next, ""); refused != "" {
		t.Errorf("a blank sign: %q", refused)
	}
	if refused := e.write("ada", at(0), "again"); refused != "" {
		t.Errorf("written again: %q", refused)
	}
	e.set("bob", at(1), chunk.Air)
	if refused := e.write("ada", next, "one more"); refused != "" {
		t.Errorf("after one was broken: %q", refused)
	}
	if got := textsOf(e.land, pos.Chunk()); len(got) != wire.MaxSigns || got[at(0)] != "again" || got[at(1)] != "" || got[next] != "one more" {
		t.Errorf("%d texts: %v", len(got), got)
	}
}

// The history has who wrote, not what: a sign on which a rollback undoes something is blank, also if only its text had
// changed.
func TestRollbackBlanksSigns(t *testing.T) {
	e := newEditor(t)
	a, b := corners()
	a.Y, b.Y = 3, 3
	for _, pos := range []grid.Pos{a, b} {
		if refused := e.write("ada", pos, "welcome"); refused != "" {
			t.Fatal(refused)
		}
	}
	if refused := e.write("eve", a, "go away"); refused != "" {
		t.Fatal(refused)
	}
	r := history.Rollback{Number: 1, Filter: history.Filter{Box: grid.BoxOf(a, b), Players: []player.ID{player.GuestID("eve")}}}
	if changed := e.rollBack(r, chunk.Air); changed != 1 {
		t.Errorf("%d blocks changed, want 1", changed)
	}
	if got, want := textsOf(e.land, a.Chunk(), b.Chunk()), map[grid.Pos]string{b: "welcome"}; !reflect.DeepEqual(got, want) {
		t.Errorf("texts %v, want %v", got, want)
	}
	if blocks := e.blocks(); blocks[a] != chunk.Sign || blocks[b] != chunk.Sign {
		t.Errorf("the signs have become %v", blocks)
	}
}
