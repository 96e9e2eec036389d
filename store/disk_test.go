package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.etcd.io/bbolt"

	"github.com/voxelpopuli/voxeld/internal/kv"
)

// After an error of the disk its contents are unknown: no further commit may report success.
func TestFailingDiskEndsWriting(t *testing.T) {
	registry := prometheus.NewRegistry()
	db, err := Open(Options{Path: newPath(t), Registerer: registry})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- db.Run(context.Background()) }()
	mustCommit(t, db, put1("t", "k", "v")...)
	// Every write fails from now on; the memory map stays.
	if err := errors.Join(db.tables.file.Close(), db.writer.journal.files[0].Close()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		err := db.Commit(put1("t", "k2", "v"))
		if !errors.Is(err, os.ErrClosed) || errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "restart") {
			t.Errorf("commit to a failing disk: %v", err)
		}
	}
	if err := <-ended; !errors.Is(err, os.ErrClosed) {
		t.Errorf("run: %v", err)
	}
	if got := metricValue(t, registry, "voxeld_store_failed_commits_total", "io"); got != 2 {
		t.Errorf("failures counted: %v", got)
	}
	if v, err := db.Get("t", []byte("k")); string(v) != "v" || err != nil {
		t.Errorf("reading goes on: %q, %v", v, err)
	}
	if err := db.Check(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("check of a store that lacks what is in its journal: %v", err)
	}
	if err := db.Close(); err == nil {
		t.Error("closing does not report the lost file")
	}
}

// On a full disk commits that the free pages can hold succeed between those that are refused. The log says once that
// the disk is full, and once that it is not.
func TestFullDiskIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		w := writer{tables: &tables{path: "voxeld.db"}, log: slog.New(slog.NewTextHandler(&log, nil))}
		count := func(text string) int { return strings.Count(log.String(), text) }
		for range 120 {
			w.logFull(true, ErrFull)
			w.logFull(false, nil)
			time.Sleep(refusedLately / 2)
		}
		if full, again := count("the store is full"), count("has space again"); full != 1 || again != 0 {
			t.Errorf("for an hour: full %d times, space again %d times", full, again)
		}
		w.logFull(false, errors.New("input/output error"))
		time.Sleep(refusedLately / 2)
		w.logFull(false, errors.New("input/output error"))
		if count("has space again") != 0 {
			t.Error("a commit that failed for another reason is taken for space")
		}
		w.logFull(false, nil)
		w.logFull(false, nil)
		w.logFull(true, ErrFull)
		if full, again := count("the store is full"), count("has space again"); full != 2 || again != 1 {
			t.Errorf("with space, and full again: full %d times, space again %d times", full, again)
		}
	})
}

func TestFullStoreKeepsReadingAndDeleting(t *testing.T) {
	registry := prometheus.NewRegistry()
	var log strings.Builder
	db := run(t, Options{Path: newPath(t), MaxSize: 4 << 20, Registerer: registry, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	block := make([]byte, 100_000)
	var err error
	n := 0
	for ; err == nil && n < 100; n++ {
		err = db.Commit([]kv.Write{{Table: "t", Key: fmt.Appendf(nil, "%03d", n), Value: block}})
	}
	n-- // the last one failed
	if !errors.Is(err, ErrFull) || n < 10 {
		t.Fatalf("after %d commits: %v", n, err)
	}
	if got := metricValue(t, registry, "voxeld_store_failed_commits_total", "full"); got != 1 {
		t.Errorf("full commits counted: %v", got)
	}
	if err := db.flush(func() error { return nil }); err != nil { // nothing had to be written: that does not prove that there is space
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "the store is full") || strings.Contains(log.String(), "has space again") {
		t.Errorf("got is %s", log.String())
	}
	if db.Size() > 4<<20 {
		t.Errorf("the file has %d bytes", db.Size())
	}

	// In one batch with a commit that does not fit, the one that deletes must succeed.
	big := &request{writes: []kv.Write{{Table: "t", Key: []byte("big"), Value: make([]byte, 3<<20)}}, answer: make(chan error, 1)}
	free := &request{writes: []kv.Write{{Table: "t", Key: []byte("000")}}, answer: make(chan error, 1)}
	last := &request{writes: put1("t", "small", "v"), answer: make(chan error, 1)}
	db.mu.Lock()
	db.mu.queue = append(db.mu.queue, big, free, last)
	db.mu.Unlock()
	db.wake <- struct{}{}
	if err := <-big.answer; !errors.Is(err, ErrFull) {
		t.Errorf("a commit too big for the file: %v", err)
	}
	if err := <-free.answer; err != nil {
		t.Errorf("deleting from a full store: %v", err)
	}
	if err := <-last.answer; err != nil {
		t.Errorf("a small commit beside one too big: %v", err)
	}

	all, err := contents(db)
	if err != nil || len(all) != n-1+1 {
		t.Errorf("%d entries, %v; want %d", len(all), err, n)
	}
	if err := deletePrefix(db, "t", "0"); err != nil {
		t.Fatal(err)
	}
	mustCommit(t, db, kv.Write{Table: "t", Key: []byte("again"), Value: block})
	if err := db.Check(); err != nil {
		t.Error(err)
	}
}

func TestFormatOfAnotherProgram(t *testing.T) {
	write := func(path string, fill func(tx *bbolt.Tx) error) {
		t.Helper()
		db, err := bbolt.Open(path, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(db.Update(fill), db.Close()); err != nil {
			t.Fatal(err)
		}
	}
	foreign := newPath(t)
	write(foreign, func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("etcd")); return err })
	paths := []string{foreign}
	for _, format := range []byte{Format - 1, Format + 1} {
		other := newPath(t)
		write(other, func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucket([]byte(metaTable))
			if err != nil {
				return err
			}
			return b.Put(formatKey, seal(metaTable, formatKey, []byte{0, 0, 0, format}))
		})
		paths = append(paths, other)
	}
	for _, path := range paths {
		db, err := Open(Options{Path: path})
		if !errors.Is(err, ErrFormat) || db != nil {
			t.Errorf("%v, want ErrFormat", err)
		}
		// The file is unlocked again.
		if b, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: 1}); err != nil {
			t.Errorf("the file stayed locked: %v", err)
		} else if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMissingDirectory(t *testing.T) {
	_, err := Open(Options{Path: filepath.Join(t.TempDir(), "no", "voxeld.db")})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}
