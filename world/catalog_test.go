package world

import (
	"reflect"
	"testing"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

func memberNamed(name string) nodemsg.Member {
	return nodemsg.Member{Peer: name, Game: "127.0.0.1:4002"}
}

func foundEntry(t *testing.T, at grid.ChunkPos, members ...nodemsg.Member) []byte {
	t.Helper()
	entry, err := EncodeFound(nodemsg.Found{Cell: grid.CellAt(at, grid.FoundingLabel), Members: members})
	if err != nil {
		t.Fatal(err)
	}
	return entry
}

func equalCatalogs(a, b *Catalog) bool {
	return reflect.DeepEqual(a.Page(0, a.Len()+1), b.Page(0, b.Len()+1))
}

func TestFirstFoundingWins(t *testing.T) {
	c := NewCatalog()
	here, there := grid.ChunkPos{X: 1, Z: 1}, grid.ChunkPos{X: -1, Z: 1}
	first, writes, err := c.Apply(2, foundEntry(t, here, memberNamed("A"), memberNamed("B")))
	if err != nil || len(writes) != 1 || first.ID <= CatalogID || first.Leader != "A" {
		t.Fatalf("founded %+v, %d writes, %v", first, len(writes), err)
	}
	again, writes, err := c.Apply(3, foundEntry(t, here, memberNamed("C")))
	if err != nil || len(writes) != 0 || !reflect.DeepEqual(again, first) {
		t.Errorf("founded again as %+v, %d writes, %v", again, len(writes), err)
	}
	other, _, err := c.Apply(4, foundEntry(t, there, memberNamed("C")))
	if err != nil || other.ID == first.ID || c.Len() != 2 {
		t.Errorf("the other cell is region %d like %d, %d cells, %v", other.ID, first.ID, c.Len(), err)
	}
	for _, pos := range []grid.ChunkPos{here, {X: 15, Z: 15}} {
		if got, ok := c.Locate(pos); !ok || !reflect.DeepEqual(got, first) {
			t.Errorf("chunk %v is in %+v", pos, got)
		}
	}
	if got, ok := c.Locate(grid.ChunkPos{X: 16, Z: 0}); ok {
		t.Errorf("a cell that nobody founded is %+v", got)
	}
}

func TestCatalogReload(t *testing.T) {
	c, loaded := NewCatalog(), NewCatalog()
	for i := range int32(40) {
		_, writes, err := c.Apply(uint64(i)+2, foundEntry(t, grid.ChunkPos{X: i%10*16 - 80, Z: i % 7 * 16}, memberNamed("A")))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range writes {
			if err := loaded.Load(w.Key, w.Value); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !equalCatalogs(loaded, c) {
		t.Errorf("%d cells were loaded of %d, or they differ", loaded.Len(), c.Len())
	}
	_, writes, err := c.Apply(99, foundEntry(t, grid.ChunkPos{X: 500, Z: 500}, memberNamed("A")))
	if err != nil {
		t.Fatal(err)
	}
	if err := loaded.Load([]byte("0,0/0000"), writes[0].Value); err == nil {
		t.Error("a row under another cell's key was loaded")
	}
	if err := loaded.Load(writes[0].Key, writes[0].Value[1:]); err == nil {
		t.Error("a damaged row was loaded")
	}
}

func TestCatalogRefuses(t *testing.T) {
	if _, err := EncodeFound(nodemsg.Found{Cell: grid.CellAt(grid.ChunkPos{}, 5), Members: []nodemsg.Member{memberNamed("A")}}); err == nil {
		t.Error("a cell of label length 5 was taken")
	}
	if _, err := EncodeFound(nodemsg.Found{Cell: grid.CellAt(grid.ChunkPos{}, grid.FoundingLabel)}); err == nil {
		t.Error("a founding without members was taken")
	}
	c := NewCatalog()
	question, err := nodemsg.EncodeQuestion(nodemsg.Question{Describe: &nodemsg.Describe{}})
	if err != nil {
		t.Fatal(err)
	}
	for name, entry := range map[string][]byte{"nothing": nil, "garbage": []byte("garbage"), "another question": question} {
		if region, writes, err := c.Apply(2, entry); err == nil || len(writes) > 0 || c.Len() > 0 {
			t.Errorf("%s founded %+v", name, region)
		}
	}
}

func FuzzCatalogApply(f *testing.F) {
	entry, err := EncodeFound(nodemsg.Found{Cell: grid.CellAt(grid.ChunkPos{X: 3}, grid.FoundingLabel), Members: []nodemsg.Member{memberNamed("A")}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint64(2), entry)
	f.Fuzz(func(t *testing.T, index uint64, entry []byte) {
		c, loaded := NewCatalog(), NewCatalog()
		region, writes, err := c.Apply(index, entry)
		if err != nil {
			return
		}
		if len(writes) != 1 || loaded.Load(writes[0].Key, writes[0].Value) != nil || !equalCatalogs(loaded, c) {
			t.Fatalf("%+v does not come back from its row", region)
		}
	})
}

// A founded region's members can only change to those of a later epoch, and only for its own cell.
func TestCatalogMovesRegions(t *testing.T) {
	c := NewCatalog()
	region, _, err := c.Apply(2, foundEntry(t, grid.ChunkPos{}, memberNamed("A")))
	if err != nil {
		t.Fatal(err)
	}
	move := func(id, epoch uint64, to string) nodemsg.Region {
		moved := region
		moved.ID, moved.Epoch, moved.Leader, moved.Members = id, epoch, to, []nodemsg.Member{memberNamed(to)}
		return moved
	}
	elsewhere := move(region.ID, 9, "X")
	elsewhere.Cell = grid.CellAt(grid.ChunkPos{X: 900}, grid.FoundingLabel)
	for i, step := range []struct {
		moved nodemsg.Region
		want  string // the leader afterwards
		fails bool
	}{
		{move(region.ID, 3, "B"), "B", false},
		{move(region.ID, 3, "X"), "B", false},
		{move(region.ID, 2, "X"), "B", false},
		{move(region.ID+1, 9, "X"), "B", true},
		{elsewhere, "B", true},
		{move(region.ID, 7, "C"), "C", false},
	} {
		entry, err := EncodeMoved(step.moved)
		if err != nil {
			t.Fatal(err)
		}
		moved, writes, err := c.Apply(uint64(i)+3, entry)
		if (err != nil) != step.fails {
			t.Errorf("step %d: %v", i, err)
		}
		if !step.fails && moved.Leader != step.want {
			t.Errorf("step %d: applied %+v", i, moved)
		}
		if got, ok := c.Find(region.ID); !ok || got.Leader != step.want {
			t.Errorf("step %d: the region is %+v", i, got)
		}
		if changed := step.want == step.moved.Leader; changed != (len(writes) == 1) {
			t.Errorf("step %d: %d writes", i, len(writes))
		}
	}
	if _, ok := c.Find(region.ID + 1); ok {
		t.Error("a region is found that does not exist")
	}
}
