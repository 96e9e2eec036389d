package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.etcd.io/bbolt"

	"github.com/voxelpopuli/voxeld/internal/kv"
)

// abandoned returns a copy of the files of a store that is written to and then left, as by a crash: n commits of two
// rows each, of which the first half has gone into the tables.
func abandoned(t *testing.T, n int) (path string) {
	t.Helper()
	db := run(t, Options{Path: newPath(t)})
	for i := range n {
		if i == n/2 {
			if err := db.Check(); err != nil { // it flushes
				t.Fatal(err)
			}
		}
		mustCommit(t, db, kv.Write{Table: "t", Key: fmt.Appendf(nil, "%04d", i), Value: fmt.Append(nil, i)}, kv.Write{Table: "last", Key: []byte("k"), Value: fmt.Append(nil, i)})
	}
	return crashCopy(t, db.tables.path)
}

// crashCopy returns a copy of a store's files as they are, as after a crash. Nobody may write to it.
func crashCopy(t *testing.T, path string) (crashed string) {
	t.Helper()
	crashed = newPath(t)
	to := journalPaths(crashed)
	for i, from := range journalPaths(path) {
		copyFile(t, from, to[i])
	}
	copyFile(t, path, crashed)
	return crashed
}

// markOf returns the mark of a store that is closed or was abandoned.
func markOf(t *testing.T, path string) (m mark) {
	t.Helper()
	bolt, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	err = bolt.View(func(tx *bbolt.Tx) error {
		row, err := getIn(tx, metaTable, journalKey)
		if err == nil {
			m, err = decodeMark(row)
		}
		return err
	})
	if err := errors.Join(err, bolt.Close()); err != nil {
		t.Fatal(err)
	}
	return m
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		err = os.WriteFile(to, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// After a crash the next start reads the journal. After a proper end there is no journal.
func TestJournalIsReadBack(t *testing.T) {
	const n = 100
	path := abandoned(t, n)
	for range 2 { // once from the journal, once without
		db, err := Open(Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if v, err := db.Get("t", fmt.Appendf(nil, "%04d", i)); err != nil || string(v) != fmt.Sprint(i) {
				t.Fatalf("row %d is %q, %v", i, v, err)
			}
		}
		if v, err := db.Get("last", []byte("k")); err != nil || string(v) != fmt.Sprint(n-1) {
			t.Fatalf("the last row is %q, %v", v, err)
		}
		if err := errors.Join(db.Check(), db.Close()); err != nil {
			t.Fatal(err)
		}
		if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); err != nil || len(left) != 1 {
			t.Fatalf("left: %v, %v", left, err)
		}
	}
}

// A journal may end in the middle of a record, wherever: its last commits were not acknowledged. Everything before is
// there, in order and complete. Whether a flipped bit is damage or such an end depends on what follows: a commit with
// others behind it must not get lost silently.
func TestJournalCutAndDamaged(t *testing.T) {
	const n = 40
	path := abandoned(t, n)
	var full string // the current journal file
	var whole []byte
	for i, p := range journalPaths(path) {
		if data, err := os.ReadFile(p); err == nil {
			if run, err := decodeFile(data, markOf(t, path).salts[i]); err != nil {
				t.Fatal(err)
			} else if len(run) == n/2 {
				full, whole = p, data
			}
		}
	}
	used := len(bytes.TrimRight(whole, "\x00"))
	for at := 0; at < used; at += 29 {
		try := func(what string, data []byte) {
			t.Helper()
			to := newPath(t)
			copyFile(t, path, to)
			for i, p := range journalPaths(path) {
				copyFile(t, p, journalPaths(to)[i])
				if p == full {
					if err := os.WriteFile(journalPaths(to)[i], data, 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			db, err := Open(Options{Path: to})
			if errors.Is(err, kv.ErrDamaged) && what == "flipped" {
				if db, err := Open(Options{Path: to}); !errors.Is(err, kv.ErrDamaged) {
					t.Errorf("%s at %d: opened again: %v", what, at, err)
					db.Close()
				}
				return
			}
			if err != nil {
				t.Fatalf("%s at %d: %v", what, at, err)
			}
			defer db.Close()
			rows := 0
			if err := db.Scan("t", nil, func(key, value []byte) error {
				if string(key) != fmt.Sprintf("%04d", rows) || string(value) != fmt.Sprint(rows) {
					t.Errorf("%s at %d: row %d is %q: %q", what, at, rows, key, value)
				}
				rows++
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			last, err := db.Get("last", []byte("k"))
			if err != nil || string(last) != fmt.Sprint(rows-1) {
				t.Errorf("%s at %d: half a commit: %d rows, and the last is %q, %v", what, at, rows, last, err)
			}
			if rows < n/2 || what == "flipped" && rows < n-1 {
				t.Errorf("%s at %d: only %d rows are there", what, at, rows)
			}
		}
		try("cut", append(bytes.Clone(whole[:at]), make([]byte, len(whole)-at)...))
		flipped := bytes.Clone(whole)
		flipped[at] ^= 1 << (at % 8)
		try("flipped", flipped)
	}
}

// A journal that cannot be read, for whatever reason, is kept: what is in it may be nowhere else.
func TestUnreadableJournalIsKept(t *testing.T) {
	const n = 40
	path := abandoned(t, n)
	both := journalPaths(path)
	journals := slices.DeleteFunc(both[:], func(journal string) bool {
		_, err := os.Stat(journal)
		return errors.Is(err, fs.ErrNotExist)
	})
	for _, journal := range journals { // a directory cannot be read
		if err := errors.Join(os.Rename(journal, journal+".aside"), os.Mkdir(journal, 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if db, err := Open(Options{Path: path}); err == nil {
			db.Close()
			t.Fatal("opened without its journal")
		}
	}
	for _, journal := range journals {
		if err := errors.Join(os.Remove(journal), os.Rename(journal+".aside", journal)); err != nil {
			t.Fatal(err)
		}
	}
	db, err := Open(Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if last, err := db.Get("last", []byte("k")); err != nil || string(last) != fmt.Sprint(n-1) {
		t.Errorf("the last commit is %q, %v", last, err)
	}
}

// Checkpoints run beside commits, over both files, many times.
func TestJournalTurns(t *testing.T) {
	registry := prometheus.NewRegistry()
	db := run(t, Options{Path: newPath(t), Registerer: registry})
	value := make([]byte, 1<<20)
	for i := range 60 {
		value[0] = byte(i)
		mustCommit(t, db, kv.Write{Table: "t", Key: fmt.Appendf(nil, "%d", i%20), Value: value})
		if got, err := db.Get("t", fmt.Appendf(nil, "%d", i%20)); err != nil || got[0] != byte(i) || len(got) != len(value) {
			t.Fatalf("row %d: %v", i, err)
		}
	}
	if n := metricValue(t, registry, "voxeld_store_checkpoints_total"); n < 4 {
		t.Errorf("60 MiB were journaled with %v checkpoints", n)
	}
	all, err := contents(db)
	if err != nil || len(all) != 20 {
		t.Errorf("%d rows, %v", len(all), err)
	}
}

// FuzzJournal: whatever a journal file contains, reading it ends with records or an error.
func FuzzJournal(f *testing.F) {
	const salt = 0x0123456789abcdef
	encoded, _ := encodeRecord([]*request{{writes: []kv.Write{{Table: "t", Key: []byte("k"), Value: []byte("v")}, {Table: "u", Key: []byte("k")}}}})
	setHead(encoded, salt, 1)
	f.Add(encoded)
	f.Add(encoded[journalHead:])
	f.Fuzz(func(t *testing.T, data []byte) {
		if writes, err := decodeWrites(data); err == nil {
			again, own := encodeRecord([]*request{{writes: writes}})
			if !bytes.Equal(again[journalHead:], data) || len(own) != len(writes) {
				t.Errorf("%x was read, and %x would be written", data, again[journalHead:])
			}
		}
		if _, err := decodeFile(data, salt); err != nil && !errors.Is(err, kv.ErrDamaged) {
			t.Error(err)
		}
	})
}

// A write over a damaged row repairs it, before a checkpoint as after one.
func TestNewerRowsHideDamagedOnes(t *testing.T) {
	path := newPath(t)
	db := run(t, Options{Path: path})
	mustCommit(t, db, put1("land", "the key of a row", "as it was")...)
	if err := db.flush(func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	image, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	row := []byte("the key of a row" + "as it was")
	for at := bytes.Index(image, row); at >= 0; at = bytes.Index(image, row) {
		image[at+len(row)-1] ^= 1
		if _, err := file.WriteAt(image[at:at+len(row)], int64(at)); err != nil {
			t.Fatal(err)
		}
	}
	scan := func() (seen string, err error) {
		err = db.Scan("land", nil, func(_, value []byte) error { seen += string(value); return nil })
		return seen, err
	}
	if _, err := scan(); !errors.Is(err, kv.ErrDamaged) {
		t.Fatalf("the row is damaged: %v", err)
	}
	mustCommit(t, db, put1("land", "the key of a row", "mended")...)
	for range 2 {
		if seen, err := scan(); err != nil || seen != "mended" {
			t.Errorf("%q, %v", seen, err)
		}
		if err := db.flush(func() error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
}

// A journal without its file must not lead to a new store: acknowledged rows would be lost silently.
func TestJournalWithoutItsFile(t *testing.T) {
	path := abandoned(t, 3)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	db, err := Open(Options{Path: path})
	if !errors.Is(err, kv.ErrDamaged) || !strings.Contains(err.Error(), "is gone") {
		t.Errorf("opened with %v", err)
	}
	if err == nil {
		db.Close()
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a new file was made: %v", err)
	}
	for _, journal := range journalPaths(path) {
		if err := os.Remove(journal); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	if db, err = Open(Options{Path: path}); err != nil {
		t.Fatalf("with nothing left: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// A link to a file on a disk that is not mounted must not be replaced by a new store. Once the disk is mounted, the
// store opens.
func TestLinkToAMissingFile(t *testing.T) {
	path, file := filepath.Join(t.TempDir(), "store"), filepath.Join(t.TempDir(), "file")
	if err := os.Symlink(file, path); err != nil {
		t.Fatal(err)
	}
	db, err := Open(Options{Path: path})
	if !errors.Is(err, kv.ErrDamaged) || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "mount") {
		t.Errorf("opened with %v", err)
	}
	if err == nil {
		db.Close()
	}
	if target, err := os.Readlink(path); err != nil || target != file {
		t.Errorf("the link is gone: %q, %v", target, err)
	}
	if db, err = Open(Options{Path: file}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if db, err = Open(Options{Path: path}); err != nil {
		t.Fatalf("with the file: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// A caller of Commit writes by itself while no other goroutine does; otherwise Run does.
func TestCommitNeedsNobodyElse(t *testing.T) {
	db, err := Open(Options{Path: newPath(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.writer.writing = true // as if Run did
	committed := make(chan error, 1)
	commit := func(key string) { committed <- db.Commit(put1("t", key, "v")) }
	wait := func() {
		t.Helper()
		select {
		case err := <-committed:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("the commit waits")
		}
	}
	go commit("alone")
	wait()
	if len(db.wake) != 0 {
		t.Error("Run was woken")
	}
	db.writer.Lock()
	go commit("beside another")
	select {
	case <-db.wake:
	case <-time.After(10 * time.Second):
		t.Fatal("Run was not woken")
	}
	db.writer.Unlock()
	if err := db.withWriter(func() error { return db.writer.commit(db.dequeue(nil)) }); err != nil {
		t.Fatal(err)
	}
	wait()
	for _, key := range []string{"alone", "beside another"} {
		if v, err := db.Get("t", []byte(key)); string(v) != "v" || err != nil {
			t.Errorf("%s: %q, %v", key, v, err)
		}
	}
}

// Commits, checkpoints and flushes of many goroutines at once: nothing is lost, and none blocks forever.
func TestManyWriteByThemselves(t *testing.T) {
	path := newPath(t)
	db, err := Open(Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- db.Run(context.Background()) }()
	const writers, each = 8, 40
	value := strings.Repeat("v", 64<<10) // so that checkpoints begin
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				if err := db.Commit(put1("t", fmt.Sprintf("%d/%d", w, i), value)); err != nil {
					t.Error(err)
				}
				if i%16 == w {
					if err := db.flush(func() error { return nil }); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	if err := errors.Join(db.Close(), <-ended); err != nil {
		t.Fatal(err)
	}
	if db, err = Open(Options{Path: path}); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for w := range writers {
		for i := range each {
			if v, err := db.Get("t", fmt.Appendf(nil, "%d/%d", w, i)); len(v) != len(value) || err != nil {
				t.Fatalf("%d/%d: %d bytes, %v", w, i, len(v), err)
			}
		}
	}
}
