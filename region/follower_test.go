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
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// three starts a world of three nodes, in which every region has three members. A is nearest to all keys.
func three(t *testing.T) (n *network, a, b, c *node) {
	n = newNetwork(t)
	n.copies = 3
	n.near("A", "B", "C")
	a = n.start("A", newDisk())
	return n, a, n.start("B", newDisk()), n.start("C", newDisk())
}

// refollow links a gateway again, as gateways do when their link ends.
func (n *node) refollow() gateway {
	n.net.t.Helper()
	for range 20 {
		link, _, err := n.Follow(context.Background(), here)
		if err == nil {
			return gateway{link, n.net.t}
		}
		<-time.After(100 * time.Millisecond)
	}
	n.net.t.Fatal("the region cannot be followed any more")
	return gateway{}
}

// leads reports whether the node leads the group of the region here.
func (n *node) leads() bool {
	for _, r := range n.Regions(context.Background()) {
		if r.Region.Leader == n.peer {
			return true
		}
	}
	return false
}

// When the leader dies, another member leads. Acknowledged edits are kept, and an edit that is sent again is applied
// once.
func TestLeaderDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, _, c := three(t)
		g := c.follow(here)
		if r := g.edit(stone(1))[1]; r.Refused != "" {
			t.Fatalf("the edit: %+v", r)
		}
		if !a.leads() {
			t.Fatal("A does not lead")
		}
		<-time.After(time.Second) // both others have loaded the region by now
		n.kill(a)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		for {
			if frame, err := g.Receive(ctx); err != nil || frame.Closed != "" {
				break
			}
		}
		start := time.Now()
		g = c.refollow()
		if took := time.Since(start); took > 6*time.Second {
			t.Errorf("found again after %v", took)
		}
		again := stone(1)
		other := stone(2)
		other.Pos.Y++
		for seq, r := range g.edit(again, other) {
			if r.Refused != "" || r.Block != chunk.Stone {
				t.Errorf("edit %d over the new leader: %+v", seq, r)
			}
		}
		if s := g.state(here); len(s.Edits) != 2 {
			t.Errorf("the land has the edits %+v", s.Edits)
		}
	})
}

// A region that one node founded alone gets all its members, and so does the catalog. A member that is gone is replaced
// when its grace period is over.
func TestMembersFollowTheKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.copies = 3
		a := n.start("A", newDisk())
		g := a.follow(here)
		g.edit(stone(1))
		b := n.start("B", newDisk())
		c := n.start("C", newDisk())
		n.near("A", "B", "C")
		<-time.After(20 * time.Second)
		peers := func(it *node, id uint64) (voters []string) {
			l, root := it.regions.Loaded(id), it.regions.Catalog()
			var members []replica.Member
			switch {
			case l != nil:
				members = l.Raft().Configuration().Members
			case id == 1 && root != nil:
				members = root.Raft().Configuration().Members
			}
			for _, m := range members {
				if !m.Learner {
					voters = append(voters, m.Peer)
				}
			}
			return voters
		}
		id := a.Regions(t.Context())[0].Region.ID
		for _, it := range []*node{a, b, c} {
			if got := peers(it, id); len(got) != 3 {
				t.Errorf("%s sees the members %v", it.peer, got)
			}
			if got := peers(it, 1); len(got) != 3 {
				t.Errorf("%s sees %v keep the catalog", it.peer, got)
			}
		}
		known, err := a.regions.Catalog().Find(t.Context(), id)
		if err != nil || len(known.Members) != 3 {
			t.Errorf("the catalog has %+v, %v", known, err)
		}
		n.near("A", "B", "C", "D")
		d := n.start("D", newDisk())
		n.kill(b)
		n.mu.Lock()
		n.mu.lost = "B"
		n.mu.Unlock()
		<-time.After(30 * time.Second)
		if got := peers(a, id); len(got) != 3 || !slices.Contains(got, "B") {
			t.Errorf("B may come back still, and the members are %v", got)
		}
		<-time.After(2 * time.Minute)
		for _, it := range []*node{a, c, d} {
			if got := peers(it, id); len(got) != 3 || got[2] != "D" {
				t.Errorf("after B is gone %s sees the members %v", it.peer, got)
			}
		}
		if s := d.follow(here).state(here); len(s.Edits) != 1 {
			t.Errorf("the land has the edits %+v", s.Edits)
		}
	})
}

// A member that was replaced while it was away drops its copy: two such members could form a majority of the
// configuration that they remember. The node detects this when it opens the region.
func TestReplacedMemberDropsItsCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, _, c := three(t)
		g := a.follow(here)
		g.edit(stone(1))
		<-time.After(20 * time.Second)
		id := idHere(t, a)
		if has, err := c.Replicas.Has(id); !has || err != nil {
			t.Fatalf("C has a copy: %v, %v", has, err)
		}
		left := n.kill(c)
		n.start("D", newDisk())
		n.near("A", "B", "D")
		<-time.After(2 * time.Minute)
		c = n.start("C", left)
		if _, err := c.regions.Open(t.Context(), id, grid.CellAt(here, grid.FoundingLabel)); !errors.Is(err, ErrNotHere) {
			t.Errorf("the copy that was replaced: %v", err)
		}
		for _, group := range []uint64{world.CatalogID, id} {
			if has, err := c.Replicas.Has(group); has || err != nil {
				t.Errorf("C keeps its copy of group %d: %v, %v", group, has, err)
			}
		}
		if s := c.refollow().state(here); len(s.Edits) != 1 {
			t.Errorf("the land has the edits %+v", s.Edits)
		}
	})
}

// So does one that was replaced while it could not be reached, once it can be again.
func TestReplacedMemberDropsItsOpenCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, _, c := three(t)
		a.follow(here).edit(stone(1))
		<-time.After(20 * time.Second)
		id := idHere(t, a)
		n.cut("C", true)
		n.start("D", newDisk())
		n.near("A", "B", "D")
		<-time.After(2 * time.Minute)
		for _, group := range []uint64{world.CatalogID, id} {
			if has, err := c.Replicas.Has(group); !has || err != nil {
				t.Fatalf("C has a copy of group %d: %v, %v", group, has, err)
			}
		}
		n.cut("C", false)
		<-time.After(2 * time.Minute)
		for _, group := range []uint64{world.CatalogID, id} {
			if has, err := c.Replicas.Has(group); has || err != nil {
				t.Errorf("C keeps its copy of group %d: %v, %v", group, has, err)
			}
		}
		if c.regions.Catalog() != nil || len(c.regions.lands()) != 0 {
			t.Error("C has the catalog or a region open")
		}
		if s := c.refollow().state(here); len(s.Edits) != 1 {
			t.Errorf("the land has the edits %+v", s.Edits)
		}
	})
}

// Regions that are closed get their members, too.
func TestClosedRegionsGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.copies = 3
		a := n.start("A", newDisk())
		g := a.follow(here)
		g.edit(stone(1))
		info := a.Regions(t.Context())[0].Region
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		if all := a.Regions(t.Context()); len(all) != 0 {
			t.Fatalf("still loaded: %+v", all)
		}
		b := n.start("B", newDisk())
		c := n.start("C", newDisk())
		n.near("C", "B", "A")
		<-time.After(time.Minute)
		if known, err := a.regions.Catalog().Find(t.Context(), info.ID); err == nil && len(known.Members) != 3 {
			t.Errorf("the catalog has the members %+v", known.Members)
		}
		for _, it := range []*node{a, b, c} {
			if has, err := it.Replicas.Has(info.ID); err != nil || !has {
				t.Errorf("%s is no member: %v", it.peer, err)
			}
			if all := it.Regions(t.Context()); len(all) != 0 {
				t.Errorf("%s does not let it sleep again: %+v", it.peer, all)
			}
		}
		n.kill(a)
		if s := b.refollow().state(here); len(s.Edits) != 1 {
			t.Errorf("the land has the edits %+v", s.Edits)
		}
	})
}

// Only a region's members may invite to it, make it hibernate, or report its members to the catalog.
func TestStrangersAreRejected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, _, c := three(t)
		g := a.follow(here)
		g.edit(stone(1))
		<-time.After(time.Second) // C has loaded the region by now
		info := a.Regions(t.Context())[0].Region
		stolen := info
		stolen.Epoch, stolen.Leader, stolen.Members = 1000, "X", []nodemsg.Member{member("X")}
		for name, q := range map[string]nodemsg.Question{
			"invite": {Invite: &nodemsg.Invite{Region: stolen, Replica: 9, Voters: []nodemsg.Replica{{ID: 9, Peer: "C"}, {ID: 8, Peer: "X"}}}},
			"catalog": {Invite: &nodemsg.Invite{
				Region: nodemsg.Region{ID: 1, Members: []nodemsg.Member{member("X")}}, Replica: 9, Voters: []nodemsg.Replica{{ID: 9, Peer: "C"}},
			}},
			"sleep": {Sleep: &nodemsg.Sleep{Group: info.ID}},
		} {
			if answer := c.ask("X", q); answer.Error == "" {
				t.Errorf("%s: C obeyed: %+v", name, answer)
			}
		}
		if answer := a.ask("X", nodemsg.Question{Moved: &stolen}); answer.Error == "" {
			t.Errorf("moved: the catalog obeyed: %+v", answer)
		}
		// A member that lies to the catalog is contradicted by the others.
		for _, epochs := range []uint64{0, 1, 2, 1 << 40} {
			captured := info
			captured.Epoch, captured.Split, captured.Leader, captured.Members = info.Epoch+epochs, 1, "C", []nodemsg.Member{member("C")}
			if answer := a.ask("C", nodemsg.Question{Moved: &captured}); answer.Error == "" {
				t.Errorf("moved by C, by %d epochs: the catalog obeyed: %+v", epochs, answer)
			}
		}
		if answer := c.ask("B", nodemsg.Question{Sleep: &nodemsg.Sleep{Group: info.ID}}); answer.Error == "" {
			t.Error("a member went to sleep because one asked that does not lead the region")
		}
		if answer := c.ask("A", nodemsg.Question{Sleep: &nodemsg.Sleep{Group: info.ID, Index: 1 << 40}}); answer.Error == "" {
			t.Error("a member that lags behind went to sleep")
		}
		c.hibernation.receive("X", nodemsg.RaftMessage{Group: info.ID, Data: []byte("garbage")})
		c.hibernation.receive("X", nodemsg.RaftMessage{Group: 77, Data: []byte("garbage")})
		synctest.Wait()
		if r := g.edit(stone(2))[2]; r.Refused != "" {
			t.Errorf("afterwards: %+v", r)
		}
	})
}

// A region without gateways is closed by all members, and opened by all of them when a gateway comes.
func TestIdleRegionHibernates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b, c := three(t)
		g := c.follow(here)
		g.edit(stone(1))
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		loaded := func() int {
			return len(a.Regions(t.Context())) + len(b.Regions(t.Context())) + len(c.Regions(t.Context()))
		}
		<-time.After(5 * time.Second)
		if n := loaded(); n != 3 {
			t.Errorf("%d of 3 replicas are open after five seconds", n)
		}
		<-time.After(20 * time.Second)
		if n := loaded(); n != 0 {
			t.Errorf("%d replicas do not sleep", n)
		}
		start := time.Now()
		if s := b.follow(here).state(here); len(s.Edits) != 1 {
			t.Errorf("woken up with the edits %+v", s.Edits)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("waking up took %v", took)
		}
	})
}

// A node that stops hands over its leaderships first, so that no election is needed.
func TestStopHandsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, _, c := three(t)
		g := c.follow(here)
		g.edit(stone(1))
		<-time.After(time.Second) // the leader knows its members by now
		start := time.Now()
		stopped := make(chan struct{})
		go func() { a.stop(); close(stopped) }()
		if why := g.closed(); why == "" {
			t.Error("no reason is given")
		}
		g = c.refollow()
		if r := g.edit(stone(2))[2]; r.Refused != "" {
			t.Errorf("over the new leader: %+v", r)
		}
		if took := time.Since(start); took > 600*time.Millisecond {
			t.Errorf("the region was away for %v", took)
		}
		<-stopped
	})
}

// A first member was away since before it got any message, and comes back after the members have changed. It still
// takes part.
func TestFirstMemberWasAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.copies = 4
		n.near("A", "B", "C")
		a := n.start("A", newDisk())
		n.start("B", newDisk())
		c := n.start("C", newDisk())
		info, err := a.Locate(t.Context(), here)
		if err != nil || len(info.Members) != 3 {
			t.Fatalf("founded: %+v, %v", info, err)
		}
		disk := n.kill(c) // it has nothing of the region
		g := a.follow(here)
		g.edit(stone(1))
		n.start("D", newDisk())
		n.near("A", "B", "C", "D")
		<-time.After(20 * time.Second)
		if l := a.regions.Loaded(info.ID); l == nil || len(l.Raft().Configuration().Members) != 4 {
			t.Fatal("D did not become a member")
		}
		c = n.start("C", disk)
		<-time.After(20 * time.Second)
		l := c.regions.Loaded(info.ID)
		if l == nil {
			t.Fatalf("C has nothing of the region: %+v", a.regions.Loaded(info.ID).Raft().Status())
		}
		if mine, theirs := l.Raft().Status(), a.regions.Loaded(info.ID).Raft().Status(); mine.Applied != theirs.Applied {
			t.Errorf("C has %d of %d entries", mine.Applied, theirs.Applied)
		}
	})
}
