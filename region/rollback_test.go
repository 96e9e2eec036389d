package region

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/copies"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// threeIncarnations starts a world of three nodes, which notice when the data of another one was put back to an earlier
// state.
func threeIncarnations(t *testing.T) (a, b, c *node) {
	n := newNetwork(t)
	n.copies = 3
	n.adjust = func(peer string, o *Options) {
		k, err := integrity.OpenIncarnations(integrity.IncarnationsOptions{
			Storage: o.Storage,
			Sign:    func(text []byte) ([]byte, error) { return append([]byte(peer), text...), nil },
			Ask: func(ctx context.Context, to string, question []byte) ([]byte, error) {
				it, err := n.node(to)
				n.mu.Lock()
				apart := n.mu.apart[peer] != n.mu.apart[to]
				n.mu.Unlock()
				if err != nil || apart {
					return nil, errUnreachable
				}
				return it.Incarnations.Answer(ctx, peer, question)
			},
			Held:       func() (map[uint64]uint64, error) { return replica.Replicas(o.Storage, peer) },
			GroupPeers: func() ([]string, error) { return replica.GroupPeers(o.Storage, peer) }, OpenGroupPeers: o.Replicas.OpenGroupPeers,
			Promised: o.Replicas.Promised, Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
		})
		if err != nil {
			t.Fatal(err)
		}
		k.Greet(t.Context())
		o.Incarnations = k
	}
	n.near("A", "B", "C")
	a = n.start("A", newDisk())
	b, c = n.start("B", newDisk()), n.start("C", newDisk())
	<-time.After(30 * time.Second) // all are members of the catalog
	return a, b, c
}

// The only copy of a region is used although the data of its node was put back: nobody has what it has forgotten.
func TestOldCopyAloneIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, _ := threeIncarnations(t)
		n := a.net
		n.copies = 1
		n.near("A")
		a = n.start("A", n.kill(a)) // regions have one copy from now on
		g := a.follow(here)
		g.edit(stone(1))
		<-time.After(5 * time.Second)
		id, old := idHere(t, a), a.disk.afterCrash()
		g.edit(stone(2))
		a.announce(t, "B", "C")
		n.kill(a)
		a = n.start("A", old)
		if a.facts.Stored(id) != copies.Earlier {
			t.Fatal("the old copy is not noticed")
		}
		<-time.After(time.Minute)
		g = a.refollow()
		if r := g.edit(stone(3))[3]; r.Refused != "" {
			t.Errorf("edit: %+v", r)
		}
		if s := g.state(here); len(s.Edits) != 2 {
			t.Errorf("the land has the edits %+v, want that of the copy and one more", s.Edits)
		}
	})
}

// announce makes the node count what it has promised, and show that to the peers.
func (n *node) announce(t *testing.T, peers ...string) {
	t.Helper()
	if counted, err := n.Incarnations.Count(); err != nil || !counted {
		t.Fatalf("counted: %v, %v", counted, err)
	}
	for _, peer := range peers {
		if err := n.Incarnations.Exchange(t.Context(), peer); err != nil {
			t.Fatal(err)
		}
	}
}

// unread is a stream of which nothing must be read.
type unread struct {
	t     *testing.T
	reset bool
}

func (u *unread) Read([]byte) (int, error) {
	u.t.Error("raft messages of a node are read whose data is of an earlier state")
	return 0, io.EOF
}
func (u *unread) Write(p []byte) (int, error) { return len(p), nil }
func (u *unread) Close() error                { return nil }
func (u *unread) Reset()                      { u.reset = true }

// No raft message and no snapshot is read of a node that does not show that its data is as new as what was seen of it.
func TestNothingIsReadOfAnOldCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, c := threeIncarnations(t)
		a.net.kill(c) // it cannot show anything any more
		for name, serve := range map[string]func(context.Context, string, io.ReadWriteCloser){"raft": a.ServeRaft, "snapshot": a.ServeSnapshot} {
			stream := &unread{t: t}
			serve(t.Context(), "C", stream)
			if !stream.reset {
				t.Errorf("%s: the stream is not reset", name)
			}
		}
	})
}

// A leader that has not heard of it invites a learner again whose data was put back. The node does not open its old
// replica, which the leader would count with what it had acknowledged.
func TestOldReplicaIsNotInvitedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c := threeIncarnations(t)
		a.follow(here).edit(stone(1))
		<-time.After(5 * time.Second)
		id := a.Regions(t.Context())[0].Region.ID
		info, err := a.regions.Loaded(id).Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		old, disk := c.disk.afterCrash(), c.disk.afterCrash()
		invite := nodemsg.Invite{Region: info, Replica: c.replicaID(id)}
		for _, m := range a.regions.Loaded(id).Raft().Configuration().Members {
			invite.Voters = append(invite.Voters, nodemsg.Replica{ID: m.ID, Peer: m.Peer, Learner: m.Peer == "C"})
		}
		a.net.kill(c)
		c = a.net.start("C", disk)
		a.net.kill(c)
		c = a.net.start("C", old)
		a.net.cut("C", true) // it is not replaced yet
		if len(c.Incarnations.Outdated()) == 0 {
			t.Fatal("the old copy is not noticed")
		}
		if _, err := c.opener.joinGroup(t.Context(), "A", invite); !errors.Is(err, replica.ErrTombstone) || c.Replicas.IsOpen(id) {
			t.Errorf("invited as the old replica: %v; it is open: %v", err, c.Replicas.IsOpen(id))
		}
		a.net.cut("C", false)
		<-time.After(time.Minute)
		same(t, id, a, b, c)
	})
}

// A node is put back to a copy from before it joined a region. It does not join that again under the same replica id,
// with which it has promised something that it has forgotten.
func TestReplicaThatIsNotInTheCopyIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c := threeIncarnations(t)
		old := c.disk.afterCrash()
		g := a.follow(here)
		if r := g.edit(stone(1))[1]; r.Refused != "" {
			t.Fatalf("edit: %+v", r)
		}
		<-time.After(5 * time.Second)
		id := a.Regions(t.Context())[0].Region.ID
		before := c.replicaID(id)
		if before == 0 {
			t.Fatal("C is no member")
		}
		c.announce(t, "A", "B")
		a.net.kill(c)
		again := a.net.start("C", old)
		for range 1200 {
			<-time.After(100 * time.Millisecond)
			if again.replicaID(id) == before {
				t.Fatalf("C is replica %d again", before)
			}
		}
		if now := again.replicaID(id); now <= before {
			t.Errorf("C was replica %d, and is replica %d", before, now)
		}
		if left := again.Incarnations.Outdated(); len(left) != 0 || again.Incarnations.Unlisted() {
			t.Errorf("not replaced: %v", left)
		}
		same(t, id, a, b, again)
	})
}

// All raft messages of C are from and to the leader A. When A cannot be reached, B knows all the same that C's copy is
// old, and does not form a majority with it.
func TestFollowersRememberEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, c := threeIncarnations(t)
		old, disk := c.disk.afterCrash(), c.disk.afterCrash()
		a.net.kill(c)
		c = a.net.start("C", disk)
		<-time.After(5 * time.Second)
		a.net.kill(c)
		a.net.cut("A", true)
		c = a.net.start("C", old)
		if len(c.Incarnations.Outdated()) == 0 {
			t.Error("the old copy of C is used")
		}
	})
}

// C is put back to a state from so short a time ago that no peer knows better. The leader counts on what it has
// acknowledged since. C notices that, and its replica is replaced.
func TestForgottenEntriesAreNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c := threeIncarnations(t)
		g := a.follow(here)
		g.edit(stone(1))
		<-time.After(5 * time.Second)
		id := a.Regions(t.Context())[0].Region.ID
		old, before := c.disk.afterCrash(), c.replicaID(id)
		for seq := range uint64(20) {
			g.edit(stone(2 + seq))
		}
		synctest.Wait() // C has acknowledged them, too
		a.net.kill(c)
		c = a.net.start("C", old)
		if len(c.Incarnations.Outdated()) != 0 {
			t.Fatal("it is noticed at once, so this test shows nothing")
		}
		<-time.After(time.Minute)
		if now := c.replicaID(id); now <= before {
			t.Errorf("C was replica %d, and is replica %d", before, now)
		}
		same(t, id, a, b, c)
	})
}

// Likewise for the catalog.
func TestForgottenCatalogIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, c := threeIncarnations(t)
		own := func() uint64 { return actor.OwnReplica(c.regions.Catalog().Raft(), "C") }
		old, before := c.disk.afterCrash(), own()
		a.follow(here).edit(stone(1))
		synctest.Wait() // C has acknowledged the founding, too
		a.net.kill(c)
		c = a.net.start("C", old)
		<-time.After(time.Minute)
		if c.regions.Catalog() == nil || own() <= before || c.regions.Catalog().Raft().Status().Last != a.regions.Catalog().Raft().Status().Last {
			t.Error("C's copy of the catalog is not replaced")
		}
	})
}
