package region

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/region/membership"
	"github.com/voxelpopuli/voxeld/world"
)

// Four nodes become three, and the votes of the one that is gone go with it, also where nobody takes its place. Of
// three, one that is gone keeps its vote, and counts as missing, until an operator has it forgotten. Nobody forgets a
// node that is connected, or without which the majority is lost.
func TestVotesOfNodesThatAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.copies, n.adjust = 3, func(_ string, o *Options) { o.CatalogCopies = 5 }
		n.near("A", "B", "C", "D")
		a, b := n.start("A", newDisk()), n.start("B", newDisk())
		c, d := n.start("C", newDisk()), n.start("D", newDisk())
		<-time.After(time.Minute)
		a.follow(here).edit(stone(1))
		id := idHere(t, a)
		is := func(when, catalog, land string, state membership.State) {
			t.Helper()
			<-time.After(3 * time.Minute) // the grace period is one
			if got := a.voters(world.CatalogID); got != catalog {
				t.Errorf("%s the catalog has the members %s, want %s", when, got, catalog)
			}
			if got := a.voters(id); got != land {
				t.Errorf("%s the region has the members %s, want %s", when, got, land)
			}
			if all := a.States().Node; all[state] != all.Total() {
				t.Errorf("%s the regions are %v, want %v", when, all.Named(), state)
			}
		}
		promises := func(want string) {
			t.Helper()
			h := a.Examiner.Examine(t.Context())
			found := 0
			for _, f := range h.Findings {
				if f.Kind != membership.UnderReplicated.String() {
					continue
				}
				if found++; !strings.Contains(f.Do, want) {
					t.Errorf("%s: %s; want %q", f.Subject, f.Do, want)
				}
			}
			if found == 0 {
				t.Errorf("nothing is under-replicated: %+v", h.Findings)
			}
		}
		refuses := func(peer, want string) {
			t.Helper()
			if _, _, err := a.Forget(t.Context(), peer); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("forget %s: %v, want %q", peer, err, want)
			}
		}
		is("at first", "A B C D", "A B C", membership.Healthy)

		n.kill(d)
		<-time.After(20 * time.Second)
		promises("leave it")
		is("without D", "A B C", "A B C", membership.Healthy)

		left := n.kill(c)
		is("without C", "A B C", "A B C", membership.UnderReplicated)
		promises("no other one is there")
		refuses("A", "connected")
		refuses("B", "connected")
		if regions, missed, err := a.Forget(t.Context(), "C"); err != nil || regions != 2 || len(missed) > 0 {
			t.Errorf("forget C: %d regions, missed %v, %v", regions, missed, err)
		}
		is("when C is forgotten", "A B", "A B", membership.Healthy)

		leftB := n.kill(b)
		<-time.After(20 * time.Second)
		refuses("B", "the catalog")
		n.start("B", leftB)
		n.start("C", left)
		<-time.After(time.Minute)
		a.refollow().edit(stone(2))
		is("when both are back", "A B C", "A B C", membership.Healthy)
	})
}
