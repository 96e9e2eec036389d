package region

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/copies"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// What the tests know of the packages below.
const (
	baseTable      = "bases"
	idleTicks      = 200
	linkBacklog    = 200
	recoveredEpoch = 1 << 40
	budgetWindow   = 10 * time.Second
)

// metric returns the value of a counter or gauge of the node, with the label's value if it has a label.
func (n *node) metric(name, label string) float64 {
	n.net.t.Helper()
	families, err := n.Registerer.(*prometheus.Registry).Gather()
	if err != nil {
		n.net.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && (label == "" || m.GetLabel()[0].GetValue() == label) {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	n.net.t.Fatalf("no metric %s", name)
	return 0
}

// there is a chunk of another region than here.
var there = grid.ChunkPos{X: 20, Z: 1}

// poison returns an edit at which the probes of these tests panic.
func poison(seq uint64) nodemsg.Intent {
	e := stone(seq)
	e.Pos.Y, e.Block = 20, chunk.Glass
	return e
}

// onTick returns a probe that panics, and counts, in a leader in which poison waits.
func onTick(count *atomic.Int32) func(tx actor.Tx, entry []byte) {
	return func(tx actor.Tx, entry []byte) {
		if entry == nil && tx.Waits(chunk.Glass) {
			count.Add(1)
			panic("poison waits")
		}
	}
}

// onApply returns a probe that panics, and counts, on every member that applies poison.
func onApply(count *atomic.Int32) func(tx actor.Tx, entry []byte) {
	return func(_ actor.Tx, entry []byte) {
		batch, err := world.DecodeBatch(entry)
		if err == nil && slices.ContainsFunc(batch.Edits, func(e nodemsg.Intent) bool { return e.Block == chunk.Glass }) {
			count.Add(1)
			panic("poison is applied")
		}
	}
}

// quarantines has the region fail twice on the node.
func (n *node) quarantines(info nodemsg.Region) {
	for range 2 {
		n.executor.Fail(info, &actor.Fault{Kind: actor.Panicked, Cause: errors.New("a test says so")})
	}
	if l := n.regions.Loaded(info.ID); l != nil {
		l.Close("a test says so")
		<-l.Done()
	}
}

// leaderAmong returns the node that leads the region here.
func leaderAmong(nodes ...*node) *node {
	for _, it := range nodes {
		if l := it.loopOf(here); l != nil && l.Raft().Status().Self {
			return it
		}
	}
	return nil
}

// loopOf returns the node's loop of the region that covers the chunk, or nil if it is not open there.
func (n *node) loopOf(pos grid.ChunkPos) *actor.Land {
	for _, l := range n.regions.lands() {
		if l.Cell().Contains(pos) {
			return l
		}
	}
	return nil
}

// ends receives until the link ends.
func (g gateway) ends() {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		frame, err := g.Receive(ctx)
		if ctx.Err() != nil {
			g.t.Fatal("the link does not end")
		}
		if err != nil || frame.Closed != "" {
			return
		}
	}
}

// A region panics on its leader. Another member takes over, acknowledged edits are kept, and the gateway comes back. A
// second region led by the same node has no late tick, and its gateway keeps its link.
func TestPanicIsIsolated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b, c := three(t)
		var panics atomic.Int32
		a.opener.probes.land = onTick(&panics)
		g, neighbour := c.follow(here), c.follow(there)
		g.edit(stone(1))
		<-time.After(time.Second) // all members have loaded the region by now
		if leaderAmong(a, b, c) != a || a.loopOf(there) == nil || a.loopOf(there).Raft().Status().Leader != "A" {
			t.Fatal("A does not lead both regions")
		}
		late := a.metric("voxeld_region_late_ticks_total", "")
		first := stone(2)
		first.Pos = at(there, 10)
		if r := neighbour.edit(first)[2]; r.Refused != "" {
			t.Fatalf("beside it: %+v", r)
		}
		start := time.Now()
		g.send(nodemsg.ToRegion{Edits: []nodemsg.Intent{poison(3)}})
		g.ends()
		g = c.refollow()
		if s := g.state(here); len(s.Edits) != 1 {
			t.Errorf("the land has the edits %+v", s.Edits)
		}
		if r := g.edit(stone(4))[4]; r.Refused != "" {
			t.Errorf("over the new leader: %+v", r)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("the region was away for %v", took)
		}
		second := stone(5)
		second.Pos = at(there, 11)
		if r := neighbour.edit(second)[5]; r.Refused != "" {
			t.Errorf("beside it, afterwards: %+v", r)
		}
		if a.loopOf(there) == nil || !a.loopOf(there).Raft().Status().Self {
			t.Error("the region beside it has moved")
		}
		if now := a.metric("voxeld_region_late_ticks_total", ""); now != late {
			t.Errorf("%v late ticks", now-late)
		}
		if n := a.metric("voxeld_regions_isolated_total", "panic"); n != 1 || panics.Load() != 1 {
			t.Errorf("%v isolated, %d panics", n, panics.Load())
		}
		// The nearest node no longer leads, although it is a member again.
		leaderAmong(a, b, c).follow(here)
		<-time.After(30 * time.Second)
		if it := leaderAmong(a, b, c); it == nil || it == a {
			t.Error("the region has gone back to where it failed")
		}
		if a.loopOf(here) == nil {
			t.Error("the node where it failed is no copy any more")
		}
	})
}

// An edit that its gateway keeps sending makes every leader fail. A node on which the region has failed twice keeps it
// closed until it is released. When half of the members do, nobody can serve it, and gateways are told that.
func TestPoisonIsQuarantined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b, c := three(t)
		nodes := []*node{a, b, c}
		var panics atomic.Int32
		for _, it := range nodes {
			it.opener.probes.land = onTick(&panics)
		}
		g := c.follow(here)
		g.edit(stone(1))
		<-time.After(time.Second) // all members have loaded the region by now
		var err error
		for tries := 0; !errors.Is(err, ErrQuarantined); tries++ { // a leader that is just leaving does not get it
			if tries == 100 {
				t.Fatalf("after %d panics: %v", panics.Load(), err)
			}
			if err == nil && g.Send(nodemsg.ToRegion{Edits: []nodemsg.Intent{poison(2)}}) == nil {
				g.ends()
			}
			<-time.After(time.Second)
			var link Link
			if link, _, err = c.Follow(t.Context(), here); err == nil {
				g = gateway{link, t}
			}
		}
		if n := panics.Load(); n < 4 || n > 6 {
			t.Errorf("%d panics", n)
		}
		id, quarantined := idHere(t, a), 0
		<-time.After(countEvery)
		for _, it := range nodes {
			if !it.facts.Quarantined(id) {
				continue
			}
			if quarantined++; it.loopOf(here) != nil || it.metric("voxeld_node_regions", "quarantined") != 1 {
				t.Errorf("%s runs it still, or does not count it", it.peer)
			}
		}
		if quarantined < 2 {
			t.Errorf("quarantined on %d nodes", quarantined)
		}
		other := stone(4)
		other.Pos = at(there, 10)
		if r := c.follow(there).edit(other)[4]; r.Refused != "" {
			t.Errorf("beside it: %+v", r)
		}
		if reached, missed, err := a.Release(t.Context(), id); err != nil || len(reached) != 3 || len(missed) != 0 {
			t.Errorf("released on %v, not on %v: %v", reached, missed, err)
		}
		g = b.refollow()
		if s := g.state(here); len(s.Edits) != 1 {
			t.Errorf("the land has the edits %+v", s.Edits)
		}
		if r := g.edit(stone(3))[3]; r.Refused != "" {
			t.Errorf("after the release: %+v", r)
		}
		<-time.After(countEvery)
		if n := b.metric("voxeld_node_regions", "quarantined"); n != 0 {
			t.Errorf("%v are quarantined still", n)
		}
	})
}

// A quarantined region stays closed. Scrubs, members with damaged copies and the supervisor cope with that, and the
// node keeps running.
func TestQuarantinedRegionStaysClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c, g, info := built(t)
		for _, it := range []*node{a, b, c} {
			it.quarantines(info)
		}
		g.ends()
		<-time.After(time.Second)
		if _, err := a.regions.Open(t.Context(), info.ID, info.Cell); !integrity.Refused(err, copies.Quarantined) {
			t.Errorf("awake: %v", err)
		}
		if out := a.Scrub(t.Context(), info.Cell); !integrity.Refused(out.Err, copies.Quarantined) {
			t.Errorf("scrub: %v", out.Err)
		}
		if id, err := b.executor.RemoveReplica(t.Context(), "C", info.ID); err == nil {
			t.Errorf("a member was taken out, as replica %d", id)
		}
	})
}

// The last copy of a region, which failed repeatedly, has the land: nothing is put in its place.
func TestQuarantinedCopyIsNotReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.copies = 1
		a := n.start("A", newDisk())
		g := a.follow(here)
		g.accepts(stoneAt(here, 1))
		info := a.Regions(t.Context())[0].Region
		g.Close()
		a.quarantines(info)
		for what, land := range map[string]integrity.RefoundedLand{"a backup": {Rows: []kv.Write{{Key: make([]byte, 8)}}}, "new land": {}} {
			if err := a.Refounder.Refound(t.Context(), info.Cell, land); err == nil || !strings.Contains(err.Error(), "has a copy") {
				t.Errorf("replaced by %s: %v", what, err)
			}
		}
		a.executor.ReleaseHere(info.ID)
		a.reach(here).has(here, stoneAt(here, 1))
	})
}

// A region that one member keeps closed goes on with the others, and one that was restarted serves it again.
func TestQuarantineOfOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c, g, info := built(t)
		g.Close()
		b.quarantines(info)
		if r := a.refollow().edit(stone(7))[7]; r.Refused != "" {
			t.Errorf("without B: %+v", r)
		}
		b = b.net.start("B", b.net.kill(b))
		<-time.After(time.Minute)
		a.quarantines(info)
		if r := c.refollow().edit(stone(8))[8]; r.Refused != "" {
			t.Errorf("without A, and with B that was restarted: %+v", r)
		}
		if b.facts.Quarantined(info.ID) || c.facts.Quarantined(info.ID) {
			t.Error("others keep it closed, too")
		}
	})
}

func idHere(t *testing.T, it *node) uint64 {
	t.Helper()
	info, err := it.Locate(t.Context(), here)
	if err != nil {
		t.Fatal(err)
	}
	return info.ID
}

// failAgain opens the region here on nodes that have closed it after one failure.
func failAgain(t *testing.T, nodes ...*node) {
	t.Helper()
	for _, it := range nodes {
		it.regions.Open(t.Context(), idHere(t, it), grid.CellAt(here, grid.FoundingLabel)) //nolint:errcheck // it fails
	}
}

// A committed entry that makes every member fail does not move from member to member for ever.
func TestPoisonEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b, c := three(t)
		nodes := []*node{a, b, c}
		var panics atomic.Int32
		for _, it := range nodes {
			it.opener.probes.land = onApply(&panics)
		}
		g := c.follow(here)
		g.edit(stone(1))
		<-time.After(time.Second) // all members have loaded the region by now
		g.send(nodemsg.ToRegion{Edits: []nodemsg.Intent{poison(2)}})
		g.ends()
		id := idHere(t, a)
		deadline := time.Now().Add(time.Minute)
		for time.Now().Before(deadline) {
			link, _, err := c.Follow(t.Context(), here)
			if err == nil {
				link.Close()
			} else if errors.Is(err, ErrQuarantined) {
				break
			}
			<-time.After(100 * time.Millisecond)
		}
		failAgain(t, nodes...)
		<-time.After(time.Minute)
		if p := panics.Load(); p > 6 || p < 3 {
			t.Errorf("%d panics on three members", p)
		}
		quarantined := 0
		for _, it := range nodes {
			if it.facts.Quarantined(id) {
				quarantined++
			}
		}
		if quarantined < 2 { // the third one cannot know that the entry is committed
			t.Errorf("quarantined on %d nodes", quarantined)
		}
		// Restart all members with a version that can apply the entry.
		disks := make([]*disk, 3)
		for i, it := range nodes {
			disks[i] = n.kill(it)
		}
		n.mu.Lock()
		n.mu.catalog = nodemsg.Region{ID: 1, Leader: "A", Members: []nodemsg.Member{member("A")}}
		n.mu.Unlock()
		for i, it := range nodes {
			nodes[i] = n.start(it.peer, disks[i])
		}
		g = nodes[2].refollow()
		if s := g.state(here); len(s.Edits) != 2 {
			t.Errorf("the land has the edits %+v", s.Edits)
		}
		if r := g.edit(stone(4))[4]; r.Refused != "" || nodes[0].facts.Quarantined(id) {
			t.Errorf("after the restart: %+v", r)
		}
	})
}

// The only member of a region keeps running after one failure of the region, and quarantines it after the next. A
// restart gives it another chance.
func TestAloneInTheWorld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		a := n.start("A", newDisk())
		var panics atomic.Int32
		a.opener.probes.land = onTick(&panics)
		g := a.follow(here)
		g.edit(stone(1))
		<-time.After(time.Second) // all members have loaded the region by now
		g.send(nodemsg.ToRegion{Edits: []nodemsg.Intent{poison(2)}})
		g.ends()
		g = a.refollow()
		if r := g.edit(stone(3))[3]; r.Refused != "" {
			t.Errorf("after it failed once: %+v", r)
		}
		g.send(nodemsg.ToRegion{Edits: []nodemsg.Intent{poison(4)}})
		g.ends()
		if _, _, err := a.Follow(t.Context(), here); !errors.Is(err, ErrQuarantined) {
			t.Errorf("after it failed again: %v", err)
		}
		a.stop()
		a = n.start("A", a.disk)
		g = a.refollow()
		if r := g.edit(stone(5))[5]; r.Refused != "" {
			t.Errorf("after a restart: %+v", r)
		}
		if s := g.state(here); len(s.Edits) != 3 {
			t.Errorf("the land has the edits %+v", s.Edits)
		}
	})
}

// A region that exceeds its tick budget is moved. Another region on the same node stays.
func TestSlowRegionIsMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b, c := three(t)
		a.opener.probes.cpu = func(work func()) time.Duration {
			start := time.Now()
			work()
			return time.Since(start)
		}
		a.opener.probes.land = func(tx actor.Tx, entry []byte) {
			if tx.Leads() && tx.Region().Cell.Contains(here) && entry == nil {
				<-time.After(TickEvery + TickEvery/2)
			}
		}
		start := time.Now()
		g := c.follow(here)
		g.edit(stone(1))
		g.ends()
		if took := time.Since(start); took < budgetWindow || took > 3*budgetWindow {
			t.Errorf("moved after %v", took)
		}
		g = c.refollow()
		if r := g.edit(stone(2))[2]; r.Refused != "" {
			t.Errorf("over the new leader: %+v", r)
		}
		if it := leaderAmong(a, b, c); it == nil || it == a {
			t.Error("it was not moved")
		}
		if n := a.metric("voxeld_regions_isolated_total", "slow"); n != 1 {
			t.Errorf("%v isolated", n)
		}
	})
}

// On a single node, slow land is better than none.
func TestSlowRegionStaysAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newNetwork(t).start("A", newDisk())
		a.opener.probes.cpu = func(work func()) time.Duration { work(); return time.Hour }
		a.opener.probes.land = func(actor.Tx, []byte) { <-time.After(TickEvery + 1) }
		g := a.follow(here)
		g.edit(stone(1))
		<-time.After(time.Second) // all members have loaded the region by now
		<-time.After(time.Minute)
		if r := g.edit(stone(2))[2]; r.Refused != "" {
			t.Errorf("after a minute: %+v", r)
		}
		if n := a.metric("voxeld_regions_isolated_total", "slow"); n != 0 {
			t.Errorf("%v isolated", n)
		}
	})
}

// The catalog fails on its leader. Another member takes over, and land can be founded. When it has failed twice on two
// members it has no majority until it is released; known land stays usable meanwhile.
func TestCatalogIsIsolated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b, c := three(t)
		c.follow(here).edit(stone(1))
		<-time.After(20 * time.Second) // it has three members
		var panics atomic.Int32
		var armed atomic.Bool
		for _, it := range []*node{a, b, c} {
			if it.regions.Catalog() == nil {
				t.Fatalf("%s does not hold the catalog", it.peer)
			}
			it.disk.onRead(world.CatalogTable, func() {
				if catalog := it.regions.Catalog(); catalog != nil && catalog.Raft().Status().Self && armed.CompareAndSwap(true, false) {
					panics.Add(1)
					panic("provoked")
				}
			})
		}
		quarantined := func() (n int) {
			for _, it := range []*node{a, b, c} {
				if it.facts.Quarantined(world.CatalogID) {
					n++
				}
			}
			return n
		}
		for i := int32(0); quarantined() < 2; i++ {
			if i == 6 {
				t.Fatalf("it fails again and again, and is quarantined on %d nodes", quarantined())
			}
			armed.Store(true)
			if _, err := c.Locate(t.Context(), grid.ChunkPos{X: 100 + 20*i, Z: 7}); err != nil {
				t.Logf("while it fails: %v", err)
			}
			<-time.After(5 * time.Second)
			if panics.Load() != i+1 {
				t.Fatalf("%d panics", panics.Load())
			}
			if i == 0 {
				if _, err := c.Locate(t.Context(), grid.ChunkPos{X: 400, Z: 7}); err != nil {
					t.Fatalf("after it has failed once: %v", err)
				}
			}
		}
		if r := c.refollow().edit(stone(2))[2]; r.Refused != "" {
			t.Errorf("known land: %+v", r)
		}
		if reached, missed, err := b.Release(t.Context(), world.CatalogID); err != nil || len(reached) != 3 {
			t.Errorf("released on %v, not on %v: %v", reached, missed, err)
		}
		<-time.After(5 * time.Second)
		if _, err := c.Locate(t.Context(), grid.ChunkPos{X: 500, Z: 7}); err != nil {
			t.Errorf("after the release: %v", err)
		}
	})
}

// Storage refuses the writes of one region. Its group fails and is opened again after growing pauses, while the other
// region keeps running. When storage accepts the writes again, the region runs again.
func TestFailedGroupIsOpenedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newNetwork(t).start("A", newDisk())
		g, neighbour := a.follow(here), a.follow(there)
		g.edit(stone(1))
		<-time.After(time.Second) // all members have loaded the region by now
		id := idHere(t, a)
		a.disk.spoil(func(key []byte) bool { return bytes.HasPrefix(key, directory.Key(id)) })
		g.send(nodemsg.ToRegion{Edits: []nodemsg.Intent{stone(2)}})
		<-time.After(10 * time.Second)
		failed := a.metric("voxeld_regions_isolated_total", "storage")
		if failed < 1 || failed > 4 {
			t.Errorf("it failed %v times in ten seconds", failed)
		}
		if link, _, err := a.Follow(t.Context(), here); err == nil {
			link.Close()
		}
		// A refused commit stops all groups of the node until the group at fault is known.
		refusals := 0
		for seq := uint64(3); seq < 10; seq++ {
			beside := stone(seq)
			beside.Pos = at(there, 10)
			if r := neighbour.edit(beside)[seq]; r.Refused != "" {
				refusals++
			}
			<-time.After(time.Second)
		}
		if refusals > 2 {
			t.Errorf("beside it %d of 7 edits were refused", refusals)
		}
		a.disk.spoil(nil)
		<-time.After(time.Minute)
		g = a.refollow()
		if r := g.edit(stone(2))[2]; r.Refused != "" || a.facts.Quarantined(id) {
			t.Errorf("when the disk is well again: %+v", r)
		}
	})
}
