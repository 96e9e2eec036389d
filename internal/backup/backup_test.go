package backup

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

var testGenesis = world.Genesis{Name: "Test", Sections: 4, Terrain: 1, Placement: grid.PlacementWalkad}

// sample returns a backup of a world with one region of so many edits, the base if it is not nil.
func sample(t testing.TB, edits int, base *Contents) []byte {
	t.Helper()
	var out bytes.Buffer
	h := Header{Genesis: testGenesis.Encode(), Begun: 1000}
	if base != nil {
		h.Base = &base.ID
	}
	w, err := NewWriter(&out, h)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(err)
	cell := grid.CellAt(grid.ChunkPos{}, grid.FoundingLabel)
	info := nodemsg.Region{ID: 7, Cell: cell, Epoch: 1, Members: []nodemsg.Member{{Peer: "a", Game: "h:1"}}}
	row, err := nodemsg.EncodeRegion(info)
	must(err)
	group := func(g Group, add func(*RowsWriter)) {
		must(w.Write(Record{Group: &g}))
		rows := NewRowsWriter(w.Write)
		add(rows)
		must(rows.Close())
	}
	group(Group{ID: world.CatalogID, Position: Position{Index: 5, Term: 1, Next: 2}}, func(r *RowsWriter) { must(r.Add([]byte(cell.String()), row)) })
	g := Group{ID: 7, Cell: cell, Position: Position{Index: 9, Term: 1, Next: 2}}
	if base != nil {
		sum := base.Sums[7]
		g.Same = &sum
		must(w.Write(Record{Group: &g}))
	} else {
		group(g, func(r *RowsWriter) {
			key := append([]byte{0, 0, 0, 0, 0, 0, 0, 7, 'b'}, make([]byte, 8)...)
			must(r.Add(key, make([]byte, 32)))
			for i := range edits {
				must(r.Add(append([]byte{0, 0, 0, 0, 0, 0, 0, 7, 'e', 0, 0, 0, 0, 0, 0, 0, 0}, 0, byte(i>>16), byte(i>>8), byte(i)), []byte{0, 1}))
			}
		})
	}
	table := TableWriter{Name: PlayersTable, Emit: w.Write}
	for _, name := range []string{"ann", "bob", "ann"} { // ann on two nodes
		p := nodemsg.PlayerRecord{Player: player.GuestID(name), Name: name, Guest: true, Seq: 1, Gateway: "a"}
		row, err := nodemsg.EncodePlayerRecord(p)
		must(err)
		must(table.Add(p.Player[:], row))
	}
	w.AddRows(3)
	must(table.Flush())
	must(w.Close())
	return out.Bytes()
}

func TestRoundTrip(t *testing.T) {
	c, err := Verify(bytes.NewReader(sample(t, 100_000, nil)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Edits != 100_000 || c.Players != 2 || len(c.Groups) != 2 || c.Summary.Rows != 100_005 {
		t.Errorf("read %+v", c)
	}
}

// Whatever byte of a backup is changed, or wherever it ends, it is refused or reads the same.
func TestEveryByteCounts(t *testing.T) {
	whole := sample(t, 300, nil)
	right, err := Verify(bytes.NewReader(whole), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		if _, err := Verify(bytes.NewReader(whole[:i]), nil); !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNoBackup) {
			t.Errorf("cut at %d: %v", i, err)
		}
		bad := bytes.Clone(whole)
		bad[i] ^= 0x21
		if c, err := Verify(bytes.NewReader(bad), nil); err == nil && c.ID != right.ID {
			t.Errorf("changed at %d: no error", i)
		}
	}
}

func TestChain(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if _, err := Create(path, path, func(w io.Writer) error { _, err := w.Write(data); return err }, nil); err != nil {
			t.Fatal(err)
		}
		return path
	}
	full := write("full", sample(t, 50, nil))
	base, err := VerifyFile(t.Context(), full, nil)
	if err != nil {
		t.Fatal(err)
	}
	second := write("second", sample(t, 0, &base))
	chain, err := VerifyFiles(t.Context(), []string{full, second}, nil)
	if err != nil {
		t.Fatal(err)
	}
	latest := chain.Latest()
	if len(latest) != 2 || latest[1].File != 0 || latest[0].File != 1 {
		t.Fatalf("latest %+v", latest)
	}
	rows := 0
	err = chain[0].Rows(func(g Group) bool { return g.ID == 7 }, func(g *Group, table string, some []kv.Write) error {
		if g != nil {
			rows += len(some)
		}
		return nil
	})
	if err != nil || rows != 51 {
		t.Errorf("%d rows, %v", rows, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := VerifyFiles(ended, []string{full, second}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a verification that is to end: %v", err)
	}
	for _, files := range [][]string{{second}, {second, full}, {full, full}} {
		if _, err := VerifyFiles(t.Context(), files, nil); err == nil {
			t.Errorf("accepted %v", files)
		}
	}
	if _, err := Create(filepath.Join(dir, "bad"), filepath.Join(dir, "bad"), func(io.Writer) error { return io.ErrClosedPipe }, nil); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("create: %v", err)
	}
	diary := filepath.Join(dir, "diary.txt")
	if err := os.WriteFile(diary, []byte("Dear diary, no backup starts like this."), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(diary, diary, func(io.Writer) error { return nil }, nil); err == nil || !strings.Contains(err.Error(), "is not a backup") {
		t.Errorf("a file that is no backup would be replaced: %v", err)
	}
	if _, err := Create(os.DevNull, os.DevNull, func(io.Writer) error { return nil }, nil); err == nil || errors.Is(err, ErrNoBackup) {
		t.Errorf("in the place of a device: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 3 {
		t.Errorf("%d files are left", len(left))
	}
}

// An incremental backup is refused after one of another world. A region that it could not read comes from an earlier
// backup, and takes the place of the copies that it has now.
func TestLatest(t *testing.T) {
	sum := ID{1}
	world1, world2 := testGenesis, testGenesis
	world2.Name = "Fork"
	group := Group{ID: 7, Position: Position{Index: 9}, Epoch: 20, Members: []string{"a"}}
	full := Contents{ID: ID{3}, Genesis: world1, Groups: []Group{{ID: world.CatalogID}, group}, Sums: map[uint64]ID{7: sum}}
	next := Contents{Header: Header{Base: &full.ID}, Genesis: world1, Groups: []Group{
		{ID: world.CatalogID}, {ID: 7, Epoch: 1<<40 + 30, Members: []string{"b"}, Missing: true, Problem: "lost"},
	}}
	if err := (Chain{full}).follows(next); err != nil {
		t.Error(err)
	}
	at := Chain{full, next}.Latest()[1]
	if !at.Older || at.File != 0 || at.Position.Index != 9 || at.Epoch != 1<<40+30 || !slices.Equal(at.Members, []string{"b"}) {
		t.Errorf("the region is %+v", at)
	}
	next.Genesis = world2
	if err := (Chain{full}).follows(next); err == nil {
		t.Error("a backup of a fork follows one of its origin")
	}
}

// The records of a group are complete and in order, and their rows are of that group.
func TestCheckGroup(t *testing.T) {
	var records []Record
	cell := grid.CellAt(grid.ChunkPos{}, grid.FoundingLabel)
	w := NewRowsWriter(func(r Record) error {
		records = append(records, r)
		return nil
	})
	base := append([]byte{0, 0, 0, 0, 0, 0, 0, 7, 'b'}, make([]byte, 8)...)
	if err := errors.Join(w.Add(base, make([]byte, 32)), w.Close()); err != nil {
		t.Fatal(err)
	}
	head, other := Record{Group: &Group{ID: 7, Cell: cell}}, Record{Group: &Group{ID: 8, Cell: cell}}
	rows, end := records[0], records[1]
	height := testGenesis.Height()
	if err := CheckGroup([]Record{head, rows, end}, height, 0); err != nil {
		t.Error(err)
	}
	for name, bad := range map[string][]Record{
		"nothing": nil, "no rows": {head}, "no end": {head, rows}, "an end too early": {head, end}, "twice": {head, rows, rows, end},
		"no head": {rows, end}, "two heads": {head, head, rows, end}, "more": {head, rows, end, end}, "rows of another": {other, rows, end},
		"a table": {head, {Table: &Table{Name: PlayersTable, Rows: rows.Rows}}, rows, end}, "same": {{Group: &Group{ID: 7, Cell: cell, Same: &ID{}}}, rows, end},
	} {
		if err := CheckGroup(bad, height, 0); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A row of a table that another node could send in a record fits into the records that are written, whatever comes
// before it.
func TestTableRecords(t *testing.T) {
	n := 0
	w := TableWriter{Name: BasesTable, Emit: func(r Record) error {
		n++
		return wire.WriteFrame(io.Discard, r)
	}}
	for _, size := range []int{RowsBytes - 100, MaxRecord - 200, 10} {
		if err := w.Add([]byte{1}, make([]byte, size)); err != nil {
			t.Fatalf("a row of %d bytes: %v", size, err)
		}
	}
	if err := w.Flush(); err != nil || n != 3 {
		t.Errorf("%d records, %v", n, err)
	}
}

func FuzzVerify(f *testing.F) {
	f.Add(sample(f, 10, nil))
	f.Add(magic)
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := Verify(bytes.NewReader(data), nil)
		if err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNoBackup) {
			t.Fatalf("an error of another kind: %v", err)
		}
	})
}

// FuzzRecords fuzzes what is in the compressed stream.
func FuzzRecords(f *testing.F) {
	zip, err := zstd.NewReader(bytes.NewReader(sample(f, 10, nil)[len(magic):]))
	if err != nil {
		f.Fatal(err)
	}
	plain, err := io.ReadAll(zip)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(plain)
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := readRecords(bytes.NewReader(data))
		if err == nil {
			_, err = verify(r, nil)
		}
		if err != nil && !errors.Is(err, ErrDamaged) {
			t.Fatalf("an error of another kind: %v", err)
		}
	})
}
