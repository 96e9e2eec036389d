package replica

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/replica/raftgroup"
	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// TestGroupGrowsAndShrinks: a group of one becomes one of three, its founder leaves, and the remaining members agree.
func TestGroupGrowsAndShrinks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newTestGroup(t, []string{"a"}, func(l *raftgroup.Limits) { l.KeepEntries = 20 })
		p.propose(100, "a")
		p.join("b")
		p.propose(10, "a", "b")
		if b := p.members["b"]; b.restored != 1 || !slices.Equal(b.log, p.members["a"].log) {
			t.Fatalf("restored %d times, %d entries", b.restored, len(b.log))
		}
		p.promote("b")
		p.join("c")
		p.promote("c")
		p.propose(10, "a", "b", "c")
		for _, peer := range []string{"a", "b", "c"} {
			want := []Member{{ID: 1, Peer: "a"}, {ID: 2, Peer: "b"}, {ID: 3, Peer: "c"}}
			if g := p.members[peer]; !slices.Equal(g.conf.Members, want) || !slices.Equal(g.Group.Configuration().Members, want) {
				t.Fatalf("%s got %v", peer, g.conf)
			}
		}
		if err := p.leader().Remove(p.leader().peer); !errors.Is(err, raftgroup.ErrLeads) {
			t.Fatalf("the leader removed itself: %v", err)
		}
		p.try("transfer", func() error {
			if l := p.leader(); l.peer == "a" {
				if err := l.Transfer("b"); err != nil {
					return err
				}
				return errors.New("asked")
			}
			return nil
		})
		p.remove("a")
		a := p.members["a"]
		p.until("a knows that it was removed", func() bool { return a.removed })
		if err := a.Propose([]byte("x")); !errors.Is(err, ErrNotMember) {
			t.Fatalf("a removed member proposed: %v", err)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := a.host.Open(context.Background(), Founding{Group: testGroupID}); !errors.Is(err, ErrNotMember) {
			t.Fatalf("a removed member opened its replica: %v", err)
		}
		if err := a.host.Remove(testGroupID); err != nil {
			t.Fatal(err)
		}
		a.Group = nil
		p.propose(10, "b", "c")

		// It returns, under a new id.
		p.join("a")
		p.promote("a")
		p.propose(10, "a", "b", "c")
		if id := a.conf.Members[2].ID; id != 4 || a.conf.Members[2].Peer != "a" {
			t.Fatalf("members %v", a.conf.Members)
		}
	})
}

// TestReplicaIDsAreUsedOnce: including those of removed members, across restarts and snapshots.
func TestReplicaIDsAreUsedOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newTestGroup(t, []string{"a"})
		seen := map[uint64]bool{1: true}
		for round := range 4 {
			p.join("b")
			b := p.members["b"]
			p.until("restored", func() bool { return b.restored > 0 })
			id := b.conf.Members[1].ID
			if seen[id] {
				t.Fatalf("replica id %d was given out again", id)
			}
			seen[id] = true
			p.remove("b")
			p.until("b knows", func() bool { return b.removed })
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			b.Group = nil
			if err := b.host.Remove(testGroupID); err != nil {
				t.Fatal(err)
			}
			if round == 1 {
				p.boot("a")
				p.open("a", nil)
			}
		}
	})
}

// TestTombstones: a removed member cannot return under its old id.
func TestTombstones(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newTestGroup(t, []string{"a"})
		b := p.join("b")
		p.until("restored", func() bool { return b.restored > 0 })
		members := b.conf.Members
		p.remove("b")
		p.until("removed", func() bool { return b.removed })
		if err := errors.Join(b.Close(), b.host.Remove(testGroupID, kv.Write{Table: "world", Key: []byte("x")})); err != nil {
			t.Fatal(err)
		}
		b.Group = nil
		ctx := context.Background()
		if _, err := b.host.Join(ctx, JoinInfo{Group: testGroupID, ID: 2, Members: members, Tables: partyTables}); !errors.Is(err, ErrTombstone) {
			t.Fatalf("joined as the one who was removed: %v", err)
		}
		if _, err := b.host.Open(ctx, Founding{Group: testGroupID, Members: []string{"b"}}); !errors.Is(err, ErrTombstone) {
			t.Fatalf("founded where it was removed: %v", err)
		}
		members[1].ID = 3
		g, err := b.host.Join(ctx, JoinInfo{Group: testGroupID, ID: 3, Members: members, Tables: partyTables})
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		members[1].ID = 2
		if _, err := b.host.Join(ctx, JoinInfo{Group: testGroupID, ID: 2, Members: members, Tables: partyTables}); !errors.Is(err, ErrTombstone) {
			t.Fatalf("joined as an earlier one than stored: %v", err)
		}
		members[1].ID = 4
		if _, err := b.host.Join(ctx, JoinInfo{Group: testGroupID, ID: 4, Members: members, Tables: partyTables}); !errors.Is(err, ErrReplaced) {
			t.Fatalf("joined as another than stored: %v", err)
		}
		if err := b.host.Remove(testGroupID); err != nil {
			t.Fatal(err)
		}
		members[1].ID = 3
		if _, err := b.host.Join(ctx, JoinInfo{Group: testGroupID, ID: 3, Members: members, Tables: partyTables}); !errors.Is(err, ErrTombstone) {
			t.Fatalf("joined as the one who was removed later: %v", err)
		}
		for _, wrong := range []JoinInfo{
			{Group: testGroupID, ID: 9},
			{Group: testGroupID, ID: 9, Members: members},
			{Group: 0, ID: 9, Members: []Member{{ID: 9, Peer: "b"}}},
			{Group: testGroupID, ID: 9, Members: []Member{{ID: 9, Peer: "b"}, {ID: 9, Peer: "a"}}},
			{Group: testGroupID, ID: 9, Members: []Member{{ID: 9, Peer: "b"}}, Tables: []TablePrefix{{Table: raftlog.TableLog}}},
		} {
			if _, err := b.host.Join(ctx, wrong); err == nil {
				t.Fatalf("joined with %+v", wrong)
			}
		}
	})
}

// A founder leaves a tombstone with its replica id, too, although its last stored configuration is the one without it.
func TestTombstoneOfFounder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newTestGroup(t, []string{"a", "b", "c"})
		members := p.leader().conf.Members
		gone := slices.DeleteFunc([]string{"a", "b", "c"}, func(peer string) bool { return peer == p.leader().peer })[0]
		g := p.members[gone]
		p.remove(gone)
		p.until("removed", func() bool { return g.removed })
		if err := errors.Join(g.Close(), g.host.Remove(testGroupID)); err != nil {
			t.Fatal(err)
		}
		for _, m := range members {
			if m.Peer != gone {
				continue
			}
			j := JoinInfo{Group: testGroupID, ID: m.ID, Members: members, Tables: partyTables}
			if _, err := g.host.Join(context.Background(), j); !errors.Is(err, ErrTombstone) {
				t.Fatalf("joined as the one who was removed: %v", err)
			}
		}
		g.Group = nil
	})
}

func TestChangeRefusals(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newTestGroup(t, []string{"a", "b", "c"})
		l := p.leader()
		follower := p.members[map[string]string{"a": "b", "b": "c", "c": "a"}[l.peer]]
		other := p.members[map[string]string{"a": "c", "b": "a", "c": "b"}[l.peer]]
		is := func(err, want error) {
			t.Helper()
			if !errors.Is(err, want) {
				t.Fatalf("%v, expected %v", err, want)
			}
		}
		is(follower.AddLearner("d"), ErrNotLeader)
		is(follower.Transfer(l.peer), ErrNotLeader)
		is(l.AddLearner("a"), raftgroup.ErrMember)
		is(l.Promote("d"), ErrNotMember)
		is(l.Promote("a"), raftgroup.ErrMember)
		is(l.Remove("d"), ErrNotMember)
		is(l.Transfer(l.peer), raftgroup.ErrMember)
		is(l.Transfer("d"), ErrNotMember)
		if l.AddLearner("") == nil {
			t.Fatal("added no Member")
		}
		p.pass(time.Second)
		if err := l.AddLearner("d"); err != nil {
			t.Fatal(err)
		}
		is(l.AddLearner("e"), raftgroup.ErrBusy)
		is(l.Remove(follower.peer), raftgroup.ErrBusy)
		p.pass(time.Second)
		is(l.Promote("d"), raftgroup.ErrBehind) // it has not joined
		is(l.Transfer("d"), ErrNotMember)
		is(l.AddLearner("d"), raftgroup.ErrMember)

		// Without follower and other there is no majority: neither may be removed while the other is cut off.
		p.net.set(other.peer, true)
		p.pass(2 * time.Second)
		if !l.leading {
			t.Fatal("the leader lost its leadership with two of three")
		}
		is(l.Remove(follower.peer), raftgroup.ErrMajority)
		is(l.Transfer(other.peer), raftgroup.ErrBehind)
		p.remove(other.peer)
		p.remove("d")
		p.propose(3, l.peer, follower.peer)
	})
}

// TestChangesSurviveRestart: the configuration is stored with the applied index of its entry, neither before nor after.
func TestChangesSurviveRestart(t *testing.T) {
	d := newDisk()
	h := newTestHost(t, d)
	g := openNow(t, h, Founding{Group: 7, Members: []string{"me"}, Tables: []TablePrefix{}})
	g.Dequeue()
	if err := g.Propose([]byte("before")); err != nil {
		t.Fatal(err)
	}
	pump(h)
	if err := g.AddLearner("b"); err != nil {
		t.Fatal(err)
	}
	pump(h)
	got := g.Dequeue()
	c, ok := got[len(got)-1].(Configured)
	if !ok || len(c.Members) != 2 || c.Members[1] != (Member{ID: 2, Peer: "b", Learner: true}) {
		t.Fatalf("delivered %v", got)
	}
	stored := func() (raftlog.State, *raftlog.Configuration) {
		s, conf, err := raftlog.LoadState(d, 7)
		if err != nil {
			t.Fatal(err)
		}
		return s, conf
	}
	h.committer.flushDue = true
	pump(h)
	if s, conf := stored(); s.Applied >= c.Index || len(conf.Learners) != 0 {
		t.Fatalf("applied %d, stored %+v: the owner has not applied what came before", s.Applied, conf)
	}

	// A crash before: the change is delivered again.
	h = newTestHost(t, d)
	g = openNow(t, h, alone(7))
	if !slices.Equal(g.Members(), []string{"me"}) && !slices.Equal(g.Members(), []string{"me", "b"}) {
		t.Fatal(g.Members())
	}
	got = g.Dequeue()
	i := slices.IndexFunc(got, func(d Delivery) bool { _, ok := d.(Configured); return ok })
	if i < 0 || !slices.Equal(texts(got[:i]), []string{"before"}) {
		t.Fatalf("delivered %v", got)
	}
	g.ReportApplied(lastIndex(got), nil)
	h.committer.flushDue = true
	pump(h)
	s, conf := stored()
	if s.Applied < c.Index || len(conf.Learners) != 1 || conf.Next != 3 || conf.Index != c.Index {
		t.Fatalf("applied %d, stored %+v", s.Applied, conf)
	}

	// A crash after: it is in force, and not delivered.
	h = newTestHost(t, d)
	g = openNow(t, h, alone(7))
	if got := g.Configuration(); got.Index != c.Index || !slices.Equal(got.Members, c.Members) {
		t.Fatalf("%v after a restart", got)
	}
	for _, d := range g.Dequeue() {
		if _, ok := d.(Configured); ok {
			t.Fatal("delivered twice")
		}
	}
}

// TestStatusForgetsTheLastLearner: a group that is alone again has no clock, and its status still shows that it is
// alone.
func TestStatusForgetsTheLastLearner(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newTestGroup(t, []string{"a"})
		g := p.members["a"].Group
		p.try("add b", func() error { return g.AddLearner("b") })
		p.until("b is added", func() bool { return len(g.Status().Members) == 2 })
		p.try("remove b", func() error { return g.Remove("b") })
		p.until("b is taken out", func() bool { return len(g.Configuration().Members) == 1 })
		<-time.After(time.Second) // longer than any tick
		if all := g.Status().Members; len(all) != 1 {
			t.Errorf("the leader sees %v", all)
		}
	})
}
