package region

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/world"
)

// voters lists who has a vote in a region, or the catalog, as the node knows it; "" if it is not open there.
func (n *node) voters(id uint64) string {
	var members []replica.Member
	if l, root := n.regions.Loaded(id), n.regions.Catalog(); l != nil {
		members = l.Raft().Configuration().Members
	} else if id == world.CatalogID && root != nil {
		members = root.Raft().Configuration().Members
	}
	all := make([]string, 0, len(members))
	for _, m := range members {
		if !m.Learner {
			all = append(all, m.Peer)
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// A region has five members where five operators run nodes. While one of them is away nothing is changed; if two are
// for long, it has three members until all are back.
func TestFiveOperators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.copies = 3
		n.operators = map[string]string{"A": "ada", "A2": "ada", "B": "bob", "C": "cleo", "D": "dan", "E": "eve"}
		n.near("A", "A2", "B", "C", "D", "E")
		a := n.start("A", newDisk())
		n.start("A2", newDisk())
		n.start("B", newDisk())
		n.start("C", newDisk())
		d, e := n.start("D", newDisk()), n.start("E", newDisk())
		<-time.After(20 * time.Second)
		a.follow(here).edit(stone(1))
		id := idHere(t, a)
		if got := a.voters(id); got != "A B C D E" {
			t.Fatalf("the region was founded with the members %s", got)
		}
		if got := a.voters(world.CatalogID); got != "A B C D E" {
			t.Fatalf("the catalog has the members %s", got)
		}
		is := func(when, want string) {
			t.Helper()
			<-time.After(3 * time.Minute) // the grace period is one
			for _, group := range []uint64{id, world.CatalogID} {
				if got := a.voters(group); got != want {
					t.Errorf("%s group %d has the members %s, want %s", when, group, got, want)
				}
			}
			if all := a.States().World.Named(); all["healthy"] != 1 {
				t.Errorf("%s the regions are %v", when, all)
			}
		}
		changed := a.regions.Loaded(id).Raft().Configuration().Index
		left := n.kill(e)
		is("while E is away", "A B C D E")
		e = n.start("E", left)
		is("when E is back", "A B C D E")
		if now := a.regions.Loaded(id).Raft().Configuration().Index; now != changed {
			t.Errorf("the members changed at %d and %d", changed, now)
		}
		leftD, left := n.kill(d), n.kill(e)
		is("while D and E are away", "A A2 B")
		n.start("D", leftD)
		is("when D is back", "A A2 B")
		n.start("E", left)
		is("when both are back", "A B C D E")
	})
}

// Land is founded with as many members as are wanted if nodes of so few operators live that some must be of the same
// one.
func TestFoundedWhileOperatorsAreDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.copies = 3
		n.operators = map[string]string{"A": "ada", "A2": "ada", "B": "bob", "B2": "bob", "C": "cleo", "D": "dan", "E": "eve"}
		n.near("A", "B", "C", "D", "E", "A2", "B2")
		a := n.start("A", newDisk())
		n.start("B", newDisk())
		n.start("A2", newDisk())
		n.start("B2", newDisk())
		<-time.After(20 * time.Second)
		a.follow(here).edit(stone(1))
		if got := a.voters(idHere(t, a)); got != "A A2 B" {
			t.Errorf("the region was founded with the members %s", got)
		}
	})
}

// Regions that are closed get five members when the fifth operator comes, and three when two have gone.
func TestClosedRegionsFollowOperators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.copies = 3
		n.operators = map[string]string{"A": "ada", "B": "bob", "C": "cleo", "D": "dan", "E": "eve"}
		n.near("A", "B", "C", "D", "E")
		a := n.start("A", newDisk())
		n.start("B", newDisk())
		n.start("C", newDisk())
		<-time.After(20 * time.Second)
		g := a.follow(here)
		g.edit(stone(1))
		id := idHere(t, a)
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		is := func(when string, want int) {
			t.Helper()
			<-time.After(5 * time.Minute)
			known, err := a.regions.Catalog().Find(t.Context(), id)
			if err != nil || len(known.Members) != want {
				t.Errorf("%s the region has %d members, want %d: %v", when, len(known.Members), want, err)
			}
			if all := a.Regions(t.Context()); len(all) != 0 {
				t.Errorf("%s it does not sleep: %+v", when, all)
			}
		}
		is("with three operators", 3)
		d, e := n.start("D", newDisk()), n.start("E", newDisk())
		is("with five", 5)
		n.kill(d)
		is("while one is away", 5)
		n.kill(e)
		is("while two are away", 3)
		if s := a.refollow().state(here); len(s.Edits) != 1 {
			t.Errorf("the land has the edits %+v", s.Edits)
		}
	})
}

// A node that cannot take a copy does not keep a region from getting one elsewhere. It gets one when it can.
func TestFullDiskIsPassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, _, c := three(t)
		full := newDisk()
		d := n.start("D", full)
		n.start("E", newDisk())
		n.near("A", "B", "C", "D", "E")
		<-time.After(30 * time.Second)
		a.follow(here).edit(stone(1))
		id := idHere(t, a)
		refuse := func(err error) {
			full.mu.Lock()
			defer full.mu.Unlock()
			full.refuse = err
		}
		refuse(syscall.ENOSPC)
		n.kill(c)
		<-time.After(5 * time.Minute)
		if has, err := d.Replicas.Has(id); has || err != nil {
			t.Errorf("D has a copy: %v, %v", has, err)
		}
		if got := a.voters(id); got != "A B E" {
			t.Errorf("the region has the members %s", got)
		}
		refuse(nil)
		<-time.After(40 * time.Minute)
		if got := a.voters(id); got != "A B D" {
			t.Errorf("when D has room again, the region has the members %s", got)
		}
	})
}

// In an open world, where no operators are known, a member of five that has gone is replaced, of the catalog and of a
// region that is closed.
func TestFiveMembersOfAnOpenWorld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.copies = 5
		n.near("A", "B", "C", "D", "E", "F")
		a := n.start("A", newDisk())
		for _, peer := range []string{"B", "C", "D"} {
			n.start(peer, newDisk())
		}
		e := n.start("E", newDisk())
		n.start("F", newDisk())
		<-time.After(20 * time.Second)
		g := a.follow(here)
		g.edit(stone(1))
		id := idHere(t, a)
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		<-time.After(5 * time.Minute)
		if all := a.Regions(t.Context()); len(all) != 0 {
			t.Fatalf("it does not sleep: %+v", all)
		}
		n.kill(e)
		<-time.After(5 * time.Minute)
		if got := a.voters(world.CatalogID); got != "A B C D F" {
			t.Errorf("the catalog has the members %s", got)
		}
		known, err := a.regions.Catalog().Find(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		var members []string
		for _, m := range known.Members {
			members = append(members, m.Peer)
		}
		slices.Sort(members)
		if got := strings.Join(members, " "); got != "A B C D F" {
			t.Errorf("the region has the members %s", got)
		}
	})
}
