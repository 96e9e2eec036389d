package replica

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/replica/raftframe"
	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// TestAppliedIsOneCommit: the writes of ReportApplied and their index are never stored separately.
func TestAppliedIsOneCommit(t *testing.T) {
	d := newDisk()
	h := newTestHost(t, d)
	g := openNow(t, h, alone(5))
	rows := 0
	d.refuse = func(writes []kv.Write) error {
		has, applied := false, uint64(0)
		for _, w := range writes {
			has = has || w.Table == "world"
			if w.Table == raftlog.TableState && w.Key[len(w.Key)-1] == raftlog.KindState {
				applied = binary.BigEndian.Uint64(w.Value[1+3*8:])
			}
		}
		if has {
			rows++
			if applied < g.Status().Applied {
				t.Errorf("rows of entry %d are stored with applied index %d", g.Status().Applied, applied)
			}
		}
		return nil
	}
	pump(h)
	for i := range 5 {
		if err := g.Propose([]byte(numbered("e", i))); err != nil {
			t.Fatal(err)
		}
		pump(h)
		g.ReportApplied(lastIndex(g.Dequeue()), row("k", numbered("v", i)))
		h.committer.flushDue = true
		pump(h)
	}
	if rows == 0 {
		t.Fatal("nothing was stored")
	}
}

// TestReadsAtOnce: reads that begin while another waits are all answered.
func TestReadsAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newTestGroup(t, []string{"a", "b", "c"})
		l := p.leader()
		p.net.mu.Lock()
		p.net.lose = func(_, _ string, m *raftpb.Message) bool { return len(m.GetContext()) > 0 }
		p.net.mu.Unlock()
		answers := make(chan error, 3)
		for range cap(answers) {
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				defer cancel()
				_, err := l.ReadIndex(ctx)
				answers <- err
			}()
			p.pass(150 * time.Millisecond)
		}
		p.net.mu.Lock()
		p.net.lose = nil
		p.net.mu.Unlock()
		p.pass(5 * time.Second)
		for range cap(answers) {
			select {
			case err := <-answers:
				if err != nil {
					t.Fatal(err)
				}
			default:
				t.Fatal("a read is not answered")
			}
		}
	})
}

// peekedAt is a disk that counts the open views.
type peekedAt struct {
	*disk
	open int
}

func (v *peekedAt) View(read func(
	get func(table string, key []byte) ([]byte, error),
	scan func(table string, prefix []byte, visit func(key, value []byte) error) error,
) error,
) error {
	v.open++
	defer func() { v.open-- }()
	return v.disk.View(read)
}

// TestSnapshotHoldsNoView: while a snapshot is sent, perhaps to a slow receiver, no view of the storage is open: it
// would retain the pages of everything that changes meanwhile.
func TestSnapshotHoldsNoView(t *testing.T) {
	v := &peekedAt{disk: newDisk()}
	h := newTestHost(t, v)
	g := openNow(t, h, Founding{Group: 5, Members: []string{"me"}, Tables: []TablePrefix{{Table: "world"}}})
	if err := g.Propose([]byte("entry")); err != nil {
		t.Fatal(err)
	}
	pump(h)
	g.ReportApplied(lastIndex(g.Dequeue()), row("k", "v"))
	h.committer.flushDue = true
	pump(h)
	out := raftframe.OutgoingSnapshot{Group: 5, From: 1, To: 2, Term: 2, Tables: []TablePrefix{{Table: "world"}}, Limit: 1 << 20}
	var b bytes.Buffer
	err := out.Write(v, writerFunc(func(p []byte) (int, error) {
		if v.open > 0 {
			t.Error("a view is open")
		}
		return b.Write(p)
	}))
	if err != nil || b.Len() == 0 {
		t.Fatalf("%v, %d bytes", err, b.Len())
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

var _ io.Writer = writerFunc(nil)
