package replica

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/replica/raftframe"
)

var piecesTables = []TablePrefix{{Table: "world", Pieces: true}}

// emptyReplica returns a replica that has nothing yet, and a snapshot for it.
func emptyReplica(t *testing.T) (h *Host, d *disk, g *Group, snap []byte) {
	t.Helper()
	h, d, g, snap = strandedWith(t, piecesTables)
	h.node.Limits.Piece = 200 // one or two rows
	h.node.Limits.Snapshot = 2000
	return h, d, g, snap
}

// A replica that has nothing yet stores a snapshot in pieces, after it has removed what an earlier one has left.
func TestSnapshotInPieces(t *testing.T) {
	h, d, g, snap := emptyReplica(t)
	left := worldRow(999, []byte("left by a snapshot that did not arrive whole"))
	if err := d.Commit([]kv.Write{left}); err != nil {
		t.Fatal(err)
	}
	// Only the beginning arrives.
	before := d.count()
	if err := receiveNow(h, "me", snap[:len(snap)-30]); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	if d.count()-before < 4 || h.receiving.all != 0 || g.Status().Applied != 0 {
		t.Fatalf("%d commits, %d bytes held, applied %d", d.count()-before, h.receiving.all, g.Status().Applied)
	}
	if v, _ := d.Get("world", left.Key); v != nil {
		t.Error("a row that an earlier snapshot left is there")
	}
	if err := receiveNow(h, "me", snap); err != nil {
		t.Fatal(err)
	}
	if d.rows("world") != 10 || g.Status().Applied < 10 || h.receiving.all != 0 {
		t.Fatalf("%d rows, applied %d, %d bytes held", d.rows("world"), g.Status().Applied, h.receiving.all)
	}
	restored := func(d Delivery) bool { _, ok := d.(Restored); return ok }
	if all := g.Dequeue(); !slices.ContainsFunc(all, restored) {
		t.Fatalf("got %v", all)
	}
	// Now it has something: a snapshot of what it has changes nothing.
	before = d.count()
	if err := receiveNow(h, "me", snap); err != nil || d.count() != before {
		t.Fatalf("%d commits, %v", d.count()-before, err)
	}
	// It is as large as any, when it is sent: memory does not bound it.
	var again bytes.Buffer
	out := raftframe.OutgoingSnapshot{Group: testGroupID, From: 2, To: 1, Term: 9, Tables: piecesTables, Limit: 100}
	if err := out.Write(d, &again); err != nil {
		t.Fatal(err)
	}
	var s raftframe.Snapshot
	if err := s.Decode(&again, piecesTables, func() error { return nil }, func(int) error { return nil }); err != nil || len(s.Rows) != 10 {
		t.Fatalf("%d rows, %v", len(s.Rows), err)
	}
}

// While one snapshot is stored in pieces, another one is refused; strangers are refused before anything is stored.
func TestSnapshotInPiecesAlone(t *testing.T) {
	h, d, g, snap := emptyReplica(t)
	r, w := io.Pipe()
	first := make(chan error, 1)
	go func() { first <- h.ReceiveSnapshot(context.Background(), "me", testGroupID, r) }()
	if _, err := w.Write(snap[:len(snap)-30]); err != nil {
		t.Fatal(err)
	}
	before := d.count()
	if err := receiveNow(h, "me", snap); !errors.Is(err, ErrOverloaded) {
		t.Fatal(err)
	}
	if err := receiveNow(h, "z", snap); !errors.Is(err, ErrNotMember) || d.count() != before {
		t.Fatal(err)
	}
	if _, err := w.Write(snap[len(snap)-30:]); err != nil {
		t.Fatal(err)
	}
	if err := await(h, func() error { return <-first }); err != nil {
		t.Fatal(err)
	}
	if d.rows("world") != 10 || g.Status().Applied < 10 {
		t.Fatalf("%d rows, applied %d", d.rows("world"), g.Status().Applied)
	}
}
