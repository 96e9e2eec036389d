package replica

import (
	"bytes"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/replica/raftframe"
	"github.com/voxelpopuli/voxeld/replica/raftgroup"
	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// TestLogWaitsForSnapshot: entries after a snapshot in progress stay in the log, within bounds.
func TestLogWaitsForSnapshot(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newTestGroup(t, []string{"a"}, func(l *raftgroup.Limits) { l.KeepEntries = 20 })
		p.propose(50, "a")
		h := p.members["a"].host.Host
		carry := h.node.SendSnapshot
		send := make(chan func(), 1)
		h.node.SendSnapshot = func(peer string, group uint64, write func(io.Writer) error, done func(error)) {
			var b bytes.Buffer
			if err := write(&b); err != nil {
				t.Error(err)
			}
			send <- func() {
				carry(peer, group, func(w io.Writer) error { _, err := w.Write(b.Bytes()); return err }, done)
			}
		}
		p.join("b")
		p.until("a snapshot is under way", func() bool { return len(send) > 0 })
		for range 4 {
			p.propose(30, "a")
		}
		p.pass(time.Second)
		(<-send)()
		p.propose(1, "a", "b")
		if b := p.members["b"]; b.restored != 1 {
			t.Fatalf("restored %d times: the log did not wait", b.restored)
		}
		p.propose(100, "a", "b")
		p.pass(time.Second)
		p.propose(1, "a", "b")
		p.pass(time.Second)
		synctest.Wait()
		if rows := p.members["a"].disk.rows(raftlog.TableLog); rows > 60 {
			t.Fatalf("%d entries in the log", rows)
		}
	})
}

// FuzzReceiveSnapshot: a stranger changes nothing. Whatever a member sends, the host does not panic, and the group
// continues.
func FuzzReceiveSnapshot(f *testing.F) {
	_, _, _, snap := stranded(f)
	f.Add(snap)
	f.Add(snap[:60])
	f.Add(append(bytes.Clone(snap), snap...))
	f.Add([]byte{})
	strict, sd, _, _ := stranded(f)
	before := stateText(strict, sd)
	f.Fuzz(func(t *testing.T, b []byte) {
		if receiveNow(strict, "z", b) == nil || stateText(strict, sd) != before {
			t.Fatal("a stranger's snapshot was taken")
		}
		h, d, g, _ := stranded(t)
		err := receiveNow(h, "me", b)
		if h.groups.replicas[testGroupID] == nil {
			t.Fatal("a member's snapshot ended the group")
		}
		if h.receiving.all != 0 {
			t.Fatal("bytes are accounted for still")
		}
		if err != nil {
			return
		}
		// An accepted snapshot is complete: it can be sent again, and opened.
		conf := g.Configuration()
		out := raftframe.OutgoingSnapshot{Group: testGroupID, From: 2, To: 1, Term: 1 << 40, Tables: partyTables, Limit: 1 << 30}
		var again bytes.Buffer
		if err := out.Write(d, &again); err != nil {
			t.Fatal(err)
		}
		var s raftframe.Snapshot
		if err := s.Decode(&again, partyTables, func() error { return nil }, func(int) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if s.Index != g.Status().Applied || fmt.Sprint(s.Conf.All()) != fmt.Sprint(conf.Members) || len(s.Rows) != d.rows("world") {
			t.Fatalf("%d rows at %d came out again", len(s.Rows), s.Index)
		}
		openNow(t, newTestHostOf(t, d, "b"), Founding{Group: testGroupID, Tables: partyTables})
	})
}

func newTestHostOf(t testing.TB, storage Storage, self string) *Host {
	t.Helper()
	h, err := NewHost(Options{Storage: storage, Self: self})
	if err != nil {
		t.Fatal(err)
	}
	return h
}
