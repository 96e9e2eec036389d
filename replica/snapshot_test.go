package replica

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/replica/raftframe"
	"github.com/voxelpopuli/voxeld/replica/raftgroup"
	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// TestSnapshotCatchesUp: the log is compacted while a follower is down, and a snapshot brings it up to date. Its rows
// that the others no longer have are gone, and other owners' rows are untouched.
func TestSnapshotCatchesUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newTestGroup(t, []string{"a", "b", "c"}, func(l *raftgroup.Limits) { l.KeepEntries = 20 })
		p.propose(5, "a", "b", "c")
		l := p.leader()
		lost := p.members[map[string]string{"a": "b", "b": "c", "c": "a"}[l.peer]]
		if err := lost.host.stop(); err != nil {
			t.Fatal(err)
		}
		strange := worldRow(99999, []byte("old"))
		foreign := kv.Write{Table: "world", Key: append(raftlog.GroupPrefix(testGroupID+1), 'x'), Value: []byte("theirs")}
		if err := lost.disk.Commit([]kv.Write{strange, foreign}); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			p.propose(30, l.peer)
		}
		if rows := l.disk.rows(raftlog.TableLog); rows > 100 { // of 150
			t.Fatalf("the log has %d entries while a follower is down", rows)
		}
		p.boot(lost.peer)
		p.open(lost.peer, nil)
		p.propose(5, "a", "b", "c")
		if lost.restored != 1 {
			t.Fatalf("restored %d times", lost.restored)
		}
		p.pass(time.Second) // everything lazy is stored
		if v, _ := lost.disk.Get("world", strange.Key); v != nil {
			t.Fatal("a row that no other member has survived the snapshot")
		}
		if v, _ := lost.disk.Get("world", foreign.Key); string(v) != "theirs" {
			t.Fatal("another owner's row did not survive the snapshot")
		}
		// What is stored is complete: it can be opened again, and lead.
		p.boot(lost.peer)
		p.open(lost.peer, nil)
		if n := len(lost.log); n < 155 {
			t.Fatalf("%d entries in the tables", n)
		}
		p.try("transfer", func() error {
			if lost.leading {
				return nil
			}
			return errors.Join(p.leader().Transfer(lost.peer), errors.New("asked"))
		})
		p.propose(5, "a", "b", "c")
	})
}

// TestSnapshotFails: after a failure the carrier is called again.
func TestSnapshotFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newTestGroup(t, []string{"a"})
		h := p.members["a"].host.Host
		carry, failures := h.node.SendSnapshot, 3
		h.node.SendSnapshot = func(peer string, group uint64, write func(io.Writer) error, done func(error)) {
			if failures--; failures >= 0 {
				done(errors.New("no stream"))
				done(nil) // only the first call counts
				return
			}
			carry(peer, group, write, done)
		}
		p.propose(3, "a")
		p.join("b")
		p.propose(3, "a", "b")
		if failures != -1 || h.node.Sending != 0 {
			t.Fatalf("%d failures are left, %d snapshots under way", failures, h.node.Sending)
		}
	})
}

// stranded returns a host that has joined group 5 as replica 2 with nothing, and a snapshot of 10 entries for it, from
// the leader on another host.
func stranded(t testing.TB) (h *Host, d *disk, g *Group, snap []byte) {
	t.Helper()
	return strandedWith(t, partyTables)
}

func strandedWith(t testing.TB, tables []TablePrefix) (h *Host, d *disk, g *Group, snap []byte) {
	t.Helper()
	ld := newDisk()
	l := newTestHost(t, ld)
	l.node.Send = func(string, uint64, []byte) {}
	l.node.SendSnapshot = func(string, uint64, func(io.Writer) error, func(error)) {}
	f := Founding{Group: testGroupID, Members: []string{"me"}, Tables: tables}
	lg := openNow(t, l, f)
	for i := range 10 {
		if err := lg.Propose([]byte(numbered("e", i))); err != nil {
			t.Fatal(err)
		}
	}
	pump(l)
	n := 0
	for _, c := range lg.Dequeue() {
		if c, ok := c.(Committed); ok {
			lg.ReportApplied(c.Index, []kv.Write{worldRow(n, c.Entry)})
			n++
		}
	}
	if err := lg.AddLearner("b"); err != nil {
		t.Fatal(err)
	}
	l.committer.flushDue = true
	pump(l)
	l.committer.flushDue = true
	pump(l)
	var b bytes.Buffer
	out := raftframe.OutgoingSnapshot{Group: testGroupID, From: 1, To: 2, Term: lg.Status().Term, Tables: tables, Limit: 1 << 20}
	if err := out.Write(ld, &b); err != nil {
		t.Fatal(err)
	}

	d = newDisk()
	var err error
	if h, err = NewHost(Options{Storage: d, Self: "b"}); err != nil {
		t.Fatal(err)
	}
	h.input.post(func() {
		h.join(JoinInfo{
			Group: testGroupID, ID: 2, Members: []Member{{ID: 1, Peer: "me"}, {ID: 2, Peer: "b", Learner: true}}, Tables: tables,
		}, func(joined *Group, e error) { g, err = joined, e })
	})
	pump(h)
	if err != nil {
		t.Fatal(err)
	}
	return h, d, g, b.Bytes()
}

// receiveNow receives a snapshot on a host that is stepped with pump.
func receiveNow(h *Host, peer string, snap []byte) error {
	return await(h, func() error {
		return h.ReceiveSnapshot(context.Background(), peer, testGroupID, bytes.NewReader(snap))
	})
}

// TestSnapshotIsOneCommit: rows, configuration, log and applied index are stored together or not at all, even if it is
// unknown whether the commit was stored.
func TestSnapshotIsOneCommit(t *testing.T) {
	for _, torn := range []bool{false, true} {
		h, d, g, snap := stranded(t)
		before := d.count()
		d.refuse, d.torn = full, torn
		if err := receiveNow(h, "me", snap); !errors.Is(err, errFull) {
			t.Fatal(err)
		}
		if n := d.count() - before; n != 1 {
			t.Fatalf("%d commits", n)
		}
		all := g.Dequeue()
		if f, ok := all[len(all)-1].(Failed); !ok || !errors.Is(f.Err, errFull) {
			t.Fatalf("got %v", all)
		}
		d.refuse = nil
		h.committer.retryStorage()
		pump(h)
		var err error
		h.join(JoinInfo{Group: testGroupID, ID: 2, Tables: partyTables}, func(again *Group, e error) { g, err = again, e })
		if err != nil {
			t.Fatal(err)
		}
		if rows := d.rows("world"); torn != (rows == 10) || torn != (g.AppliedIndex() > 10) || !torn && rows != 0 {
			t.Fatalf("stored: %v, %d rows, applied index %d", torn, rows, g.AppliedIndex())
		}
		if err := receiveNow(h, "me", snap); err != nil {
			t.Fatal(err)
		}
		if d.rows("world") != 10 {
			t.Fatalf("%d rows", d.rows("world"))
		}
	}
}

// TestAppliedAcrossRestore: calls of ReportApplied by an owner that has not reached the Restored in its mailbox are
// void.
func TestAppliedAcrossRestore(t *testing.T) {
	h, d, g, snap := stranded(t)
	before := d.count()
	g.ReportApplied(0, []kv.Write{worldRow(77, []byte("void"))}) // in flight when the snapshot arrives
	if err := receiveNow(h, "me", snap); err != nil {
		t.Fatal(err)
	}
	g.ReportApplied(0, []kv.Write{worldRow(78, []byte("void"))})
	all := g.Dequeue()
	i := slices.IndexFunc(all, func(d Delivery) bool { _, ok := d.(Restored); return ok })
	if i < 0 || i+1 >= len(all) {
		t.Fatalf("delivered %v", all)
	}
	restored := all[i].(Restored)
	if c, ok := all[i+1].(Configured); !ok || len(c.Members) != 2 {
		t.Fatalf("delivered %v", all)
	}
	g.ReportApplied(restored.Index, []kv.Write{worldRow(79, []byte("new"))})
	h.committer.flushDue = true
	pump(h)
	for n, want := range map[int]string{9: numbered("e", 9), 77: "", 78: "", 79: "new"} {
		if v, _ := d.Get("world", worldRow(n, nil).Key); string(v) != want {
			t.Errorf("row %d is %q after %d commits, expected %q", n, v, d.count()-before, want)
		}
	}
	if s := g.Status(); s.Applied != restored.Index || s.Commit != restored.Index || s.Last != restored.Index {
		t.Errorf("status %+v", s)
	}
}

func TestSnapshotRefusals(t *testing.T) {
	_, _, _, snap := stranded(t)
	put64 := func(at int, v uint64) []byte {
		b := bytes.Clone(snap)
		binary.BigEndian.PutUint64(b[at:], v)
		return b
	}
	conf := int(binary.BigEndian.Uint32(snap[raftframe.SnapshotHead:]))
	tables := raftframe.SnapshotHead + 4 + conf
	table := func(change func(b []byte)) []byte {
		b := bytes.Clone(snap)
		change(b[tables:])
		return b
	}
	cases := map[string]struct {
		peer string
		snap []byte
		want error
	}{
		"stranger":           {"z", snap, ErrNotMember},
		"ourselves":          {"b", snap, ErrNotMember},
		"another's name":     {"me", put64(1, 7), raftframe.ErrImplausible},
		"to another":         {"me", put64(9, 1), raftframe.ErrImplausible},
		"to a later one":     {"me", put64(9, 3), ErrReplaced},
		"no term":            {"me", put64(17, 0), raftframe.ErrImplausible},
		"term of the far":    {"me", put64(17, 1<<20+2), raftframe.ErrImplausible},
		"last term":          {"me", put64(17, 1<<64-1), raftframe.ErrImplausible},
		"no index":           {"me", put64(25, 0), raftframe.ErrImplausible},
		"index overflow":     {"me", put64(25, 1<<64-1), raftframe.ErrImplausible},
		"entry of later":     {"me", put64(33, 99), raftframe.ErrImplausible},
		"conf of later":      {"me", put64(25, 3), raftframe.ErrImplausible},
		"version":            {"me", append([]byte{9}, snap[1:]...), raftframe.ErrImplausible},
		"nothing":            {"me", nil, io.ErrUnexpectedEOF},
		"half":               {"me", snap[:len(snap)/2], io.ErrUnexpectedEOF},
		"without the end":    {"me", snap[:len(snap)-9], io.ErrUnexpectedEOF},
		"wrong count":        {"me", put64(len(snap)-8, 11), raftframe.ErrImplausible},
		"table not ours":     {"me", table(func(b []byte) { b[2]++ }), raftframe.ErrImplausible},
		"another's prefix":   {"me", table(func(b []byte) { b[14]++ }), raftframe.ErrImplausible},
		"no tables":          {"me", table(func(b []byte) { b[0] = 0 }), raftframe.ErrImplausible},
		"large conf":         {"me", append(bytes.Clone(snap[:raftframe.SnapshotHead]), 255, 255, 255, 255), raftframe.ErrImplausible},
		"row of no table":    {"me", table(func(b []byte) { b[15] = 9 }), raftframe.ErrImplausible},
		"large key":          {"me", table(func(b []byte) { b[16] = 9 }), raftframe.ErrImplausible},
		"more than is there": {"me", table(func(b []byte) { b[19] = 99 }), nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			h, d, g, _ := stranded(t)
			before := stateText(h, d)
			err := receiveNow(h, c.peer, c.snap)
			if err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Fatalf("%v, expected %v", err, c.want)
			}
			if after := stateText(h, d); after != before {
				t.Fatalf("changed\n%s\nto\n%s", before, after)
			}
			for _, d := range g.Dequeue() {
				t.Errorf("delivered %v", d)
			}
			if h.receiving.all != 0 {
				t.Errorf("%d bytes are accounted for still", h.receiving.all)
			}
		})
	}
	h, _, g, _ := stranded(t)
	h.node.Limits.Snapshot = 500
	if err := receiveNow(h, "me", snap); !errors.Is(err, raftframe.ErrSnapshotSize) {
		t.Fatal(err)
	}
	h.node.Limits.Snapshot = 10000
	for peer, size := range map[string]int{"others": 20000, "me": 9990} {
		h.receiving.add(peer, size)
		if err := receiveNow(h, "me", snap); !errors.Is(err, ErrOverloaded) {
			t.Fatalf("while %d bytes of %s are being received: %v", size, peer, err)
		}
		h.receiving.add(peer, -size)
	}
	if len(h.receiving.peers) != 0 {
		t.Errorf("%v are accounted for still", h.receiving.peers)
	}
	if err := receiveNow(h, "me", snap); err != nil {
		t.Fatal(err)
	}
	if err := receiveNow(h, "me", snap); err != nil {
		t.Fatal("a snapshot of what it has:", err)
	}
	restored := slices.DeleteFunc(g.Dequeue(), func(d Delivery) bool { _, ok := d.(Restored); return !ok })
	if len(restored) != 1 {
		t.Fatalf("restored %d times", len(restored))
	}
	out := raftframe.OutgoingSnapshot{Group: testGroupID, From: 2, To: 1, Term: 9, Tables: partyTables, Limit: 100}
	if err := out.Write(h.node.Storage, io.Discard); !errors.Is(err, raftframe.ErrSnapshotSize) {
		t.Fatal(err)
	}
}
