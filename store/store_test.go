package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	"go.etcd.io/bbolt"
	"go.uber.org/goleak"

	"github.com/voxelpopuli/voxeld/internal/kv"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(writerEnv); path != "" {
		os.Exit(writeUntilKilled(path))
	}
	goleak.VerifyTestMain(m)
}

// run opens a store and runs it until the test ends.
func run(t testing.TB, o Options) *DB {
	t.Helper()
	db, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- db.Run(context.Background()) }()
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := <-ended; err != nil && !strings.Contains(err.Error(), "closed") {
			t.Errorf("run: %v", err)
		}
	})
	return db
}

func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "voxeld.db") }

func put1(table, key, value string) []kv.Write {
	return []kv.Write{{Table: table, Key: []byte(key), Value: []byte(value)}}
}

func mustCommit(t testing.TB, db *DB, writes ...kv.Write) {
	t.Helper()
	if err := db.Commit(writes); err != nil {
		t.Fatal(err)
	}
}

// deletePrefix deletes the rows of the table whose keys begin with prefix.
func deletePrefix(db *DB, table, prefix string) error {
	var writes []kv.Write
	err := db.Keys(table, []byte(prefix), func(key []byte) error {
		writes = append(writes, kv.Write{Table: table, Key: bytes.Clone(key)})
		return nil
	})
	return errors.Join(err, db.Commit(writes))
}

// contents returns table/key → value of everything in the store.
func contents(db *DB) (map[string]string, error) {
	all := map[string]string{}
	tables := map[string]bool{}
	db.overlay.RLock()
	for _, l := range []layer{db.overlay.flushing, db.overlay.active} {
		for table := range l {
			tables[table] = true
		}
	}
	db.overlay.RUnlock()
	tx, err := db.tables.begin()
	if err != nil {
		return nil, err
	}
	err = end(tx, guard(func() error {
		return tx.ForEach(func(name []byte, _ *bbolt.Bucket) error {
			tables[string(name)] = true
			return nil
		})
	}))
	if err != nil {
		return nil, err
	}
	delete(tables, metaTable)
	for table := range tables {
		rows := 0
		err := db.Scan(table, nil, func(key, value []byte) error {
			rows++
			all[table+"/"+string(key)] = string(value)
			return nil
		})
		if err != nil {
			return nil, err
		}
		keys := 0
		err = db.Keys(table, nil, func(key []byte) error {
			if _, there := all[table+"/"+string(key)]; !there {
				return fmt.Errorf("table %s has a key %q without a row", table, key)
			}
			keys++
			return nil
		})
		if err != nil {
			return nil, err
		}
		if keys != rows {
			return nil, fmt.Errorf("table %s has %d rows and %d keys", table, rows, keys)
		}
	}
	return all, nil
}

// metricValue returns the value of a counter (summed over its labels), or the count of a histogram.
func metricValue(t *testing.T, registry *prometheus.Registry, name string, labels ...string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			if len(labels) == 0 || m.GetLabel()[0].GetValue() == labels[0] {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum
}

func TestCommitGetReopen(t *testing.T) {
	path := newPath(t)
	db := run(t, Options{Path: path})
	mustCommit(t, db,
		kv.Write{Table: "a", Key: []byte("k"), Value: []byte("first")},
		kv.Write{Table: "a", Key: []byte("k"), Value: []byte("second")},
		kv.Write{Table: "a", Key: []byte("empty"), Value: []byte{}},
		kv.Write{Table: "b", Key: []byte("k"), Value: []byte("other table")},
		kv.Write{Table: "b", Key: []byte("gone"), Value: []byte("x")},
		kv.Write{Table: "b", Key: []byte("gone")},
		kv.Write{Table: "never", Key: []byte("made")},
	)
	look := func() {
		t.Helper()
		for _, want := range []struct {
			table, key string
			value      []byte
		}{
			{"a", "k", []byte("second")},
			{"a", "empty", []byte{}},
			{"b", "k", []byte("other table")},
			{"b", "gone", nil},
			{"never", "made", nil},
			{"a", "absent", nil},
		} {
			got, err := db.Get(want.table, []byte(want.key))
			if err != nil || !bytes.Equal(got, want.value) || (got == nil) != (want.value == nil) {
				t.Errorf("Get(%s, %s) = %q, %v; want %q", want.table, want.key, got, err, want.value)
			}
		}
		if err := db.Check(); err != nil {
			t.Error(err)
		}
	}
	look()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = run(t, Options{Path: path})
	look()
}

func TestScanOrderAndPrefix(t *testing.T) {
	db := run(t, Options{Path: newPath(t)})
	for _, key := range []string{"b2", "a", "b1", "c", "b", "b\xff"} {
		mustCommit(t, db, put1("t", key, "v"+key)...)
	}
	var got []string
	err := db.Scan("t", []byte("b"), func(key, value []byte) error {
		if string(value) != "v"+string(key) {
			t.Errorf("value of %q is %q", key, value)
		}
		got = append(got, string(key))
		return nil
	})
	if want := []string{"b", "b1", "b2", "b\xff"}; err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("scan: %q, %v; want %q", got, err, want)
	}
	for from, want := range map[string][]string{"": {"b", "b1", "b2", "b\xff"}, "b1": {"b1", "b2", "b\xff"}, "b1\x00": {"b2", "b\xff"}, "c": nil} {
		got = nil
		err := db.ScanFrom("t", []byte("b"), []byte(from), func(key, _ []byte) error { got = append(got, string(key)); return nil })
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("scan from %q: %q, %v; want %q", from, got, err, want)
		}
	}
	stop := errors.New("enough")
	visits := 0
	if err := db.Scan("t", nil, func(_, _ []byte) error { visits++; return stop }); err != stop || visits != 1 {
		t.Errorf("scan did not end with visit's own error at once: %v after %d", err, visits)
	}
	if err := db.Scan("absent", nil, func(_, _ []byte) error { return stop }); err != nil {
		t.Errorf("scan of an absent table: %v", err)
	}
}

func TestVisitPanicsThrough(t *testing.T) {
	db := run(t, Options{Path: newPath(t)})
	mustCommit(t, db, put1("t", "k", "v")...)
	func() {
		defer func() {
			if recover() != "mine" {
				t.Error("a panic in visit is the caller's own and must reach it")
			}
		}()
		err := db.Scan("t", nil, func(_, _ []byte) error { panic("mine") })
		t.Errorf("scan returned %v", err)
	}()
	mustCommit(t, db, put1("t", "k2", "v")...) // no transaction was left open
}

func TestInvalidWriteFailsAlone(t *testing.T) {
	db := run(t, Options{Path: newPath(t)})
	for name, bad := range map[string]kv.Write{
		"empty key":   {Table: "t", Value: []byte("v")},
		"long key":    {Table: "t", Key: make([]byte, MaxKey+1), Value: []byte("v")},
		"long value":  {Table: "t", Key: []byte("k"), Value: make([]byte, MaxValue+1)},
		"no table":    {Key: []byte("k"), Value: []byte("v")},
		"long table":  {Table: strings.Repeat("t", MaxTable+1), Key: []byte("k")},
		"store's own": {Table: metaTable, Key: formatKey},
	} {
		good := kv.Write{Table: "t", Key: []byte("with " + name), Value: []byte("v")}
		if err := db.Commit([]kv.Write{good, bad}); err == nil {
			t.Errorf("%s: committed", name)
		}
		if v, err := db.Get("t", good.Key); v != nil || err != nil {
			t.Errorf("%s: its commit was half applied: %q, %v", name, v, err)
		}
		mustCommit(t, db, good)
	}
	mustCommit(t, db, kv.Write{Table: strings.Repeat("t", MaxTable), Key: make([]byte, MaxKey), Value: make([]byte, 1<<20)})
	if err := db.Commit(nil); err != nil {
		t.Errorf("empty commit: %v", err)
	}
	if err := db.Check(); err != nil {
		t.Error(err)
	}
}

func TestCommitWaitsForRunAndShares(t *testing.T) { synctest.Test(t, commitWaitsForRunAndShares) }

func commitWaitsForRunAndShares(t *testing.T) {
	registry := prometheus.NewRegistry()
	db, err := Open(Options{Path: newPath(t), Registerer: registry})
	if err != nil {
		t.Fatal(err)
	}
	const callers = 50
	var committed sync.WaitGroup
	for i := range callers {
		committed.Go(func() {
			if err := db.Commit(put1("t", fmt.Sprint(i), "v")); err != nil {
				t.Error(err)
			}
		})
	}
	synctest.Wait() // they all wait
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- db.Run(ctx) }()
	committed.Wait()
	if got := metricValue(t, registry, "voxeld_store_fsyncs_total"); got != 1 {
		t.Errorf("%d waiting commits took %v fsyncs, want 1: one record of the journal", callers, got)
	}
	for name, want := range map[string]float64{
		"voxeld_store_commits_total":  callers,
		"voxeld_store_writes_total":   callers,
		"voxeld_store_commit_seconds": callers,
		"voxeld_store_batch_commits":  1,
		"voxeld_store_size_bytes":     float64(db.Size()),
	} {
		if got := metricValue(t, registry, name); got != want || got == 0 {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}

	cancel()
	if err := <-ended; err != nil {
		t.Errorf("run: %v", err)
	}
	if err := db.Commit(put1("t", "late", "v")); !errors.Is(err, ErrClosed) {
		t.Errorf("commit after Run ended: %v", err)
	}
	if v, err := db.Get("t", []byte("0")); string(v) != "v" || err != nil {
		t.Errorf("reading after Run ended: %q, %v", v, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if left, err := registry.Gather(); len(left) != 0 || err != nil {
		t.Errorf("metrics are left behind: %v, %v", left, err)
	}
	if err := db.Run(context.Background()); err == nil {
		t.Error("a closed store ran")
	}
}

func TestEndDrainsTheQueue(t *testing.T) {
	db, err := Open(Options{Path: newPath(t)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // Run ends at once; what was queued before must be committed all the same
	r := &request{writes: put1("t", "k", "v"), answer: make(chan error, 1)}
	db.mu.queue = append(db.mu.queue, r)
	if err := db.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-r.answer; err != nil {
		t.Errorf("queued commit: %v", err)
	}
	if v, err := db.Get("t", []byte("k")); string(v) != "v" || err != nil {
		t.Errorf("Get = %q, %v", v, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestCloseAnswersEverybody(t *testing.T) {
	db, err := Open(Options{Path: newPath(t)})
	if err != nil {
		t.Fatal(err)
	}
	waiting := &request{writes: put1("t", "k", "v"), answer: make(chan error, 1)}
	db.mu.queue = append(db.mu.queue, waiting)
	for range 2 {
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-waiting.answer; !errors.Is(err, ErrClosed) {
		t.Errorf("waiting commit: %v", err)
	}
	_, getErr := db.Get("t", []byte("k"))
	for name, err := range map[string]error{
		"Commit": db.Commit(put1("t", "k", "v")),
		"Get":    getErr,
		"Scan":   db.Scan("t", nil, func(_, _ []byte) error { return nil }),
		"Check":  db.Check(),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s of a closed store: %v", name, err)
		}
	}
	if db.Size() != 0 {
		t.Error("a closed store has a size")
	}
}

func TestBatchesKeepCommitsWhole(t *testing.T) {
	commits := func(n, writes, size int) []*request {
		queue := make([]*request, n)
		for i := range queue {
			queue[i] = &request{writes: make([]kv.Write, writes), bytes: size}
		}
		return queue
	}
	for _, c := range []struct {
		queue []*request
		want  int
	}{
		{commits(10, 1, 100), 10},
		{commits(5000, 1, 1), maxBatchWrites},
		{commits(10, 1, maxBatchBytes/4), 4},
		{commits(3, maxBatchWrites+1, 1), 1},
		{commits(3, 1, maxBatchBytes+1), 1},
		{append(commits(1, 1, 1), commits(1, 1, maxBatchBytes)...), 1},
	} {
		if got := batchLen(c.queue); got != c.want {
			t.Errorf("%d commits of %d writes and %d bytes: %d in a batch, want %d",
				len(c.queue), len(c.queue[0].writes), c.queue[0].bytes, got, c.want)
		}
	}
}
