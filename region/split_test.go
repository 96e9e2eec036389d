package region

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

var (
	hereCell = grid.CellAt(here, grid.FoundingLabel)
	beyond   = grid.ChunkPos{X: 9, Z: 1} // in the other half of the cell
)

func stoneAt(pos grid.ChunkPos, seq uint64) nodemsg.Intent {
	return nodemsg.Intent{Player: alice, Seq: seq, Pos: at(pos, int32(seq)), Block: chunk.Stone}
}

// has fails the test unless the chunk has exactly the edits.
func (g gateway) has(pos grid.ChunkPos, edits ...nodemsg.Intent) {
	g.t.Helper()
	want := make(map[chunk.Index]chunk.Block)
	for _, e := range edits {
		want[chunk.At(e.Pos)] = e.Block
	}
	got := g.state(pos).Edits
	if len(got) != len(want) || slices.ContainsFunc(got, func(b nodemsg.BlockAt) bool { return want[b.At] != b.Block }) {
		g.t.Errorf("chunk %v has %v, want %v", pos, got, edits)
	}
}

func (g gateway) accepts(edits ...nodemsg.Intent) {
	g.t.Helper()
	for _, r := range g.edit(edits...) {
		if r.Refused != "" {
			g.t.Errorf("edit refused: %+v", r)
		}
	}
}

func threeNodes(t *testing.T) (a, b, c *node) {
	n := newNetwork(t)
	n.copies = 3
	n.near("A", "B", "C")
	a, b, c = n.start("A", newDisk()), n.start("B", newDisk()), n.start("C", newDisk())
	<-time.After(30 * time.Second) // all are members of the catalog
	return a, b, c
}

// A region is split while it is used. Both children have their half of the edits, and all sequences; an edit that is sent again is
// not applied again; and the gateways are sent to the children.
func TestSplit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c := threeNodes(t)
		before := a.follow(here)
		before.accepts(stoneAt(here, 1), stoneAt(beyond, 2))
		parent := before.Link.(routedLink).info
		if err := b.Splitter.Split(t.Context(), hereCell); err != nil {
			t.Fatal(err)
		}
		if why := before.closed(); why == "" {
			t.Error("the gateway is not sent away")
		}
		lower, upper := hereCell.Children()
		for _, n := range []*node{a, b, c} {
			for pos, cell := range map[grid.ChunkPos]grid.Cell{here: lower, beyond: upper} {
				_, info, err := n.Follow(t.Context(), pos)
				if err != nil || info.Cell != cell || info.ID == parent.ID {
					t.Fatalf("%v at %s: region %d of %v, %v", pos, n.peer, info.ID, info.Cell, err)
				}
			}
		}
		low, high := c.follow(here), c.follow(beyond)
		low.accepts(stoneAt(here, 1), stoneAt(here, 3))
		high.accepts(stoneAt(beyond, 2), stoneAt(beyond, 4))
		low.has(here, stoneAt(here, 1), stoneAt(here, 3))
		high.has(beyond, stoneAt(beyond, 2), stoneAt(beyond, 4))
		if err := a.Splitter.Split(t.Context(), hereCell); !errors.Is(err, actor.ErrSplit) {
			t.Errorf("split twice: %v", err)
		}
		<-time.After(time.Minute)
		for pos, cell := range map[grid.ChunkPos]grid.Cell{here: lower, beyond: upper} {
			info, err := a.Directory.FromCatalog(t.Context(), pos)
			if err != nil || info.Cell != cell || len(info.Members) != 3 {
				t.Errorf("the catalog has %+v for %v, %v", info, pos, err)
			}
			same(t, info.ID, a, b, c)
		}
	})
}

// All nodes are killed at any moment after a split was acknowledged, and start again: nothing is lost.
func TestSplitSurvivesCrash(t *testing.T) {
	for _, after := range []time.Duration{0, time.Millisecond, 20 * time.Millisecond, 200 * time.Millisecond} {
		t.Run(after.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b, c := threeNodes(t)
				g := a.follow(here)
				g.accepts(stoneAt(here, 1), stoneAt(beyond, 2))
				splitting := make(chan error, 1)
				go func() { splitting <- b.Splitter.Split(context.Background(), hereCell) }()
				<-time.After(after)
				disks := make(map[string]*disk)
				for _, n := range []*node{a, b, c} {
					disks[n.peer] = n.net.kill(n)
				}
				<-splitting
				catalog, err := a.net.Catalog(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				net := a.net
				a = net.start(catalog.Leader, disks[catalog.Leader])
				for peer, disk := range disks {
					if peer != catalog.Leader {
						net.start(peer, disk)
					}
				}
				<-time.After(10 * time.Second)
				low, high := a.follow(here), a.follow(beyond)
				low.has(here, stoneAt(here, 1))
				high.has(beyond, stoneAt(beyond, 2))
				low.accepts(stoneAt(here, 1), stoneAt(here, 3))
				high.accepts(stoneAt(beyond, 2), stoneAt(beyond, 4))
			})
		})
	}
}

// A region is not split while a member is down: it may run an older version.
func TestSplitNeedsAllMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, c := threeNodes(t)
		a.follow(here).accepts(stoneAt(here, 1))
		c.net.kill(c)
		if err := a.Splitter.Split(t.Context(), hereCell); err == nil {
			t.Error("split without C")
		}
		a.follow(here).accepts(stoneAt(here, 2))
	})
}

// A member that is down during a split takes part in it when it comes back, and has the land of the children.
func TestMemberMissesSplit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c := threeNodes(t)
		g := a.follow(here)
		g.accepts(stoneAt(here, 1), stoneAt(beyond, 2))
		away := c.net.kill(c)
		leader := b
		if g.Link.(routedLink).info.Leader == "A" {
			leader = a
		}
		// A member that goes down just after it was asked.
		if err := actor.ProposeSplit(t.Context(), leader.regions.Loaded(g.Link.(routedLink).info.ID)); err != nil {
			t.Fatal(err)
		}
		low, high := a.follow(here), a.follow(beyond)
		low.accepts(stoneAt(here, 3))
		high.accepts(stoneAt(beyond, 4))
		c = a.net.start("C", away)
		<-time.After(30 * time.Second)
		for _, pos := range []grid.ChunkPos{here, beyond} {
			info, err := a.Locate(t.Context(), pos)
			if err != nil {
				t.Fatal(err)
			}
			same(t, info.ID, a, b, c)
		}
	})
}

// The children of a split region are merged while they are used: the parent has what was built in both.
func TestMerge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c := threeNodes(t)
		before := a.follow(here)
		before.accepts(stoneAt(here, 1), stoneAt(beyond, 2))
		if err := b.Splitter.Split(t.Context(), hereCell); err != nil {
			t.Fatal(err)
		}
		low, high := c.follow(here), c.follow(beyond)
		low.accepts(stoneAt(here, 3))
		high.accepts(stoneAt(beyond, 4))
		if err := c.Splitter.Merge(t.Context(), hereCell); err != nil {
			t.Fatal(err)
		}
		merged := time.Now()
		if low.closed() == "" || high.closed() == "" {
			t.Error("the gateways are not sent away")
		}
		if took := time.Since(merged); took > 200*time.Millisecond {
			t.Errorf("the gateways are sent to the parent %v after the merge: edits wait until then", took)
		}
		for _, n := range []*node{a, b, c} {
			if info := n.reach(beyond).Link.(routedLink).info; info.Cell != hereCell || info.ID != before.Link.(routedLink).info.ID {
				t.Fatalf("at %s: region %d of %v", n.peer, info.ID, info.Cell)
			}
		}
		g := b.reach(here)
		g.accepts(stoneAt(here, 1), stoneAt(here, 3), stoneAt(beyond, 4), stoneAt(beyond, 5))
		g.has(here, stoneAt(here, 1), stoneAt(here, 3))
		g.has(beyond, stoneAt(beyond, 2), stoneAt(beyond, 4), stoneAt(beyond, 5))
		<-time.After(time.Minute)
		a.reach(here).accepts(stoneAt(here, 6)) // it wakes
		<-time.After(5 * time.Second)
		same(t, before.Link.(routedLink).info.ID, a, b, c)
		for _, n := range []*node{a, b, c} {
			if all, err := n.registry.All(); err != nil || len(all) != 1 {
				t.Errorf("%s stores %d regions, %v", n.peer, len(all), err)
			}
		}
		if err := a.Splitter.Split(t.Context(), hereCell); err != nil {
			t.Errorf("split again: %v", err)
		}
		a.reach(beyond).has(beyond, stoneAt(beyond, 2), stoneAt(beyond, 4), stoneAt(beyond, 5))
	})
}

// The leader's disk is full when it applies a split: the gateways are sent to the children, which the other members have.
func TestSplitOnFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c := threeNodes(t)
		g := a.follow(here)
		g.accepts(stoneAt(here, 1), stoneAt(beyond, 2))
		leader, err := a.net.node(g.Link.(routedLink).info.Leader)
		if err != nil {
			t.Fatal(err)
		}
		id := g.Link.(routedLink).info.ID
		full := make(chan struct{})
		leader.regions.probe = func(_ *actor.Land, entry []byte) {
			if world.IsSplit(entry) {
				leader.disk.setRefuse(errNoSpace)
				close(full)
			}
		}
		if l := leader.regions.Loaded(id); l != nil {
			l.Enqueue(func() { l.Probe = leader.regions.probe })
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		go leader.Splitter.SplitHere(ctx, id) //nolint:errcheck // it does not return in time
		<-full
		if why := g.closed(); why == "" {
			t.Error("the gateway is not sent away")
		}
		other := b
		if leader == b {
			other = c
		}
		<-time.After(10 * time.Second)
		low, high := other.reach(here), other.reach(beyond)
		low.accepts(stoneAt(here, 1), stoneAt(here, 3))
		high.accepts(stoneAt(beyond, 4))
		leader.disk.setRefuse(nil)
		<-time.After(time.Minute)
		low, high = leader.reach(here), leader.reach(beyond)
		low.has(here, stoneAt(here, 1), stoneAt(here, 3))
		high.has(beyond, stoneAt(beyond, 2), stoneAt(beyond, 4))
		for _, pos := range []grid.ChunkPos{here, beyond} {
			info, err := leader.Locate(t.Context(), pos)
			if err != nil {
				t.Fatal(err)
			}
			same(t, info.ID, a, b, c)
		}
	})
}

// A copy of a region that was merged while its node was away does not keep that node from the regions that its cell has now, and is
// deleted, even if it never had land. What is published of a region that was deleted meanwhile does not come back.
func TestCopiesOfMergedRegions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, c := threeNodes(t)
		a.follow(here).accepts(stoneAt(here, 1), stoneAt(beyond, 2))
		if err := a.Splitter.Split(t.Context(), hereCell); err != nil {
			t.Fatal(err)
		}
		lower, _ := hereCell.Children()
		parent := a.reach(here).Link.(routedLink).info
		if err := a.Splitter.Split(t.Context(), lower); err != nil {
			t.Fatal(err)
		}
		child := a.reach(here).Link.(routedLink).info
		<-time.After(time.Minute)
		old := parent
		old.ID, old.Leader, old.Members = 2, "C", []nodemsg.Member{member("C")}
		old.Members[0].Replica = 1
		fork := replica.Fork{Group: old.ID, Index: 5, Term: 1, Members: []replica.Member{{ID: 1, Peer: "C"}}}
		if err := errors.Join(c.Replicas.Fork(fork), c.registry.Put(old)); err != nil {
			t.Fatal(err)
		}
		if _, awaited, err := c.Splitter.Awaited(t.Context(), child); awaited || err != nil {
			t.Errorf("a region is not joined because of an old copy of its parent: %v", err)
		}
		stranger := child
		stranger.ID = 3
		if _, _, err := c.Splitter.Awaited(t.Context(), stranger); !errors.Is(err, actor.ErrNotHere) {
			t.Errorf("a region that the catalog does not list is joined: %v", err)
		}
		<-time.After(6 * time.Minute)
		if has, err := c.Replicas.Has(old.ID); has || err != nil {
			t.Errorf("the old copy is still here: %v", err)
		}
		c.publisher.Changed(old)
		synctest.Wait()
		if _, err := c.registry.Region(old.ID); !errors.Is(err, actor.ErrNotHere) {
			t.Errorf("a deleted region is stored again: %v", err)
		}
	})
}
