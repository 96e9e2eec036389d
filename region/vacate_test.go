package region

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

var (
	distant     = grid.ChunkPos{X: 100, Z: 1} // players begin far away
	distantCell = grid.CellAt(distant, grid.FoundingLabel)
)

// vacating starts A, B and C, which give up land after 20 minutes.
func vacating(t *testing.T, meddle func(to, from string, q *nodemsg.Question) *nodemsg.Answer) (n *network, all []*node) {
	n = newNetwork(t)
	n.copies, n.meddle = 3, meddle
	n.adjust = func(_ string, o *Options) { o.VacateAfter = 20 * time.Minute }
	n.near("A", "B", "C")
	for _, peer := range []string{"A", "B", "C"} {
		all = append(all, n.start(peer, newDisk()))
	}
	<-time.After(30 * time.Second) // all are members of the catalog
	return n, all
}

// founded has a region founded, which nobody watches then. It returns the region and the node that leads it.
func (n *node) founded(pos grid.ChunkPos) (nodemsg.Region, *node) {
	n.net.t.Helper()
	link, info, err := n.Follow(n.net.t.Context(), pos)
	if err != nil {
		n.net.t.Fatal(err)
	}
	link.Close()
	<-time.After(3 * time.Second)
	leader, err := n.net.node(info.Leader)
	if err != nil {
		n.net.t.Fatal(err)
	}
	return info, leader
}

// copies returns how many nodes store a region, and whether the catalog lists it.
func copiesOf(t *testing.T, id uint64, all ...*node) (stored int, listed bool) {
	t.Helper()
	for _, it := range all {
		has, err := it.Replicas.Has(id)
		if err != nil {
			t.Fatal(err)
		}
		_, unknown := it.regions.registry.Region(id)
		if has || unknown == nil {
			stored++
		}
	}
	_, err := all[0].Directory.ByID(t.Context(), id)
	if err != nil && !errors.Is(err, ErrNotFounded) {
		t.Fatal(err)
	}
	return stored, err == nil
}

// wantCopies compares how many nodes store a region, and whether the catalog lists it.
func wantCopies(t *testing.T, id uint64, all []*node, stored int, listed bool) {
	t.Helper()
	if s, l := copiesOf(t, id, all...); s != stored || l != listed {
		t.Fatalf("region %d has %d copies, want %d; the catalog lists it: %t, want %t", id, s, stored, l, listed)
	}
}

// Land on which nothing was built is given up when nobody has watched it for long enough: the catalog and all members
// forget it. It is founded again, as another region, when somebody comes. Land that was edited stays, and so does that
// where players begin.
func TestEmptyLandIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, all := vacating(t, nil)
		a := all[0]
		empty, _ := a.founded(distant)
		first, _ := a.founded(here)
		g := a.follow(there)
		g.accepts(stoneAt(there, 1))
		edited := g.Link.(routedLink).info
		g.Close()
		<-time.After(15 * time.Minute)
		wantCopies(t, empty.ID, all, 3, true)
		before := a.States()
		<-time.After(20 * time.Minute)
		wantCopies(t, empty.ID, all, 0, false)
		wantCopies(t, edited.ID, all, 3, true)
		wantCopies(t, first.ID, all, 3, true) // players begin there
		if now := a.States(); now.World.Total() != before.World.Total()-1 || now.Node.Total() != before.Node.Total()-1 {
			t.Errorf("counted are %v and %v, before %v and %v", now.World, now.Node, before.World, before.Node)
		}
		if _, err := a.Find(t.Context(), distant); !errors.Is(err, ErrNotFounded) {
			t.Errorf("the land is found: %v", err)
		}
		for i, it := range all {
			g := it.reach(distant)
			g.accepts(stoneAt(distant, uint64(i+1)))
			again := g.Link.(routedLink).info
			if again.ID == empty.ID || !again.Newer(empty) {
				t.Errorf("region %d, founded by entry %d, comes after region %d, founded by entry %d", again.ID, again.Founded, empty.ID, empty.Founded)
			}
			g.Close()
		}
		<-time.After(time.Hour)
		a.reach(distant).has(distant, stoneAt(distant, 1), stoneAt(distant, 2), stoneAt(distant, 3))
		a.reach(there).has(there, stoneAt(there, 1))
	})
}

// A node that still has the route of land that was given up finds out, and founds nothing by that.
func TestRouteOfLandThatWasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, all := vacating(t, nil)
		d := n.start("D", newDisk())
		empty, _ := d.founded(distant)
		<-time.After(40 * time.Minute)
		if _, listed := copiesOf(t, empty.ID, all...); listed {
			t.Fatal("the land is still listed")
		}
		if info, ok := d.Directory.Known(distant); !ok || info.ID != empty.ID {
			t.Fatalf("known is region %d, %v: there is no route", info.ID, ok)
		}
		for range 2 {
			if info, err := d.Find(t.Context(), distant); !errors.Is(err, ErrNotFounded) {
				t.Errorf("found is region %d, %v", info.ID, err)
			}
		}
		if info, ok := d.Directory.Known(distant); ok {
			t.Errorf("known is region %d: the route is still there", info.ID)
		}
		again, err := d.Locate(t.Context(), distant)
		if err != nil || !again.Newer(empty) {
			t.Errorf("founded again is %+v, %v", again, err)
		}
		if info, err := d.Find(t.Context(), distant); err != nil || info.ID != again.ID {
			t.Errorf("found is region %d, %v", info.ID, err)
		}
	})
}

// Land that somebody watches is not given up, nor land to which somebody comes now and then.
func TestWatchedLandStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, all := vacating(t, nil)
		info, leader := all[0].founded(distant)
		for range 4 {
			<-time.After(16 * time.Minute)
			all[1].reach(distant).Close()
		}
		wantCopies(t, info.ID, all, 3, true)
		all[1].reach(distant)
		if err := leader.vacater.Vacate(t.Context(), info.ID); !errors.Is(err, actor.ErrInUse) {
			t.Errorf("land that is watched is given up: %v", err)
		}
	})
}

// All nodes are killed right after a region has ended, or its leader is, before the catalog has heard of it: the others
// go on.
func TestVacateSurvivesCrash(t *testing.T) {
	for _, who := range []string{"the leader", "all"} {
		t.Run(who, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var deaf atomic.Bool
				n, all := vacating(t, func(_, _ string, q *nodemsg.Question) *nodemsg.Answer {
					if q.Vacated != nil && deaf.Load() {
						return &nodemsg.Answer{Error: "not now"}
					}
					return nil
				})
				for _, it := range all {
					ask := it.vacater.Here
					it.vacater.Here = func(ctx context.Context, c *actor.Catalog, v nodemsg.Vacated) (nodemsg.Region, error) {
						if deaf.Load() {
							return nodemsg.Region{}, errors.New("not now")
						}
						return ask(ctx, c, v)
					}
				}
				info, leader := all[0].founded(distant)
				deaf.Store(true)
				if err := leader.vacater.Vacate(t.Context(), info.ID); !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("the region is given up: %v", err)
				}
				wantCopies(t, info.ID, all, 3, true)
				if _, _, err := all[1].Follow(t.Context(), distant); err == nil {
					t.Error("land that was given up is used")
				}
				if who == "all" {
					ended := make(chan error)
					close(ended)
					deaf.Store(false)
					restartAll(t, all[0], all[1], all[2], ended)
				} else {
					left := n.kill(leader)
					deaf.Store(false)
					<-time.After(30 * time.Second)
					n.start(leader.peer, left)
				}
				<-time.After(12 * time.Minute)
				all = all[:0]
				for _, peer := range []string{"A", "B", "C"} {
					it, err := n.node(peer)
					if err != nil {
						t.Fatal(err)
					}
					all = append(all, it)
				}
				wantCopies(t, info.ID, all, 0, false)
				all[0].reach(distant).accepts(stoneAt(distant, 1))
			})
		})
	}
}

// A member that is away while a region is given up deletes its copy when it is back, whether it has run meanwhile or
// not.
func TestStaleCopyOfLandThatWasGivenUp(t *testing.T) {
	for _, killed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			n, all := vacating(t, nil)
			info, leader := all[0].founded(distant)
			var away *node
			for _, it := range all {
				if catalog, err := n.Catalog(t.Context()); err == nil && it != leader && it.peer != catalog.Leader {
					away = it
				}
			}
			if away == nil {
				t.Fatal("every member leads the region or the catalog")
			}
			var left *disk
			if killed {
				left = n.kill(away)
			} else {
				n.cut(away.peer, true)
			}
			<-time.After(2 * time.Minute) // it is gone, but nobody can replace it
			if err := leader.vacater.Vacate(t.Context(), info.ID); err != nil {
				t.Fatal(err)
			}
			leader.reach(distant).accepts(stoneAt(distant, 1))
			if killed {
				away = n.start(away.peer, left)
			} else {
				n.cut(away.peer, false)
			}
			<-time.After(12 * time.Minute)
			if stored, _ := copiesOf(t, info.ID, away); stored != 0 {
				t.Errorf("killed: %v: the copy of %s is still there", killed, away.peer)
			}
			away.reach(distant).has(distant, stoneAt(distant, 1))
		})
	}
}

// One member of three says of a region with edits that it was given up, and reports so to the catalog, also while the
// others are down.
func TestLieThatLandWasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var info nodemsg.Region
		n, all := vacating(t, func(to, _ string, q *nodemsg.Question) *nodemsg.Answer {
			if to != "C" || q.Status == nil || info.ID == 0 {
				return nil
			}
			said := nodemsg.RegionStatus{Region: info.ID, State: nodemsg.StateOpen, Structure: &nodemsg.Structure{Vacated: 9}}
			return &nodemsg.Answer{Statuses: []nodemsg.RegionStatus{said}}
		})
		a, b := all[0], all[1]
		g := a.follow(distant)
		g.accepts(stoneAt(distant, 1))
		g.Close()
		info = g.Link.(routedLink).info
		lie := nodemsg.Question{Vacated: &nodemsg.Vacated{Region: info.ID, Cell: distantCell}}
		catalog, err := n.Catalog(t.Context())
		if err != nil || catalog.Leader == "C" {
			t.Fatal("the liar leads the catalog", err)
		}
		leader, err := n.node(catalog.Leader)
		if err != nil {
			t.Fatal(err)
		}
		if answer := leader.ask("C", lie); answer.Error == "" {
			t.Errorf("the catalog obeyed: %+v", answer)
		}
		if answer := leader.ask("D", lie); answer.Error == "" {
			t.Errorf("the catalog obeyed a stranger: %+v", answer)
		}
		for _, it := range []*node{a, b} {
			if it != leader { // the catalog keeps its majority: C is a member
				n.kill(it)
			}
		}
		<-time.After(10 * time.Second)
		leader.lose(info.ID) // it cannot say anything about the region
		if answer := leader.ask("C", lie); answer.Error == "" {
			t.Errorf("the catalog obeyed while the others were down: %+v", answer)
		}
		if listed, err := leader.Directory.ByID(t.Context(), info.ID); err != nil || listed.ID != info.ID {
			t.Errorf("the catalog lists %+v, %v", listed, err)
		}
	})
}

// What prevents that a region is given up for a few minutes does not keep it for as long as players that come.
func TestVacateIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, all := vacating(t, nil)
		info, leader := all[0].founded(distant)
		if !leader.supervisor.BeginChange(info.ID) {
			t.Fatal("its members are being changed already")
		}
		<-time.After(28 * time.Minute)
		wantCopies(t, info.ID, all, 3, true)
		leader.supervisor.EndChange(info.ID)
		<-time.After(8 * time.Minute)
		wantCopies(t, info.ID, all, 0, false)
	})
}

// A region whose goroutine waits for a disk does not keep the others from being given up.
func TestVacateBesideHungRegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, all := vacating(t, nil)
		hung, leader := all[0].founded(distant)
		all[0].follow(distant) // it stays open
		info, other := all[0].founded(grid.ChunkPos{X: 300, Z: 1})
		if other != leader {
			t.Fatal("the regions have different leaders")
		}
		<-time.After(24 * time.Minute)
		release := make(chan struct{})
		defer close(release)
		leader.regions.Loaded(hung.ID).Enqueue(func(actor.Tx) { <-release })
		<-time.After(4 * time.Minute)
		wantCopies(t, info.ID, all, 0, false)
	})
}

// The end of a region arrives in the catalog's log once more while its cell is being founded again. Whoever has it
// founded is answered with the region that is founded then.
func TestFoundedDuringLateEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, all := vacating(t, nil)
		at, err := n.Catalog(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		leader, err := n.node(at.Leader)
		if err != nil {
			t.Fatal(err)
		}
		entry, err := world.EncodeVacated(nodemsg.Vacated{Region: 1 << 40, Cell: distantCell})
		if err != nil {
			t.Fatal(err)
		}
		c := leader.regions.Catalog()
		if err := c.Raft().Propose(entry); err != nil {
			t.Fatal(err)
		}
		info, err := c.Found(t.Context(), nodemsg.Found{Cell: distantCell, Members: []nodemsg.Member{all[0].Self}})
		if err != nil || info.ID == 0 {
			t.Errorf("founded is %+v, %v", info, err)
		}
	})
}

// A copy without rows is recovered if its log may have edits that are not in its rows yet.
func TestUnappliedLogIsNotEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, all := vacating(t, nil)
		lost := nodemsg.Region{ID: 1 << 40, Cell: distantCell}
		for applied, refused := range map[uint64]bool{7: true, 6: false} {
			why, err := all[0].Refounder.Outdated(t.Context(), lost, replica.Position{Last: 7, Applied: applied})
			if err != nil || (why != "") != refused {
				t.Errorf("with %d of 7 entries applied: %q, %v", applied, why, err)
			}
		}
	})
}

// The catalog's leader, which lies, does not list land that exists. Members keep their copies, although nothing was
// built there.
func TestUnlistedLandIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lying atomic.Uint64
		n, all := vacating(t, func(_, _ string, q *nodemsg.Question) *nodemsg.Answer {
			if q.Authority != nil && q.Authority.ID != 0 && q.Authority.ID == lying.Load() {
				return &nodemsg.Answer{}
			}
			return nil
		})
		catalog, err := n.Catalog(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		info, _ := all[0].founded(distant)
		<-time.After(30 * time.Second)
		lying.Store(info.ID)
		<-time.After(12 * time.Minute)
		for _, it := range all {
			if has, err := it.Replicas.Has(info.ID); !has || err != nil {
				t.Errorf("%s has deleted its copy on the word of %s: %v", it.peer, catalog.Leader, err)
			}
		}
	})
}

// Land that was founded, and that nobody has come to, is given up, too.
func TestUnopenedLandIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, all := vacating(t, nil)
		info, err := all[1].Locate(t.Context(), distant)
		if err != nil {
			t.Fatal(err)
		}
		wantCopies(t, info.ID, all, 0, true)
		<-time.After(45 * time.Minute)
		wantCopies(t, info.ID, all, 0, false)
	})
}

// The catalog lists land that was given up, as after a recovery from a member that lacked that entry, and no member has
// a copy any more. The operator has it founded again.
func TestLandListedAgainIsFoundedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, all := vacating(t, nil)
		info, _ := all[0].founded(distant)
		for stored := 3; stored > 0; stored, _ = copiesOf(t, info.ID, all...) { // a message under way makes a copy anew
			for _, it := range all {
				if land := it.regions.Loaded(info.ID); land != nil {
					land.Remove(false)
					<-land.Done()
				} else if err := it.opener.Delete(info); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
		}
		wantCopies(t, info.ID, all, 0, true)
		at, err := n.Catalog(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		leader, err := n.node(at.Leader)
		if err != nil {
			t.Fatal(err)
		}
		if err := leader.Refounder.Refound(t.Context(), distantCell, integrity.RefoundedLand{}); err != nil {
			t.Fatal(err)
		}
		all[1].reach(distant).accepts(stoneAt(distant, 1))
	})
}
