package region

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

var (
	hereCell = grid.CellAt(here, grid.FoundingLabel)
	beyond   = grid.ChunkPos{X: 9, Z: 1} // in the other half of the cell
)

func stoneAt(pos grid.ChunkPos, seq uint64) nodemsg.Intent {
	return guest("alice", seq, at(pos, int32(seq)), chunk.Stone)
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

// A region is split while it is used. Both children have their half of the edits, and all sequences; an edit that is
// sent again is not applied again; and the gateways are sent to the children.
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

// restartAll kills all nodes, and starts them again when what was under way has ended. It returns the one that leads
// the catalog.
func restartAll(t *testing.T, a, b, c *node, ended <-chan error) *node {
	t.Helper()
	net := a.net
	disks := make(map[string]*disk)
	for _, n := range []*node{a, b, c} {
		disks[n.peer] = net.kill(n)
	}
	<-ended
	catalog, err := net.Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first := net.start(catalog.Leader, disks[catalog.Leader])
	for peer, disk := range disks {
		if peer != catalog.Leader {
			net.start(peer, disk)
		}
	}
	<-time.After(10 * time.Second)
	return first
}

// A member reports a split as applied when it has stored both halves. If all are killed before that, nothing is lost.
func TestSplitIsStoredFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c := threeNodes(t)
		g := a.follow(here)
		g.accepts(stoneAt(here, 1), stoneAt(beyond, 2))
		parent := directory.Key(g.Link.(routedLink).info.ID)
		for _, n := range []*node{a, b, c} {
			n.disk.spoil(func(key []byte) bool { return !bytes.HasPrefix(key, parent) })
		}
		splitting := make(chan error, 1)
		go func() { splitting <- b.Splitter.Split(context.Background(), hereCell) }()
		<-time.After(time.Second)
		select {
		case err := <-splitting:
			t.Errorf("a split that no disk has stored has ended: %v", err)
			splitting <- err
		default:
		}
		a = restartAll(t, a, b, c, splitting)
		a.follow(here).has(here, stoneAt(here, 1))
		a.follow(beyond).has(beyond, stoneAt(beyond, 2))
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
				a = restartAll(t, a, b, c, splitting)
				low, high := a.follow(here), a.follow(beyond)
				low.has(here, stoneAt(here, 1))
				high.has(beyond, stoneAt(beyond, 2))
				low.accepts(stoneAt(here, 1), stoneAt(here, 3))
				high.accepts(stoneAt(beyond, 2), stoneAt(beyond, 4))
			})
		})
	}
}

// A region is split while a member is down, which splits it when it is back.
func TestSplitWithoutMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c := threeNodes(t)
		a.follow(here).accepts(stoneAt(here, 1), stoneAt(beyond, 2))
		<-time.After(20 * time.Second)
		away := c.net.kill(c)
		a.reach(here).accepts(stoneAt(here, 3))
		if err := a.Splitter.Split(t.Context(), hereCell); err != nil {
			t.Fatal(err)
		}
		a.reach(here).accepts(stoneAt(here, 1), stoneAt(here, 4))
		c = a.net.start("C", away)
		<-time.After(30 * time.Second)
		for _, pos := range []grid.ChunkPos{here, beyond} {
			info, err := c.Locate(t.Context(), pos)
			if err != nil {
				t.Fatal(err)
			}
			a.reach(pos)
			<-time.After(5 * time.Second)
			same(t, info.ID, a, b, c)
		}
	})
}

// The leader of a region has just moved when it is asked to split it: the next one does it. The same for a merge.
func TestSplitFollowsLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c := threeNodes(t)
		a.follow(here).accepts(stoneAt(here, 1), stoneAt(beyond, 2))
		// outdate makes a node's next route name a member that does not lead.
		outdate := func(n *node) {
			follow := n.Follow
			n.Splitter.Follow = func(ctx context.Context, pos grid.ChunkPos) (transport.Link, nodemsg.Region, error) {
				link, info, err := follow(ctx, pos)
				n.Splitter.Follow = follow
				if info.Leader == "A" {
					info.Leader = "B"
				} else {
					info.Leader = "A"
				}
				return link, info, err
			}
		}
		outdate(c)
		if err := c.Splitter.Split(t.Context(), hereCell); err != nil {
			t.Errorf("split: %v", err)
		}
		<-time.After(5 * time.Second)
		for _, n := range []*node{a, b, c} {
			outdate(n)
		}
		if err := c.Splitter.Merge(t.Context(), hereCell); err != nil {
			t.Errorf("merge: %v", err)
		}
		g := b.reach(here)
		g.has(here, stoneAt(here, 1))
		g.has(beyond, stoneAt(beyond, 2))
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
		if err := leader.regions.Loaded(g.Link.(routedLink).info.ID).ProposeSplit(t.Context()); err != nil {
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
			if all, err := n.regions.registry.All(); err != nil || len(all) != 1 {
				t.Errorf("%s stores %d regions, %v", n.peer, len(all), err)
			}
		}
		if err := a.Splitter.Split(t.Context(), hereCell); err != nil {
			t.Errorf("split again: %v", err)
		}
		if err := b.Splitter.Merge(t.Context(), hereCell); err != nil { // before the catalog lists that
			t.Errorf("merge at once: %v", err)
		}
		a.reach(beyond).has(beyond, stoneAt(beyond, 2), stoneAt(beyond, 4), stoneAt(beyond, 5))
	})
}

// The leader's disk is full when it applies a split: the gateways are sent to the children, which the other members
// have.
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
		leader.opener.probes.land = func(_ actor.Tx, entry []byte) {
			if bytes.Equal(entry, world.EncodeSplit()) {
				leader.disk.setRefuse(errNoSpace)
				close(full)
			}
		}
		if l := leader.regions.Loaded(id); l != nil {
			l.Enqueue(func(tx actor.Tx) { tx.Probe = leader.opener.probes.land })
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		go leader.Splitter.SplitHere(ctx, id) //nolint:errcheck // it does not return in time
		select {
		case <-full:
		case <-ctx.Done():
			t.Fatal("the split is not applied")
		}
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

// A copy of a region that was merged while its node was away does not keep that node from the regions that its cell has
// now, and is deleted, even if it never had land. What is published of a region that was deleted meanwhile does not
// come back.
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
		if err := errors.Join(c.Replicas.Fork(fork), c.regions.registry.Put(old)); err != nil {
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
		if _, err := c.regions.registry.Region(old.ID); !errors.Is(err, actor.ErrNotHere) {
			t.Errorf("a deleted region is stored again: %v", err)
		}
	})
}

// A member that is cut off while halves are merged keeps its open copies of them, without a leader. They go soon after
// it is back, and no gateway is led to them meanwhile.
func TestOpenCopyOfMergedRegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, c := threeNodes(t)
		a.follow(here).accepts(stoneAt(here, 1), stoneAt(beyond, 2))
		if err := a.Splitter.Split(t.Context(), hereCell); err != nil {
			t.Fatal(err)
		}
		a.reach(here)
		half := a.reach(beyond).Link.(routedLink).info
		<-time.After(5 * time.Second)
		a.net.cut("C", true)
		<-time.After(5 * time.Second)
		if err := a.Splitter.Merge(t.Context(), hereCell); err != nil {
			t.Fatal(err)
		}
		<-time.After(5 * time.Second)
		a.net.cut("C", false)
		a.reach(beyond)
		half.Leader, half.Term = "C", half.Term+1
		a.Directory.AddHint(half)
		if info, err := a.Locate(t.Context(), beyond); err != nil || info.Cell != hereCell {
			t.Errorf("a gateway is led to the old copy: %v, %v", info.Cell, err)
		}
		<-time.After(5 * time.Second)
		if has, err := c.Replicas.Has(half.ID); c.regions.Loaded(half.ID) != nil || has || err != nil {
			t.Errorf("the copy of the half is still open, or stored: %v", err)
		}
		a.reach(beyond).has(beyond, stoneAt(beyond, 2))
	})
}

// splitWithout splits the region here while a node is away, and returns the region as it was.
func splitWithout(t *testing.T, away *node, others ...*node) (parent nodemsg.Region, left *disk) {
	t.Helper()
	g := others[0].follow(here)
	g.accepts(stoneAt(here, 1), stoneAt(beyond, 2))
	<-time.After(5 * time.Second)
	left = away.net.kill(away)
	g = others[0].reach(here)
	g.accepts(stoneAt(here, 3)) // another one leads it
	parent = g.Link.(routedLink).info
	leader, err := away.net.node(parent.Leader)
	if err == nil {
		err = leader.regions.Loaded(parent.ID).ProposeSplit(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	others[0].reach(here).accepts(stoneAt(here, 4))
	others[0].reach(beyond).accepts(stoneAt(beyond, 5))
	<-time.After(10 * time.Second)
	return parent, left
}

// lose deletes what a node has of a region.
func (n *node) lose(id uint64) {
	n.net.t.Helper()
	info, err := n.regions.registry.Region(id)
	if err != nil {
		n.net.t.Fatal(err)
	}
	l, err := n.regions.Open(n.net.t.Context(), id, info.Cell)
	if err != nil {
		n.net.t.Fatal(err)
	}
	l.CloseThen("it is lost", func() { err = n.opener.Delete(info) })
	if <-l.Done(); err != nil {
		n.net.t.Fatal(err)
	}
}

// A region that was split is lost, except for a copy that missed the split. Its old land is not brought back beside
// that of the children. It is recovered without land, and its children can be merged again.
func TestRecoverAfterSplit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c := threeNodes(t)
		parent, left := splitWithout(t, c, a, b)
		a.lose(parent.ID)
		b.lose(parent.ID)
		c = a.net.start("C", left)
		<-time.After(10 * time.Second)
		err := c.Recover(t.Context(), parent.ID, false)
		if err == nil || !strings.Contains(err.Error(), "it was split since") || !strings.Contains(err.Error(), "--anew") {
			t.Fatalf("recovered from an old copy: %v", err)
		}
		rows := []kv.Write{{Key: make([]byte, 8)}}
		if err := c.Refounder.Refound(t.Context(), hereCell, integrity.RefoundedLand{Rows: rows}); err == nil || !strings.Contains(err.Error(), "it is split") {
			t.Errorf("with land from a backup: %v", err)
		}
		if err := c.Refounder.Refound(t.Context(), hereCell, integrity.RefoundedLand{}); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		low, high := c.reach(here), c.reach(beyond)
		low.has(here, stoneAt(here, 1), stoneAt(here, 3), stoneAt(here, 4))
		high.has(beyond, stoneAt(beyond, 2), stoneAt(beyond, 5))
		low.Close()
		high.Close()
		if err := a.Splitter.Merge(t.Context(), hereCell); err != nil {
			t.Fatal(err)
		}
		g := b.reach(here)
		if info := g.Link.(routedLink).info; info.ID != parent.ID {
			t.Errorf("merged into region %d", info.ID)
		}
		g.has(here, stoneAt(here, 1), stoneAt(here, 3), stoneAt(here, 4))
		g.has(beyond, stoneAt(beyond, 2), stoneAt(beyond, 5))
	})
}

// A region that was split is lost with its children, except for a copy that missed the split: its land is used.
func TestRecoverFromBeforeSplit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c := threeNodes(t)
		parent, left := splitWithout(t, c, a, b)
		for _, child := range []grid.ChunkPos{here, beyond} {
			info := a.reach(child).Link.(routedLink).info
			a.lose(info.ID)
			b.lose(info.ID)
		}
		a.lose(parent.ID)
		b.lose(parent.ID)
		c = a.net.start("C", left)
		<-time.After(10 * time.Second)
		if err := c.Recover(t.Context(), parent.ID, false); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		g := c.reach(here)
		if info := g.Link.(routedLink).info; info.ID != parent.ID {
			t.Errorf("there is region %d of %v", info.ID, info.Cell)
		}
		g.has(beyond, stoneAt(beyond, 2))
	})
}

// The children of a region were merged while a node was away, and the region is lost elsewhere. The copies of that node
// are not used: those of the children do not exist any more, and that of the region has no land. Put back from a
// backup, the region has land again.
func TestRecoverAfterMerge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c := threeNodes(t)
		a.follow(here).accepts(stoneAt(here, 1), stoneAt(beyond, 2))
		parent, err := a.Locate(t.Context(), here)
		if err == nil {
			err = a.Splitter.Split(t.Context(), hereCell)
		}
		if err != nil {
			t.Fatal(err)
		}
		child := a.reach(here).Link.(routedLink).info
		<-time.After(30 * time.Second)
		left := a.net.kill(c)
		a.reach(here).accepts(stoneAt(here, 3))
		a.reach(beyond).accepts(stoneAt(beyond, 4))
		if err := a.Splitter.Merge(t.Context(), hereCell); err != nil {
			t.Fatal(err)
		}
		a.reach(here).accepts(stoneAt(here, 5))
		<-time.After(20 * time.Second)
		a.lose(parent.ID)
		b.lose(parent.ID)
		c = a.net.start("C", left)
		<-time.After(10 * time.Second)
		if err := c.Recover(t.Context(), parent.ID, false); err == nil || !strings.Contains(err.Error(), "merged since") {
			t.Errorf("recovered from a copy without land: %v", err)
		}
		if err := c.Recover(t.Context(), child.ID, false); err == nil || !strings.Contains(err.Error(), "does not list it") {
			t.Errorf("a region that was merged is recovered: %v", err)
		}
	})
}
