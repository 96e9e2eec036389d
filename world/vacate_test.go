package world

import (
	"bytes"
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/history"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// vacant is the land of a cell where nothing was built.
func vacant() *Land {
	return NewLand(7, grid.CellAt(grid.ChunkPos{}, grid.FoundingLabel), testHeight)
}

// builtAt is a batch with one edit, or, without a block, with a pin only.
func builtAt(seq uint64, edited bool) []byte {
	b := Batch{Time: 1e12, Pins: []Pin{{Base: [32]byte{1}}}}
	if edited {
		b.Edits = []nodemsg.Intent{guest(1, seq, grid.Pos{X: 1, Y: 2, Z: 3}, chunk.Stone)}
	}
	return b.Encode()
}

// A region is given up only if nothing at all is in its land when the entry is applied.
func TestVacateOnlyEmptyLand(t *testing.T) {
	for name, before := range map[string][][]byte{
		"nothing":             nil,
		"a barrier":           {Barrier{Nonce: 5}.Encode()},
		"a merge of nothing":  {EncodeAbandon(3), EncodeThaw(0), EncodeFreeze(1)},
		"an edit":             {builtAt(1, true)},
		"a pin":               {builtAt(1, false)},
		"orders":              {EncodeMarks([]history.Mark{{Number: 4, Box: grid.Box{}}})},
		"an edit of its past": {builtAt(1, true), Batch{Time: 1e12, Edits: []nodemsg.Intent{guest(1, 2, grid.Pos{X: 1, Y: 2, Z: 3}, chunk.Air)}}.Encode()},
	} {
		t.Run(name, func(t *testing.T) {
			l := vacant()
			for i, entry := range before {
				mustApply(t, l, uint64(i+2), entry)
			}
			empty := name == "nothing" || name == "a barrier" || name == "a merge of nothing"
			if l.Empty() != empty {
				t.Errorf("empty: %v", !empty)
			}
			step, want := mustApply(t, l, 9, EncodeVacate()), NoStep
			if empty {
				want = Vacated
			}
			if s := l.Structure(); step != want || (s.Vacated == 9) != empty || s.RefusesEdits() != empty {
				t.Errorf("step %v leaves %+v", step, s)
			}
		})
	}
	halves := children(t, vacant(), 3)
	if mustApply(t, halves[0], 4, EncodeVacate()) != NoStep {
		t.Error("half of a region is given up")
	}
	parent := vacant()
	children(t, parent, 3)
	if mustApply(t, parent, 4, EncodeVacate()) != NoStep {
		t.Error("a region that is split is given up")
	}
	if _, err := vacant().Apply(2, append(EncodeVacate(), 0)); err == nil {
		t.Error("a malformed entry is applied")
	}
}

// A region that was given up stays so, whatever comes: its edits have no result, and nothing else changes it. It is
// stored, and read again.
func TestVacatedForGood(t *testing.T) {
	l := vacant()
	mustApply(t, l, 5, EncodeVacate())
	ended := l.Structure()
	for name, entry := range map[string][]byte{
		"an edit": builtAt(1, true), "a split": EncodeSplit(), "a freeze": EncodeFreeze(0), "a thaw": EncodeThaw(0), "a merge": EncodeMerge(0, [2][]byte{}),
		"orders": EncodeMarks([]history.Mark{{Number: 4}}), "itself": EncodeVacate(), "a trim": Trim{Bytes: 1}.Encode(),
	} {
		out, err := l.Apply(6, entry)
		if err != nil || len(out.Results) > 0 || out.Step != NoStep || l.Structure() != ended || len(l.pinned)+len(l.recents) > 0 {
			t.Errorf("%s: %+v, %v; now %+v", name, out, err, l.Structure())
		}
	}
	writes := l.Writes()
	again := vacant()
	for _, w := range writes {
		if err := again.Load(w.Key, w.Value); err != nil {
			t.Fatal(err)
		}
	}
	if again.Structure() != ended || again.Empty() {
		t.Errorf("read again, it is %+v", again.Structure())
	}
	keys := func(_ string, prefix []byte, visit func([]byte) error) error {
		for _, w := range writes {
			if bytes.HasPrefix(w.Key, prefix) {
				if err := visit(w.Key); err != nil {
					return err
				}
			}
		}
		return nil
	}
	for id, want := range map[uint64]bool{7: false, 8: true} {
		if empty, err := EmptyIn(keys, id); err != nil || empty != want {
			t.Errorf("region %d is stored as empty: %v, %v", id, empty, err)
		}
	}
	row := ended.encode()
	for _, bad := range [][]byte{row[:56], append(bytes.Clone(row[:48]), make([]byte, 16)...), append(bytes.Clone(row), 0)} {
		if s, ok := decodeStructure(bad); ok {
			t.Errorf("row %x is %+v", bad, s)
		}
	}
	signed := Structure{Edited: true, Vacated: 3}
	if s, ok := decodeStructure(signed.encode()); !ok || s != signed {
		t.Errorf("%+v is read as %+v", signed, s)
	}
}

// The catalog removes a region that was given up, and no other one. The cell can be founded again; what is said of the
// region before changes nothing then.
func TestCatalogVacates(t *testing.T) {
	c := NewCatalog()
	at := grid.ChunkPos{X: 100}
	apply := func(index uint64, entry []byte, err error) (nodemsg.Region, []kv.Write) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		region, writes, err := c.Apply(index, entry)
		if err != nil {
			t.Fatal(err)
		}
		return region, writes
	}
	first, _ := apply(2, foundEntry(t, at, memberNamed("A")), nil)
	other, _ := apply(3, foundEntry(t, grid.ChunkPos{}, memberNamed("A")), nil)
	vacate := func(index, id uint64, cell grid.Cell) (nodemsg.Region, []kv.Write) {
		entry, err := EncodeVacated(nodemsg.Vacated{Region: id, Cell: cell})
		return apply(index, entry, err)
	}
	if was, writes := vacate(4, other.ID, first.Cell); was.ID != 0 || len(writes) > 0 || c.Len() != 2 {
		t.Errorf("the region of another cell is removed: %+v", was)
	}
	was, writes := vacate(5, first.ID, first.Cell)
	if was.ID != first.ID || len(writes) != 1 || writes[0].Value != nil || len(c.Gone()) != 1 || c.Gone()[0] != first.ID || c.Len() != 1 {
		t.Errorf("%+v is removed with %v; gone are %v", was, writes, c.Gone())
	}
	if _, ok := c.Find(first.ID); ok {
		t.Error("it is still listed")
	}
	again, _ := apply(6, foundEntry(t, at, memberNamed("B")), nil)
	if again.ID == first.ID || !again.Newer(first) || first.Newer(again) {
		t.Errorf("founded again as %+v, before %+v", again, first)
	}
	if was, writes := vacate(7, first.ID, first.Cell); was.ID != 0 || len(writes) > 0 {
		t.Errorf("a late entry removes %+v", was)
	}
	first.Epoch += 100
	moved, err := EncodeMoved(first)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Apply(8, moved); err == nil {
		t.Error("the region before is listed again")
	}
	if got, ok := c.Locate(at); !ok || got.ID != again.ID || got.Founded != 6 {
		t.Errorf("the cell has %+v", got)
	}
	split := again
	split.Split = 9
	if moved, err = EncodeMoved(split); err != nil {
		t.Fatal(err)
	}
	apply(9, moved, nil)
	if was, _ := vacate(10, again.ID, again.Cell); was.ID != 0 {
		t.Errorf("a region that is split is removed: %+v", was)
	}
}
