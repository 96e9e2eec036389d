package world

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/kv"
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

// The catalog lists the children of a split region with the region's members. If those have changed since the split,
// the children are listed with all who may be members, until their leaders report who is. When the region is merged,
// its children are gone.
func TestCatalogSplits(t *testing.T) {
	c := NewCatalog()
	index := uint64(1)
	apply := func(entry []byte) {
		t.Helper()
		index++
		if _, _, err := c.Apply(index, entry); err != nil {
			t.Fatal(err)
		}
	}
	move := func(info nodemsg.Region, epoch, split, merged uint64, members ...string) {
		t.Helper()
		info.Epoch, info.Split, info.Merged, info.Leader, info.Members = epoch, split, merged, members[0], nil
		for i, name := range members {
			m := memberNamed(name)
			m.Replica = uint64(i) + 1
			info.Members = append(info.Members, m)
		}
		entry, err := EncodeMoved(info)
		if err != nil {
			t.Fatal(err)
		}
		apply(entry)
	}
	lists := func(id uint64, names ...string) nodemsg.Region {
		t.Helper()
		info, _ := c.Find(id)
		got := make([]string, len(info.Members))
		for i, m := range info.Members {
			got[i] = m.Peer
		}
		slices.Sort(got)
		if !slices.Equal(got, names) {
			t.Errorf("the members of a child are %q, want %q", got, names)
		}
		return info
	}
	apply(foundEntry(t, grid.ChunkPos{}, memberNamed("A"), memberNamed("B"), memberNamed("C")))
	region, _ := c.Locate(grid.ChunkPos{})
	move(region, 1, 10, 0, "A", "B", "C")
	lists(ChildID(region.ID, 10, 0), "A", "B", "C")
	move(region, 1, 0, 20, "A", "B", "C")
	if gone := c.Gone(); len(gone) != 2 || c.Len() != 1 {
		t.Errorf("merged: %v are gone, %d are left", gone, c.Len())
	}
	move(region, 31, 30, 20, "A", "B", "D") // D has replaced C before the split was reported
	child := lists(ChildID(region.ID, 30, 0), "A", "B", "C", "D")
	move(child, 30, 0, 0, "A", "B", "C")
	lists(child.ID, "A", "B", "C")
}

// A region of a single chunk cannot be split, so a report that it is, of whichever node, is refused.
func TestCatalogRefusesToSplitAChunk(t *testing.T) {
	c := NewCatalog()
	index := uint64(2)
	if _, _, err := c.Apply(index, foundEntry(t, grid.ChunkPos{}, memberNamed("A"))); err != nil {
		t.Fatal(err)
	}
	for {
		region, ok := c.Locate(grid.ChunkPos{})
		if !ok {
			t.Fatal("the chunk is in no region")
		}
		region.Split, region.Epoch = index, index
		entry, err := EncodeMoved(region)
		index++
		if err == nil {
			_, _, err = c.Apply(index, entry)
		}
		if single := region.Cell.Label.Len() == grid.MaxLabel; single != (err != nil) {
			t.Fatalf("%v is reported as split: %v", region.Cell, err)
		} else if single {
			return
		}
	}
}

// A catalog whose rows are stored, late and listed late, behaves like one that has them in memory.
func TestStoredCatalog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		disk := make(map[string][]byte)
		stored := func(key string) []byte { return disk[key] }
		plain, c := NewCatalog(), NewStoredCatalog(stored)
		var unstored []struct {
			index  uint64
			writes []kv.Write
		}
		store := func() { // everything up to some entry
			n := rapid.IntRange(0, len(unstored)).Draw(t, "stored")
			for _, u := range unstored[:n] {
				for _, w := range u.writes {
					if disk[string(w.Key)] = w.Value; w.Value == nil {
						delete(disk, string(w.Key))
					}
				}
				c.Stored(u.index)
			}
			unstored = unstored[n:]
		}
		index := uint64(1)
		for range rapid.IntRange(1, 40).Draw(t, "entries") {
			index++
			entry := drawEntry(t, plain, index)
			if entry == nil {
				continue
			}
			want, writes, wantErr := plain.Apply(index, entry)
			got, same, err := c.Apply(index, entry)
			if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(same, writes) || !reflect.DeepEqual(c.Gone(), plain.Gone()) || (err == nil) != (wantErr == nil) {
				t.Fatalf("entry %d: %+v and %d writes, want %+v and %d", index, got, len(same), want, len(writes))
			}
			unstored = append(unstored, struct {
				index  uint64
				writes []kv.Write
			}{index, writes})
			store()
			if rapid.IntRange(0, 9).Draw(t, "restart") == 0 && len(unstored) == 0 {
				c = NewStoredCatalog(stored)
				for _, key := range slices.Sorted(maps.Keys(disk)) {
					if _, _, err := c.List([]byte(key), disk[key]); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		if !equalCatalogs(c, plain) {
			t.Fatalf("%d regions, want %d", c.Len(), plain.Len())
		}
	})
}

// drawEntry draws an entry that founds, moves, splits or merges a region; nil if there is none to be changed.
func drawEntry(t *rapid.T, c *Catalog, index uint64) []byte {
	var entry []byte
	var err error
	kind, listed := rapid.IntRange(0, 3).Draw(t, "kind"), c.Page(0, 1000)
	if kind == 0 || len(listed) == 0 {
		at := grid.ChunkPos{X: rapid.Int32Range(-2, 2).Draw(t, "x") * 16}
		entry, err = EncodeFound(nodemsg.Found{Cell: grid.CellAt(at, grid.FoundingLabel), Members: []nodemsg.Member{memberNamed("A")}})
	} else {
		to := rapid.SampledFrom(listed).Draw(t, "region")
		if to.Cell.Label.Len() == grid.MaxLabel {
			return nil
		}
		switch to.Epoch++; {
		case kind == 2 && to.Split == 0:
			to.Split = index
		case kind == 3 && to.Split != 0:
			to.Merged, to.Split = index, 0
		}
		entry, err = EncodeMoved(to)
	}
	if err != nil {
		t.Fatal(err)
	}
	return entry
}

// The rows of a snapshot may be newer than its index, each by another number of entries: with the entries that follow
// the index, it becomes what the other members have (actor.CatalogTables).
func TestCatalogRowsMayBeNewer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plain, late := NewCatalog(), NewCatalog()
		var entries [][]byte
		step := func() {
			index := uint64(len(entries)) + 2
			entry := drawEntry(t, plain, index)
			if entry == nil {
				return
			}
			entries = append(entries, entry)
			if _, _, err := plain.Apply(index, entry); err != nil {
				t.Fatal(err)
			}
		}
		for range rapid.IntRange(0, 30).Draw(t, "entries before") {
			step()
		}
		from := len(entries)
		for read := ""; ; { // the rows in the order of their keys, while entries are applied
			for range rapid.IntRange(0, 3).Draw(t, "entries between") {
				step()
			}
			var next nodemsg.Region
			for _, region := range plain.Page(0, 1000) {
				if key := region.Cell.String(); key > read && (next.ID == 0 || key < next.Cell.String()) {
					next = region
				}
			}
			if next.ID == 0 {
				break
			}
			read = next.Cell.String()
			value, err := nodemsg.EncodeRegion(next)
			if err == nil {
				err = late.Load([]byte(read), value)
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(entries) > 200 {
				break // more are made than are read
			}
		}
		for i, entry := range entries[from:] {
			late.Apply(uint64(from+i)+2, entry) //nolint:errcheck // regions that were merged meanwhile are not listed
		}
		if len(entries) <= 200 && !equalCatalogs(late, plain) {
			t.Fatalf("%+v\nwant %+v", late.Page(0, 1000), plain.Page(0, 1000))
		}
	})
}
