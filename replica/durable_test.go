package replica

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// TestCommittedAfterFsync blocks the disk: no entry may be delivered before its commit returned (etcd #14370).
func TestCommittedAfterFsync(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDisk()
		h := launch(t, Options{Storage: d})
		g := h.mustOpen(t, alone(7))
		leads(t, g)
		synctest.Wait()

		d.hold = make(chan struct{})
		if err := g.Propose([]byte("edit")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the host blocks in Commit
		if got := g.Dequeue(); got != nil {
			t.Fatalf("delivered before the disk has it: %v", got)
		}
		stored := d.rows(raftlog.TableLog)
		close(d.hold)
		synctest.Wait()
		got := g.Dequeue()
		if !slices.Equal(texts(got), []string{"edit"}) {
			t.Fatalf("delivered %v", got)
		}
		if d.rows(raftlog.TableLog) != stored+1 {
			t.Fatal("delivered, but not in the log table")
		}
	})
}

// TestGroupCommit: input that arrives during an fsync shares the next one, over all groups.
func TestGroupCommit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDisk()
		h := launch(t, Options{Storage: d})
		var groups []*Group
		for id := range uint64(10) {
			g := h.mustOpen(t, alone(id+1))
			leads(t, g)
			groups = append(groups, g)
		}
		<-time.After(time.Second) // everything lazy is stored
		synctest.Wait()
		d.hold = make(chan struct{})
		propose := func(n int) {
			for i := range n {
				if err := groups[i%10].Propose([]byte(numbered("e", i))); err != nil {
					t.Fatal(err)
				}
			}
		}
		propose(1)
		synctest.Wait() // its commit is in progress
		propose(1000)
		before := d.count()
		d.hold <- struct{}{}
		d.hold <- struct{}{}
		synctest.Wait()
		if n := d.count() - before; n != 2 {
			t.Fatalf("%d commits for 1 and then 1,000 entries, expected 2", n)
		}
		close(d.hold)
		synctest.Wait()
		total := 0
		for _, g := range groups {
			total += len(texts(g.Dequeue()))
		}
		if total != 1001 {
			t.Fatalf("%d entries were delivered", total)
		}
	})
}

func TestAppliedIsStoredSoonAndInOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDisk()
		h := launch(t, Options{Storage: d})
		g := h.mustOpen(t, alone(7))
		leads(t, g)
		<-time.After(time.Second)
		if err := g.Propose([]byte("one")); err != nil {
			t.Fatal(err)
		}
		index := lastIndex(committed(t, g, 1))
		g.ReportApplied(index, row("k", "old"))
		g.ReportApplied(index, row("k", "new"))
		synctest.Wait()
		if v, _ := d.Get("world", []byte("k")); v != nil {
			t.Fatal("stored without need: an fsync of its own for each entry")
		}
		<-time.After(50 * time.Millisecond)
		synctest.Wait()
		if v, _ := d.Get("world", []byte("k")); string(v) != "new" {
			t.Fatalf("after 50 ms the table contains %q", v)
		}
		value, _ := d.Get(raftlog.TableState, raftlog.StateKey(7, raftlog.KindState))
		if s, err := raftlog.DecodeState(value); err != nil || s.Applied != index {
			t.Fatalf("stored applied index %d, %v, expected %d", s.Applied, err, index)
		}
	})
}

// TestAppliedRidesWithTheNextFsync: under load the applied writes need no commit of their own.
func TestAppliedRidesWithTheNextFsync(t *testing.T) {
	d := newDisk()
	h := newTestHost(t, d)
	g := openNow(t, h, alone(7))
	for i := range 10 {
		if err := g.Propose([]byte(numbered("e", i))); err != nil {
			t.Fatal(err)
		}
		before := d.count()
		pump(h)
		if n := d.count() - before; n != 1 {
			t.Fatalf("%d commits for an entry", n)
		}
		if v, _ := d.Get("world", []byte("k")); i > 0 && string(v) != numbered("v", i-1) {
			t.Fatalf("the commit of entry %d did not bring what was applied before: %q", i, v)
		}
		g.ReportApplied(lastIndex(g.Dequeue()), row("k", numbered("v", i)))
	}
}

func TestReopenDeliversFromApplied(t *testing.T) {
	d := newDisk()
	h := newTestHost(t, d)
	g := openNow(t, h, alone(7))
	if g.AppliedIndex() != raftlog.FoundingIndex {
		t.Fatalf("applied index %d of a founded group", g.AppliedIndex())
	}
	for i := range 5 {
		if err := g.Propose([]byte(numbered("e", i))); err != nil {
			t.Fatal(err)
		}
	}
	pump(h)
	all := g.Dequeue()
	second := all[2].(Committed) // after Leadership, e0, e1
	g.ReportApplied(second.Index, row("k", "two"))
	h.committer.flushDue = true
	pump(h)

	// The process dies: another host opens the same disk.
	h = newTestHost(t, d)
	g = openNow(t, h, Founding{Group: 7, Members: []string{"me", "other"}}) // the stored configuration wins
	if g.AppliedIndex() != second.Index {
		t.Fatalf("applied index %d, expected %d", g.AppliedIndex(), second.Index)
	}
	if !slices.Equal(g.Members(), []string{"me"}) {
		t.Fatalf("members %v", g.Members())
	}
	again := g.Dequeue()
	if want := []string{"e00002", "e00003", "e00004"}; !slices.Equal(texts(again), want) {
		t.Fatalf("delivered %v, expected %v", texts(again), want)
	}
	if l, ok := again[len(again)-1].(Leadership); !ok || !l.Self || l.Leader != "me" {
		t.Fatalf("leadership must come behind the old entries: %v", again)
	}
}

// After a crash the members may have changed behind the entries that are delivered again. The owner is given those as
// of the applied index, and the change in its place.
func TestReopenHasAppliedConfiguration(t *testing.T) {
	d := newDisk()
	h := newTestHost(t, d)
	g := openNow(t, h, alone(7))
	if err := g.Propose([]byte("e")); err != nil {
		t.Fatal(err)
	}
	pump(h)
	if err := g.AddLearner("other"); err != nil {
		t.Fatal(err)
	}
	pump(h)
	if n := len(g.Configuration().Members); n != 2 {
		t.Fatalf("%d members", n)
	}

	h = newTestHost(t, d) // the process dies
	g = openNow(t, h, alone(7))
	pump(h)
	if now, applied := g.Configuration(), g.AppliedConfiguration(); len(now.Members) != 2 || len(applied.Members) != 1 {
		t.Fatalf("members %v, as of the applied index %v", now, applied)
	}
	again := g.Dequeue()
	at := slices.IndexFunc(again, func(d Delivery) bool { c, ok := d.(Configured); return ok && len(c.Members) == 2 })
	if at < 1 || !slices.Equal(texts(again[:at]), []string{"e"}) {
		t.Fatalf("delivered %v", again)
	}
}

func TestOpenCloseRemove(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDisk()
		h := launch(t, Options{Storage: d})
		ctx := context.Background()
		g := h.mustOpen(t, alone(7))
		if _, err := h.Open(ctx, alone(7)); !errors.Is(err, ErrOpen) {
			t.Fatalf("opened twice: %v", err)
		}
		if err := h.Remove(7); !errors.Is(err, ErrOpen) {
			t.Fatalf("removed while open: %v", err)
		}
		for _, wrong := range []Founding{{}, {Group: 8}, {Group: 8, Members: []string{"other"}}, {Group: 8, Members: []string{"me", "me"}}, {Group: 8, Members: []string{"me", ""}}} {
			if _, err := h.Open(ctx, wrong); err == nil {
				t.Fatalf("opened %+v", wrong)
			}
		}
		leads(t, g)
		if err := g.Propose([]byte("x")); err != nil {
			t.Fatal(err)
		}
		g.ReportApplied(lastIndex(committed(t, g, 1)), row("k", "v"))
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		if v, _ := d.Get("world", []byte("k")); string(v) != "v" {
			t.Fatal("Close returned before the applied writes were stored")
		}
		if err := g.Propose([]byte("x")); !errors.Is(err, ErrClosed) {
			t.Fatalf("proposed to a closed group: %v", err)
		}
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		h.mustOpen(t, alone(3))
		if has, err := h.Has(7); err != nil || !has {
			t.Fatal("a closed group is stored still", err)
		}
		if groups, err := h.Groups(); err != nil || !slices.Equal(groups, []uint64{3, 7}) {
			t.Fatal(groups, err)
		}
		if err := h.Remove(7, kv.Write{Table: "world", Key: []byte("k")}); err != nil {
			t.Fatal(err)
		}
		if has, _ := h.Has(7); has || d.rows("world") != 0 {
			t.Fatal("a removed group is there still")
		}
		if _, err := h.Open(ctx, alone(7)); !errors.Is(err, ErrTombstone) {
			t.Fatalf("opened a removed group: %v", err)
		}
		if err := h.Remove(7); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Open(ctx, alone(7)); !errors.Is(err, ErrTombstone) {
			t.Fatalf("the tombstone did not outlive a second removal: %v", err)
		}
	})
}

func TestOpenAbandoned(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDisk()
		h := launch(t, Options{Storage: d})
		synctest.Wait()
		d.hold = make(chan struct{})
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := h.Open(ctx, alone(7)); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		close(d.hold)
		synctest.Wait()
		h.mustOpen(t, alone(7)) // not ErrOpen: it had no owner
	})
}

func TestStopFlushesAndFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDisk()
		h := launch(t, Options{Storage: d})
		g := h.mustOpen(t, alone(7))
		leads(t, g)
		if err := g.Propose([]byte("x")); err != nil {
			t.Fatal(err)
		}
		g.ReportApplied(lastIndex(committed(t, g, 1)), row("k", "v"))
		if err := h.stop(); err != nil {
			t.Fatal(err)
		}
		if v, _ := d.Get("world", []byte("k")); string(v) != "v" {
			t.Fatal("stopped without storing what was applied")
		}
		if f, ok := g.Dequeue()[0].(Failed); !ok || !errors.Is(f.Err, ErrStopped) {
			t.Fatal("the owner got no delivery")
		}
		if err := g.Propose([]byte("x")); !errors.Is(err, ErrStopped) {
			t.Fatal(err)
		}
		if _, err := h.Open(context.Background(), alone(8)); !errors.Is(err, ErrStopped) {
			t.Fatal(err)
		}
		if err := errors.Join(g.Close(), h.Remove(9)); !errors.Is(err, ErrStopped) {
			t.Fatal(err)
		}
		if err := h.Run(context.Background()); err == nil {
			t.Fatal("ran twice")
		}
	})
}

func TestDamagedGroupIsRefused(t *testing.T) {
	damage := map[string]func(*disk){
		"gap":       func(d *disk) { delete(d.tables[raftlog.TableLog], string(raftlog.LogKey(7, 4))) },
		"lost tail": func(d *disk) { delete(d.tables[raftlog.TableLog], string(raftlog.LogKey(7, 6))) },
		"short state": func(d *disk) {
			d.tables[raftlog.TableState][string(raftlog.StateKey(7, raftlog.KindState))] = []byte{1}
		},
		"no state":      func(d *disk) { delete(d.tables[raftlog.TableState], string(raftlog.StateKey(7, raftlog.KindState))) },
		"no config":     func(d *disk) { delete(d.tables[raftlog.TableState], string(raftlog.StateKey(7, raftlog.KindConfig))) },
		"unknown entry": func(d *disk) { d.tables[raftlog.TableLog][string(raftlog.LogKey(7, 4))][0] = 9 },
	}
	for name, spoil := range damage {
		t.Run(name, func(t *testing.T) {
			d := newDisk()
			h := newTestHost(t, d)
			g := openNow(t, h, alone(7))
			for i := range 4 { // entries 3 to 6, behind the leader's empty one
				if err := g.Propose([]byte(numbered("e", i))); err != nil {
					t.Fatal(err)
				}
			}
			pump(h)
			h.committer.flushDue = true
			pump(h)
			spoil(d)
			h = newTestHost(t, d)
			var err error
			h.open(alone(7), func(_ *Group, e error) { err = e })
			if !errors.Is(err, kv.ErrDamaged) {
				t.Fatalf("opened a damaged group: %v", err)
			}
		})
	}
}
