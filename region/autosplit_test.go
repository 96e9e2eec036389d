package region

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/health"
	"github.com/voxelpopuli/voxeld/region/split"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// crowd enters n players into each of two chunks of the region of here, over one link each, and returns what has them
// leave.
func (n *node) crowd(from, each int) (leave func()) {
	var links []gateway
	for i, pos := range []grid.ChunkPos{here, beyond} {
		g := n.follow(pos)
		var bodies []nodemsg.Body
		for j := range each {
			id := alice
			id[1], id[2], id[3] = byte(from), byte(i), byte(j)
			bodies = append(bodies, body(id, pos))
		}
		g.send(nodemsg.ToRegion{Enter: bodies})
		links = append(links, g)
	}
	return func() {
		for _, g := range links {
			g.Close()
		}
	}
}

// A crowd that comes makes a region split, and when it has left, the halves are merged.
func TestAutoSplit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c := threeNodes(t)
		limits := split.Limits{Load: split.Load{split.Players: 9}, MergeAfter: 30 * time.Second}
		for _, n := range []*node{a, b, c} {
			n.AutoSplit.SetLimits(limits)
		}
		a.follow(here).accepts(stoneAt(here, 1), stoneAt(beyond, 2))
		leave := b.crowd(1, 4)
		<-time.After(time.Minute)
		if info, err := a.Directory.Exactly(t.Context(), hereCell); err == nil && info.Split != 0 {
			t.Fatal("split without need")
		}
		leave()
		leave = b.crowd(2, 8)
		<-time.After(10 * time.Second)
		info, err := a.Directory.Exactly(t.Context(), hereCell)
		if err != nil || info.Split == 0 {
			t.Fatalf("not split under a crowd: %v", err)
		}
		leave()
		low, high := a.follow(here), c.follow(beyond)
		low.accepts(stoneAt(here, 3))
		high.accepts(stoneAt(beyond, 4))
		half := low.Link.(routedLink).info
		leader, err := a.net.node(half.Leader)
		if err != nil {
			t.Fatal(err)
		}
		if d, led := leader.AutoSplit.Division(half.ID); !led || d.Next != "merge when below 33 %" && !strings.HasPrefix(d.Next, "merge in ") {
			t.Errorf("to operators: %+v, %v", d, led)
		}
		<-time.After(2 * time.Minute)
		if info, err = a.Directory.Exactly(t.Context(), hereCell); err != nil || info.Split != 0 {
			t.Fatalf("not merged when the crowd has left: %v", err)
		}
		a.reach(here).has(here, stoneAt(here, 1), stoneAt(here, 3))
		a.reach(beyond).has(beyond, stoneAt(beyond, 2), stoneAt(beyond, 4))
	})
}

// Nothing is split while a member is down, and halves that nobody uses are merged before they hibernate.
func TestAutoSplitWaitsForMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c := threeNodes(t)
		limits := split.Limits{Load: split.Load{split.Players: 9}, MergeAfter: 30 * time.Second}
		a.AutoSplit.SetLimits(limits)
		b.AutoSplit.SetLimits(limits)
		a.follow(here).accepts(stoneAt(here, 1))
		peer, disk := c.peer, c.net.kill(c)
		leave := b.crowd(1, 8)
		<-time.After(30 * time.Second)
		if info, err := a.Directory.Exactly(t.Context(), hereCell); err != nil || info.Split != 0 {
			t.Fatalf("split while a member is down: %v", err)
		}
		leave()
		a.net.start(peer, disk).AutoSplit.SetLimits(limits)
		<-time.After(time.Minute) // it catches up, and may lead the region again
		leave = b.crowd(2, 8)
		<-time.After(30 * time.Second)
		if info, err := a.Directory.Exactly(t.Context(), hereCell); err != nil || info.Split == 0 {
			t.Fatalf("not split although the member is back: %v", err)
		}
		leave()
		<-time.After(2 * time.Minute)
		if info, err := a.Directory.Exactly(t.Context(), hereCell); err != nil || info.Split != 0 {
			t.Fatalf("not merged although nobody is there: %v", err)
		}
	})
}

// Avatars stay in sight while their region is split and merged, and those whose gateway does not come back leave after
// a while.
func TestAvatarsStayInSight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c := threeNodes(t)
		first, second := a.follow(here), b.follow(here)
		first.send(nodemsg.ToRegion{Enter: []nodemsg.Body{body(alice, here)}})
		second.send(nodemsg.ToRegion{Enter: []nodemsg.Body{body(bob, here)}})
		<-time.After(time.Second)
		sees := func(when string, g gateway, n int) {
			t.Helper()
			if got := g.state(here).Bodies; len(got) != n {
				t.Errorf("%s: a gateway sees %d avatars, want %d", when, len(got), n)
			}
		}
		sees("before", first, 2)
		if err := c.Splitter.Split(t.Context(), hereCell); err != nil {
			t.Fatal(err)
		}
		first.closed()
		<-time.After(200 * time.Millisecond)
		half := c.reach(here)
		sees("after the split", half, 2)
		again := a.reach(here)
		again.send(nodemsg.ToRegion{Enter: []nodemsg.Body{body(alice, here)}})
		<-time.After(10 * time.Second)
		sees("later", c.reach(here), 1)
		if err := c.Splitter.Merge(t.Context(), hereCell); err != nil {
			t.Fatal(err)
		}
		again.closed()
		sees("after the merge", c.reach(here), 1)
		<-time.After(10 * time.Second)
		sees("at last", c.reach(here), 0)
	})
}

// What a half stores counts while it hibernates: two halves that store too much together are not merged.
func TestStoredLoadOfSleepingHalf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c := threeNodes(t)
		limit := func(stored float64) {
			for _, n := range []*node{a, b, c} {
				n.AutoSplit.SetLimits(split.Limits{Load: split.Load{split.Stored: stored}, MergeAfter: 30 * time.Second})
			}
		}
		limit(9)
		a.follow(here).accepts(stoneAt(here, 1), stoneAt(here, 2), stoneAt(beyond, 3), stoneAt(beyond, 4))
		if err := a.Splitter.Split(t.Context(), hereCell); err != nil {
			t.Fatal(err)
		}
		for _, g := range []gateway{a.reach(here), a.reach(beyond)} {
			g.Close()
		}
		<-time.After(3 * time.Minute)
		lower, _ := a.Directory.Known(here)
		for _, n := range []*node{a, b, c} {
			if n.regions.Loaded(lower.ID) != nil {
				t.Fatal("a half that nobody uses does not hibernate")
			}
		}
		a.reach(beyond)
		<-time.After(2 * time.Minute)
		if info, err := a.Directory.Exactly(t.Context(), hereCell); err != nil || info.Split == 0 {
			t.Fatalf("merged, although both store too much together: %v", err)
		}
		limit(30)
		<-time.After(2 * time.Minute)
		if info, err := a.Directory.Exactly(t.Context(), hereCell); err != nil || info.Split != 0 {
			t.Fatalf("not merged when the limit is higher: %v", err)
		}
	})
}

// A region that does not answer does not keep others from being split.
func TestAutoSplitBesideStuckRegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newNetwork(t).start("A", newDisk())
		a.AutoSplit.SetLimits(split.Limits{Load: split.Load{split.Players: 9}})
		stuck := a.follow(grid.ChunkPos{X: here.X + 64, Z: here.Z})
		release := make(chan struct{})
		defer close(release)
		stuck.loop().Enqueue(func(actor.Tx) { <-release })
		a.crowd(1, 8)
		<-time.After(10 * time.Second)
		if info, err := a.Directory.Exactly(t.Context(), hereCell); err != nil || info.Split == 0 {
			t.Fatalf("not split: %v", err)
		}
	})
}

// Splits of a region that keep failing are reported, with the reason, until there is no need for them any more.
func TestFailingSplitIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c := threeNodes(t)
		limit := func(stored float64) {
			for _, n := range []*node{a, b} {
				n.AutoSplit.SetLimits(split.Limits{Load: split.Load{split.Stored: stored}})
			}
		}
		a.follow(here).accepts(stoneAt(here, 1), stoneAt(beyond, 2))
		c.net.kill(c)
		a.reach(here)
		limit(1)
		reported := func() (all []health.Finding) {
			for _, f := range a.Examiner.Examine(t.Context()).Findings {
				if f.Kind == "undivided" {
					all = append(all, f)
				}
			}
			return all
		}
		<-time.After(8 * time.Second)
		if found := reported(); len(found) > 0 {
			t.Errorf("after one failure: %v", found)
		}
		<-time.After(time.Minute)
		if found := reported(); len(found) != 1 || found[0].Subject != hereCell.String() || !strings.Contains(found[0].What, "C is down") {
			t.Errorf("after some failures: %v", found)
		}
		info := a.reach(here).Link.(routedLink).info
		leader, err := a.net.node(info.Leader)
		if err != nil {
			t.Fatal(err)
		}
		if d, led := leader.AutoSplit.Division(info.ID); !led || d.Load != 2 || d.Kind != "stored" || !strings.Contains(d.Next, "C is down") {
			t.Errorf("to operators: %+v, %v", d, led)
		}
		limit(2)
		<-time.After(2 * time.Second)
		if found := reported(); len(found) > 0 {
			t.Errorf("when the limit is higher: %v", found)
		}
	})
}
