package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/internal/kv"
)

// step is an action of a caller in TestTwin.
type step struct {
	writes []kv.Write // or:
	delete string     // prefix to delete from table "a"
}

// twin applies the step to a map as to the store.
func (s step) twin(m map[string]string) {
	for _, w := range s.writes {
		name := w.Table + "/" + string(w.Key)
		if delete(m, name); w.Value != nil {
			m[name] = string(w.Value)
		}
	}
	if s.delete != "" {
		maps.DeleteFunc(m, func(name, _ string) bool { return strings.HasPrefix(name, "a/"+s.delete) })
	}
}

func drawStep(caller int) *rapid.Generator[step] {
	return rapid.Custom(func(t *rapid.T) step {
		// Each caller has keys of its own, so that the twin knows the result.
		key := func() []byte { return fmt.Appendf(nil, "%d-%d", caller, rapid.IntRange(0, 30).Draw(t, "key")) }
		if rapid.IntRange(0, 9).Draw(t, "what") == 0 {
			prefix := key()
			return step{delete: string(prefix[:rapid.IntRange(2, len(prefix)).Draw(t, "length")])}
		}
		var s step
		for range rapid.IntRange(1, 5).Draw(t, "writes") {
			w := kv.Write{Table: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "table"), Key: key()}
			if rapid.IntRange(0, 2).Draw(t, "put") > 0 {
				size := rapid.SampledFrom([]int{0, 1, 20, 300, 5000}).Draw(t, "size")
				w.Value = bytes.Repeat([]byte{byte(rapid.IntRange(0, 255).Draw(t, "value"))}, size)
			}
			s.writes = append(s.writes, w)
		}
		return s
	})
}

// Several callers at once, each beside a map with the same steps: a caller reads after its own commits what its map
// contains, and so does everything after closing and reopening.
func TestTwin(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		path := newPath(t)
		want := map[string]string{}
		for range rapid.IntRange(1, 2).Draw(rt, "lives") {
			db, err := Open(Options{Path: path})
			if err != nil {
				rt.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- db.Run(context.Background()) }()

			var callers sync.WaitGroup
			twins := make([]map[string]string, 4)
			for caller := range twins {
				mine := fmt.Sprintf("/%d-", caller)
				twins[caller] = maps.Clone(want)
				maps.DeleteFunc(twins[caller], func(name, _ string) bool { return !strings.Contains(name, mine) })
				steps := rapid.SliceOfN(drawStep(caller), 0, 6).Draw(rt, "steps")
				callers.Go(func() {
					for _, s := range steps {
						if err := act(db, s, twins[caller], mine[1:]); err != nil {
							rt.Errorf("caller %d: %v", caller, err)
						}
					}
				})
			}
			callers.Wait()
			want = map[string]string{}
			for _, twin := range twins {
				maps.Copy(want, twin)
			}
			got, err := contents(db)
			if err := errors.Join(err, db.Check(), db.Close(), <-ended); err != nil {
				rt.Fatal(err)
			}
			if !maps.Equal(got, want) {
				rt.Fatalf("the store holds %v, its twin %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
			}
		}
		db, err := Open(Options{Path: path})
		if err != nil {
			rt.Fatal(err)
		}
		got, err := contents(db)
		if err := errors.Join(err, db.Close()); err != nil {
			rt.Fatal(err)
		}
		if !maps.Equal(got, want) {
			rt.Fatalf("opened again the store holds %v, its twin %v", got, want)
		}
	})
}

// act applies the step to the store and its twin and compares this caller's keys in table a.
func act(db *DB, s step, twin map[string]string, prefix string) error {
	var err error
	if s.delete != "" {
		err = deletePrefix(db, "a", s.delete)
	} else {
		err = db.Commit(s.writes)
	}
	if err != nil {
		return err
	}
	s.twin(twin)
	for _, w := range s.writes {
		got, err := db.Get(w.Table, w.Key)
		if want, there := twin[w.Table+"/"+string(w.Key)]; err != nil || string(got) != want || (got != nil) != there {
			return fmt.Errorf("got %q, %w at %s of %s; want %q", got, err, w.Key, w.Table, want)
		}
	}
	seen := 0
	err = db.Scan("a", []byte(prefix), func(key, value []byte) error {
		seen++
		if want := twin["a/"+string(key)]; want != string(value) {
			return fmt.Errorf("scanned %q at %s, want %q", value, key, want)
		}
		return nil
	})
	for name := range twin {
		if strings.HasPrefix(name, "a/") {
			seen--
		}
	}
	if err == nil && seen != 0 {
		err = fmt.Errorf("the scan saw %+d entries more than there are", seen)
	}
	return err
}

// Sequential callers pay for their fsyncs alone; concurrent callers share them.
func BenchmarkCommit(b *testing.B) {
	for _, callers := range []int{1, 8, 64, 512} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			db := run(b, Options{Path: newPath(b)})
			value := make([]byte, 100)
			work := make(chan int)
			var done sync.WaitGroup
			for range callers {
				done.Go(func() {
					for i := range work {
						if err := db.Commit([]kv.Write{{Table: "t", Key: fmt.Appendf(nil, "%d", i%50_000), Value: value}}); err != nil {
							b.Error(err)
						}
					}
				})
			}
			b.ResetTimer()
			for i := range b.N {
				work <- i
			}
			close(work)
			done.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
		})
	}
}
