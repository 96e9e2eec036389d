package region

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/world"
)

// A node of an earlier version is not made a member of a region, and doctor names it. Another node becomes one.
func TestOldNodeIsNotInvited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.copies, n.old = 2, "B"
		n.adjust = func(_ string, o *Options) { o.World = "world" }
		a := n.start("A", newDisk())
		e := stone(uint64(time.Now().UnixMicro()))
		e.Player, e.Name = player.GuestID("steve"), "steve"
		g := a.follow(here)
		if r := g.edit(e); r[e.Seq].Refused != "" {
			t.Fatalf("edit: %+v", r)
		}
		info, err := a.Locate(t.Context(), here)
		if err != nil {
			t.Fatal(err)
		}
		b, c := n.start("B", newDisk()), n.start("C", newDisk())
		n.near("A", "B", "C")
		<-time.After(time.Minute)
		if b.replicaID(info.ID) != 0 {
			t.Error("the old node is a member")
		}
		if c.replicaID(info.ID) == 0 {
			t.Error("no other node is a member instead")
		}
		if found := kinds(a.Examiner.Examine(t.Context()), "B"); !slices.Contains(found, "older") {
			t.Errorf("what is found about the old node: %v", found)
		}
	})
}

// A leader whose disk is an old copy lacks the replica ids given since, and gives one of them to a node that had it
// before. The node refuses; it is removed and becomes a member under another id.
func TestLearnerThatHadItsIDBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.copies = 2
		a := n.start("A", newDisk())
		a.follow(here).edit(stone(1))
		early := a.disk.afterCrash()
		b, c := n.start("B", newDisk()), n.start("C", newDisk())
		n.near("A", "B", "C")
		<-time.After(20 * time.Second)
		info, err := a.Locate(t.Context(), here)
		if err != nil {
			t.Fatal(err)
		}
		first := b.replicaID(info.ID)
		if first == 0 {
			t.Fatal("B is no member")
		}
		n.near("A", "C", "B")
		<-time.After(30 * time.Second)
		if b.replicaID(info.ID) != 0 {
			t.Fatal("B is a member still")
		}
		left := b.disk
		for _, it := range []*node{a, b, c} {
			it.stop()
		}

		n = newNetwork(t)
		n.copies = 2
		a, b = n.start("A", early), n.start("B", left)
		n.near("A", "B")
		a.follow(here)
		<-time.After(30 * time.Second)
		if id := b.replicaID(info.ID); id <= first {
			t.Errorf("B is replica %d of the region, and was replica %d before", id, first)
		}
		if b.regions.Catalog() == nil || actor.OwnReplica(b.regions.Catalog().Raft(), "B") == 0 {
			t.Errorf("B is no member of group %d", world.CatalogID)
		}
		for _, m := range a.regions.Loaded(info.ID).Raft().Configuration().Members {
			if m.Learner {
				t.Errorf("%s is a learner still", m.Peer)
			}
		}
	})
}
