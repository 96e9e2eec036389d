package replica

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/replica/raftframe"
	"github.com/voxelpopuli/voxeld/replica/raftgroup"
	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// TestFullDisk: while storage refuses, nothing is acknowledged and all owners get the reason. Then it recovers by
// itself: nothing acknowledged is lost, and nothing unacknowledged reappears.
func TestFullDisk(t *testing.T) {
	for _, torn := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			d := newDisk()
			d.torn = torn
			h := launch(t, Options{Storage: d})
			a, b := h.mustOpen(t, alone(1)), h.mustOpen(t, alone(2))
			leads(t, a)
			leads(t, b)
			if err := a.Propose([]byte("before")); err != nil {
				t.Fatal(err)
			}
			a.ReportApplied(lastIndex(committed(t, a, 1)), row("k", "before"))
			synctest.Wait()

			d.setRefuse(full)
			if err := a.Propose([]byte("lost")); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			for _, g := range []*Group{a, b} {
				l, ok := g.Dequeue()[0].(Leadership)
				if !ok || l.Self || !errors.Is(l.Cause, ErrStorage) || !errors.Is(l.Cause, errFull) {
					t.Fatalf("got %+v", l)
				}
				if err := g.Propose([]byte("x")); !errors.Is(err, ErrStorage) || !errors.Is(err, errFull) {
					t.Fatalf("proposed on a full disk: %v", err)
				}
			}
			<-time.After(10 * time.Second)
			if got := append(a.Dequeue(), b.Dequeue()...); got != nil {
				t.Fatalf("delivered on a full disk: %v", got)
			}

			d.setRefuse(nil)
			if got := append(texts(leads(t, a)), texts(leads(t, b))...); got != nil {
				t.Fatalf("delivered %v, which was refused", got)
			}
			if v, _ := d.Get("world", []byte("k")); string(v) != "before" {
				t.Fatalf("the owner's applied write was lost: %q", v)
			}
			for _, g := range []*Group{a, b} {
				if err := g.Propose([]byte("after")); err != nil {
					t.Fatal(err)
				}
				committed(t, g, 1)
			}
			if err := h.stop(); err != nil {
				t.Fatal(err)
			}
			again := launch(t, Options{Storage: d})
			if got := texts(leads(t, again.mustOpen(t, alone(1)))); !slices.Equal(got, []string{"after"}) {
				t.Fatalf("a restart delivers %v", got)
			}
		})
	}
}

// TestNearlyFullDisk: a disk that accepts small rows but no edits does not count as recovered.
func TestNearlyFullDisk(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDisk()
		h := launch(t, Options{Storage: d})
		a := h.mustOpen(t, alone(1))
		leads(t, a)
		d.setRefuse(full)
		if err := a.Propose([]byte("lost")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if l, ok := a.Dequeue()[0].(Leadership); !ok || l.Self {
			t.Fatalf("got %+v", l)
		}
		// Small rows fit again, as on a disk that is nearly full. The stall must not end before there is room.
		d.setRefuse(func(writes []kv.Write) error {
			size := 0
			for _, w := range writes {
				size += len(w.Value)
			}
			if size > 1000 {
				return errFull
			}
			return nil
		})
		<-time.After(10 * time.Second)
		if got := a.Dequeue(); got != nil {
			t.Fatalf("got %v on a nearly full disk", got)
		}
		d.setRefuse(nil)
		leads(t, a)
		if v, err := d.Get(raftlog.TableState, raftlog.StateKey(0, raftlog.KindProbe)); err != nil || v != nil {
			t.Fatalf("the probe was left behind: %d bytes, %v", len(v), err)
		}
	})
}

// TestPoison: writes that storage never accepts end only the group of their owner.
func TestPoison(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDisk()
		errPoison := errors.New("empty key")
		d.refuse = func(writes []kv.Write) error {
			if slices.ContainsFunc(writes, func(w kv.Write) bool { return len(w.Key) == 0 }) {
				return errPoison
			}
			return nil
		}
		h := launch(t, Options{Storage: d})
		good, bad := h.mustOpen(t, alone(1)), h.mustOpen(t, alone(2))
		leads(t, good)
		leads(t, bad)
		bad.ReportApplied(raftlog.FoundingIndex, row("", "x"))
		good.ReportApplied(raftlog.FoundingIndex, row("k", "v"))
		<-time.After(time.Second)
		synctest.Wait()
		got := bad.Dequeue()
		if f, ok := got[len(got)-1].(Failed); !ok || !errors.Is(f.Err, errPoison) {
			t.Fatalf("the owner of the bad writes got %v", got)
		}
		leads(t, good)
		if v, _ := d.Get("world", []byte("k")); string(v) != "v" {
			t.Fatal("the neighbour's write is missing")
		}
		if err := bad.Propose([]byte("x")); !errors.Is(err, errPoison) {
			t.Fatal(err)
		}
		leads(t, h.mustOpen(t, alone(2))) // a failed group can be opened again
	})
}

func TestFullDiskOpensAndCloses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDisk()
		h := launch(t, Options{Storage: d})
		g, other := h.mustOpen(t, alone(1)), h.mustOpen(t, alone(2))
		leads(t, g)
		leads(t, other)
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
		d.setRefuse(full)
		g.ReportApplied(raftlog.FoundingIndex, row("k", "v"))
		<-time.After(time.Second)
		if _, err := h.Open(t.Context(), alone(3)); !errors.Is(err, errFull) {
			t.Fatalf("founded on a full disk: %v", err)
		}
		other = h.mustOpen(t, alone(2)) // what is stored can be opened for reading
		if err := other.Propose([]byte("x")); !errors.Is(err, errFull) {
			t.Fatal(err)
		}
		if err := h.Remove(9); !errors.Is(err, ErrStorage) {
			t.Fatal(err)
		}
		if err := g.Close(); !errors.Is(err, errFull) {
			t.Fatalf("closed without storing: %v", err)
		}
		d.setRefuse(nil)
		leads(t, other)
		leads(t, h.mustOpen(t, alone(1)))
		leads(t, h.mustOpen(t, alone(3)))
	})
}

// TestStopAfterFullDisk: a host that stops stores its pending data if storage finally accepts it, and otherwise returns
// an error.
func TestStopAfterFullDisk(t *testing.T) {
	for _, freed := range []bool{true, false} {
		bubble(t, func(t *testing.T) {
			d := newDisk()
			h := launch(t, Options{Storage: d})
			g := h.mustOpen(t, alone(1))
			leads(t, g)
			synctest.Wait()
			d.setRefuse(full)
			g.ReportApplied(raftlog.FoundingIndex, row("k", "v"))
			<-time.After(100 * time.Millisecond)
			synctest.Wait()
			if freed {
				d.setRefuse(nil)
			}
			if err := h.stop(); freed != (err == nil) || !freed && !errors.Is(err, errFull) {
				t.Fatalf("space again: %v, stop returned %v", freed, err)
			}
			if v, _ := d.Get("world", []byte("k")); freed != (string(v) == "v") {
				t.Fatalf("space again: %v, stored is %q", freed, v)
			}
		})
	}
}

func TestProposeRefusals(t *testing.T) {
	d := newDisk()
	h := newTestHost(t, d)
	h.node.Limits.Outstanding = 10 << 10
	g := openNow(t, h, alone(1))
	if err := g.Propose(nil); !errors.Is(err, raftgroup.ErrTooLarge) {
		t.Fatal("empty:", err)
	}
	if err := g.Propose(make([]byte, raftframe.MaxEntry+1)); !errors.Is(err, raftgroup.ErrTooLarge) {
		t.Fatal("large:", err)
	}
	if err := g.Propose(make([]byte, raftframe.MaxEntry)); err != nil { // the first is always accepted
		t.Fatal(err)
	}
	pump(h)
	taken := 0
	for ; taken < 100; taken++ {
		if err := g.Propose(make([]byte, 1<<10)); errors.Is(err, ErrOverloaded) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if taken != 9 {
		t.Fatalf("took %d KiB with a bound of 10", taken)
	}
	pump(h)
	if err := g.Propose([]byte("x")); err != nil {
		t.Fatal("nothing is on its way any more:", err)
	}
	pump(h)
	if n := len(texts(g.Dequeue())); n != 11 {
		t.Fatalf("%d entries delivered", n)
	}
}

// TestSlowOwner: an owner that does not take its deliveries gets no more than the mailbox holds. The rest stays in the
// log, and comes in order, with the leadership behind it.
func TestSlowOwner(t *testing.T) {
	d := newDisk()
	h := newTestHost(t, d)
	g := openNow(t, h, alone(1))
	const n = 500
	for i := range n {
		if err := g.Propose([]byte(numbered("e", i))); err != nil {
			t.Fatal(err)
		}
	}
	pump(h)
	h = newTestHost(t, d) // restarted: all are delivered again
	h.node.Limits.Mailbox = 20 * (6 + raftlog.EntryOverhead)
	g = openNow(t, h, alone(1))
	if lag := h.groups.replicas[1].lag; lag > 21 {
		t.Fatalf("%d entries in the mailbox", lag)
	}
	var got []Delivery
	for {
		taken := g.Dequeue()
		if taken == nil {
			break
		}
		if len(taken) > 23 {
			t.Fatalf("%d deliveries at once", len(taken))
		}
		got = append(got, taken...)
		pump(h)
	}
	for i, text := range texts(got) {
		if text != numbered("e", i) {
			t.Fatalf("delivery %d is %q", i, text)
		}
	}
	if l, ok := got[len(got)-1].(Leadership); !ok || !l.Self || len(texts(got)) != n {
		t.Fatalf("%d entries, and last %v", len(texts(got)), got[len(got)-1])
	}
}

func TestAppliedBeyondDelivery(t *testing.T) {
	h := newTestHost(t, newDisk())
	g := openNow(t, h, alone(1))
	defer func() {
		if recover() == nil {
			t.Fatal("applied an entry that was never delivered")
		}
	}()
	g.ReportApplied(99, nil)
}

// TestCompaction: below the stored applied index the log keeps as many entries as its limit, and no more.
func TestCompaction(t *testing.T) {
	d := newDisk()
	h := newTestHost(t, d)
	h.node.Limits.KeepEntries = 100
	g := openNow(t, h, alone(1))
	g.Dequeue()
	for i := range 2000 {
		if err := g.Propose([]byte(numbered("e", i))); err != nil {
			t.Fatal(err)
		}
		pump(h)
		if i < 1000 {
			g.ReportApplied(lastIndex(g.Dequeue()), nil)
		}
	}
	// 1,000 are applied, 1,000 are not and must all be there.
	if rows := d.rows(raftlog.TableLog); rows < 1100 || rows > 1130 {
		t.Fatalf("%d rows in the log", rows)
	}
	h = newTestHost(t, d)
	g = openNow(t, h, alone(1))
	if got := texts(g.Dequeue()); len(got) != 1000 || got[0] != "e01000" || got[999] != "e01999" {
		t.Fatalf("%d entries delivered after the restart", len(got))
	}
}
