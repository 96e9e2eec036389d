package region

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/copies"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// A catalog whose copy is from before a change of members hears of it again.
func TestOldCatalogHearsOfMembersAgain(t *testing.T) {
	const announcedFor = 10 * time.Minute // how long leaders take the catalog to have their report
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.copies = 3
		a, b, c := n.start("A", newDisk()), n.start("B", newDisk()), n.start("C", newDisk())
		n.place(grid.CatalogKey, "A")
		n.start("E", newDisk())
		n.near("C", "B", "E")
		c.follow(here).edit(stone(1))
		<-time.After(time.Minute)
		id := idHere(t, c)
		old := a.disk.afterCrash()
		members := func() string {
			known, err := a.regions.Catalog().Find(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			peers := strings.Split(peersOf(known), ", ")
			slices.Sort(peers)
			return strings.Join(peers, ", ")
		}

		n.kill(b)
		n.start("D", newDisk())
		n.near("C", "D", "E")
		<-time.After(3 * time.Minute)
		if got := members(); got != "C, D, E" {
			t.Fatalf("the catalog lists %s", got)
		}
		n.kill(a)
		<-time.After(announcedFor + time.Minute)
		info, err := c.Locate(t.Context(), here)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := c.supervisor.Announce(t.Context(), info); err != nil || time.Since(began) != 0 {
			t.Errorf("without a catalog, what it has heard blocks the region for %v: %v", time.Since(began), err)
		}
		a = n.start("A", old)
		<-time.After(time.Minute)
		if got := members(); got != "B, C, E" {
			t.Fatalf("the old copy lists %s: the test shows nothing", got)
		}
		<-time.After(announcedFor + time.Minute)
		if got := members(); got != "C, D, E" {
			t.Errorf("it lists %s later", got)
		}
	})
}

// An old copy is not offered while another node has a good one, even one that became a member after the copy was made.
// If all of them are lost, the operator has to confirm it. The recovered region and catalog use nothing again that was
// used since the copy was made, and nodes that come back join them.
func TestRecoverOldCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c := threeIncarnations(t)
		n := a.net
		g := a.follow(here)
		g.edit(stone(1))
		<-time.After(5 * time.Second)
		id := idHere(t, a)
		old := a.disk.afterCrash()

		diskB := n.kill(b)
		n.near("A", "C", "D")
		d := n.start("D", newDisk())
		<-time.After(3 * time.Minute) // D takes B's place
		if d.replicaID(id) == 0 || d.regions.Catalog() == nil {
			t.Fatal("D is no member")
		}
		g = a.refollow()
		g.edit(stone(2))
		since, err := a.Locate(t.Context(), there)
		if err != nil {
			t.Fatal(err)
		}
		a.announce(t, "C", "D")
		n.kill(a)
		a = n.start("A", old)
		if a.facts.Stored(id) != copies.Earlier {
			t.Fatal("the old copy is not noticed")
		}
		diskC := n.kill(c)
		<-time.After(a.recovery.SilentAfter() + time.Second)
		plans, err := a.PlanRecovery(t.Context(), []uint64{world.CatalogID, id})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range plans {
			if p.Old || p.Best != "D" || !strings.Contains(p.Refused, "the copy of D has more") {
				t.Errorf("with a good copy on D: %+v", p)
			}
		}
		if plans, err := d.PlanRecovery(t.Context(), []uint64{id}); err != nil || plans[0].Refused != "" || plans[0].Best != "D" || plans[0].Old {
			t.Errorf("on D: %+v, %v", plans, err)
		}

		diskD := n.kill(d)
		n.near("A")
		<-time.After(a.recovery.SilentAfter() + time.Second)
		for _, lost := range []uint64{world.CatalogID, id} {
			plans, err := a.PlanRecovery(t.Context(), []uint64{lost})
			if err != nil || plans[0].Refused != "" || !plans[0].Old || plans[0].Best != "A" || plans[0].Until.IsZero() {
				t.Fatalf("the plan: %+v, %v", plans, err)
			}
			if err := a.Recover(t.Context(), lost, false); err == nil || !strings.Contains(err.Error(), "confirmed") {
				t.Fatalf("recovered without a confirmation: %v", err)
			}
			if err := a.Recover(t.Context(), lost, true); err != nil {
				t.Fatal(err)
			}
		}
		g = a.refollow()
		if r := g.edit(stone(3))[3]; r.Refused != "" {
			t.Errorf("after the recovery: %+v", r)
		}
		if s := g.state(here); len(s.Edits) != 2 {
			t.Errorf("the land has the edits %+v, want those of the copy and one more", s.Edits)
		}
		for i := range int32(20) { // more entries than the catalog has had since the copy was made
			again, err := a.Locate(t.Context(), grid.ChunkPos{X: 1000 * (i + 1), Z: there.Z})
			if err != nil || again.ID == since.ID {
				t.Errorf("land that is founded after the recovery has the id %d, which was used before: %v", again.ID, err)
			}
		}

		b, c, d = n.start("B", diskB), n.start("C", diskC), n.start("D", diskD)
		n.near("A", "B", "C", "D")
		<-time.After(time.Second)
		d.opener.OpenMember(t.Context(), id) //nolint:errcheck // a copy is checked when it is opened
		<-time.After(3 * time.Minute)
		members := 0
		for _, it := range []*node{b, c, d} {
			for _, group := range []uint64{world.CatalogID, id} {
				if p, err := it.Replicas.Position(group); err == nil && p.Members.Index > 0 {
					if p.Replica < 1<<24 || p.Members.Recovered != 2 {
						t.Errorf("%s holds of group %d: %+v", it.peer, group, p)
					}
					members++
				}
			}
		}
		if members != 4 {
			t.Errorf("%d replicas on nodes that came back, want 2 of each group", members)
		}
		n.kill(a)
		<-time.After(10 * time.Second)
		left := 0
		for _, it := range []*node{b, c, d} {
			if it.replicaID(id) == 0 {
				continue
			}
			left++
			if r := it.refollow().edit(stone(uint64(3 + left)))[uint64(3+left)]; r.Refused != "" {
				t.Errorf("without A, over %s: %+v", it.peer, r)
			}
		}
	})
}

// A replica that is not even in the earlier state is never offered: its status says that there is none, and why.
func TestLostReplicaIsNotOffered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, c := threeIncarnations(t)
		old := c.disk.afterCrash()
		a.follow(here).edit(stone(1))
		<-time.After(5 * time.Second)
		id := idHere(t, a)
		c.announce(t, "A", "B")
		a.net.kill(c)
		c = a.net.start("C", old)
		<-time.After(4 * time.Second) // it has listed what it lacks, and nothing is replaced yet
		if s := c.reporter.status(id, true); s.State != nodemsg.StateNone || !s.Outdated {
			t.Errorf("the status of a replica that is lost: %+v", s)
		}
		plans, err := a.PlanRecovery(t.Context(), []uint64{id})
		if err != nil || plans[0].Copies[2].Missing == "" || plans[0].Copies[2].Outdated {
			t.Errorf("the plan: %+v, %v", plans, err)
		}
	})
}
