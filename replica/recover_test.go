package replica

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"
)

// TestRecover: of three members two are lost for good, with their disks. The third continues alone with its data, under
// a new id, and grows again; pending changes in its log have no effect.
func TestRecover(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newTestGroup(t, []string{"a", "b", "c"})
		p.propose(20, "a", "b", "c")
		l := p.leader()
		left := p.members[map[string]string{"a": "b", "b": "c", "c": "a"}[l.peer]]
		// A change reaches its log, and is not known to be committed.
		index := l.Status().Last + 1
		p.net.mu.Lock()
		p.net.lose = losesCommit(left.peer, index)
		p.net.mu.Unlock()
		if err := l.AddLearner("z"); err != nil {
			t.Fatal(err)
		}
		p.pass(time.Second)
		if left.Status().Last < index || left.Status().Commit >= index {
			t.Fatalf("%+v, the change is entry %d", left.Status(), index)
		}
		for _, g := range p.members {
			p.net.set(g.peer, true)
		}
		if err := left.host.Recover(testGroupID); !errors.Is(err, ErrOpen) {
			t.Fatal(err)
		}
		if err := left.Close(); err != nil {
			t.Fatal(err)
		}
		if err := left.host.Recover(99); !errors.Is(err, ErrNotOpen) {
			t.Fatal(err)
		}
		if err := left.host.Recover(testGroupID); err != nil {
			t.Fatal(err)
		}
		peer := left.peer
		p.net.mu.Lock()
		p.net.cut[peer], p.net.lose = false, nil
		p.net.mu.Unlock()
		p.members = map[string]*testMember{peer: left}
		p.boot(peer)
		p.open(peer, nil)
		p.propose(5, peer)
		if members := left.Configuration().Members; len(members) != 1 || members[0].ID != 5 || members[0].Peer != peer {
			t.Fatalf("members %v: the learner of the log has id 4", members)
		}
		if left.Configuration().Recovered != 1 {
			t.Fatalf("%+v: it was recovered once", left.Configuration())
		}
		if slices.ContainsFunc(left.conf.Members, func(m Member) bool { return m.Peer == "z" }) {
			t.Fatal("the change in the log is in force")
		}
		p.join("y")
		p.promote("y")
		p.propose(5, peer, "y")
		at, err := p.members["y"].host.Position(testGroupID)
		if err != nil || at.Members.Recovered != 1 || at.Replica != 6 || at.Last < at.Applied || at.LastTerm == 0 || len(at.Members.Members) != 2 {
			t.Fatalf("the new member stores %+v, %v", at, err)
		}
		if _, err := left.host.Position(99); !errors.Is(err, ErrNotOpen) {
			t.Fatal(err)
		}

		// A member that was not lost after all is treated as a non-member.
		old := &raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), From: new(uint64(1)), To: new(uint64(2)), Term: new(uint64(99))}
		if err := left.host.Receive(l.peer, testGroupID, marshal(t, old)); !errors.Is(err, ErrNotMember) {
			t.Fatal(err)
		}
	})
}

func TestRecoverRefusals(t *testing.T) {
	h, _, g, _ := stranded(t)
	if err := await(h, func() error { return h.Recover(testGroupID) }); !errors.Is(err, ErrOpen) {
		t.Fatal(err)
	}
	h.closeGroup(g, make(chan error, 1))
	pump(h)
	if err := await(h, func() error { return h.Recover(testGroupID) }); !errors.Is(err, ErrNotOpen) {
		t.Fatalf("recovered nothing: %v", err)
	}
	if err := h.rewriteNow(testGroupID, h.removal(testGroupID, nil)); err != nil {
		t.Fatal(err)
	}
	if err := await(h, func() error { return h.Recover(testGroupID) }); !errors.Is(err, ErrTombstone) {
		t.Fatal(err)
	}
	bubble(t, func(t *testing.T) {
		h := launch(t, Options{Storage: newDisk()})
		if err := h.stop(); err != nil {
			t.Fatal(err)
		}
		if err := h.Recover(5); !errors.Is(err, ErrStopped) {
			t.Fatal(err)
		}
		if _, err := h.Join(context.Background(), JoinInfo{Group: 5}); !errors.Is(err, ErrStopped) {
			t.Fatal(err)
		}
	})
}
