package region

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// Two of three nodes are lost. An operator recovers the catalog and the region on the third: edits are accepted, and
// land can be founded. The lost nodes then come back with their data. They do not act for the region, drop their copies
// and become members again. Nothing acknowledged since the recovery is lost.
func TestRecoverRegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b, c := three(t)
		g := a.follow(here)
		g.edit(stone(1))
		<-time.After(20 * time.Second) // the catalog has three members
		id := idHere(t, a)
		if plans, err := a.PlanRecovery(t.Context(), []uint64{id}); err != nil || !plans[0].Alive || plans[0].Refused == "" {
			t.Fatalf("while all live: %+v, %v", plans, err)
		}
		if err := a.Recover(t.Context(), id, false); err == nil || !strings.Contains(err.Error(), "not lost") {
			t.Fatalf("recovered while all live: %v", err)
		}
		diskB, diskC := n.kill(b), n.kill(c)
		n.near("A")
		if err := a.Recover(t.Context(), id, false); err == nil || !strings.Contains(err.Error(), "wait") {
			t.Fatalf("recovered at once: %v", err)
		}
		<-time.After(a.recovery.SilentAfter())
		if _, err := a.Locate(t.Context(), at(here, 0).Chunk()); err != nil {
			t.Fatal(err)
		}
		for _, lost := range []uint64{world.CatalogID, id} {
			plans, err := a.PlanRecovery(t.Context(), []uint64{lost})
			if err != nil || plans[0].Refused != "" || plans[0].Best != "A" || plans[0].Voters != 3 {
				t.Fatalf("the plan: %+v, %v", plans, err)
			}
			if missing := plans[0].Copies[1]; missing.Peer != "B" || missing.Missing == "" || time.Since(missing.LastHeard) < 10*time.Second {
				t.Errorf("of the missing one is said %+v", missing)
			}
			if err := a.Recover(t.Context(), lost, false); err != nil {
				t.Fatal(err)
			}
		}
		g = a.refollow()
		if r := g.edit(stone(2))[2]; r.Refused != "" {
			t.Errorf("after the recovery: %+v", r)
		}
		if _, err := a.Locate(t.Context(), there); err != nil {
			t.Errorf("land is not founded: %v", err)
		}
		<-time.After(5 * time.Second)
		known, err := a.regions.Catalog().Find(t.Context(), id)
		if err != nil || len(known.Members) != 1 || known.Epoch < recoveredEpoch {
			t.Errorf("the catalog has %+v, %v", known, err)
		}

		// B and C come back: they are a majority of the old group.
		b, c = n.start("B", diskB), n.start("C", diskC)
		n.near("A", "B", "C")
		g = c.refollow()
		if r := g.edit(stone(3))[3]; r.Refused != "" {
			t.Errorf("over a returned node: %+v", r)
		}
		<-time.After(40 * time.Second)
		for _, it := range []*node{a, b, c} {
			for _, group := range []uint64{world.CatalogID, id} {
				p, err := it.Replicas.Position(group)
				if err != nil || p.Members.Recovered != 1 || len(p.Members.Members) != 3 || it != a && p.Replica < 5 {
					t.Errorf("%s holds of group %d: %+v, %v", it.peer, group, p, err)
				}
			}
		}
		if left := a.disk.tables["recovered"]; len(left) != 0 {
			t.Errorf("former members are still recorded: %q", left)
		}
		n.kill(a)
		g = c.refollow()
		if s := g.state(here); len(s.Edits) != 3 {
			t.Errorf("without the survivor the land has the edits %+v", s.Edits)
		}
		if r := g.edit(stone(4))[4]; r.Refused != "" || r.Block != chunk.Stone {
			t.Errorf("without the survivor: %+v", r)
		}
	})
}

// Former members come back and cannot ask the survivor at first. They are notified again until they can, and only then
// count as notified.
func TestRecoveredAsksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.copies = 3
		var busy atomic.Bool
		n.meddle = func(to, _ string, q *nodemsg.Question) *nodemsg.Answer {
			if to == "A" && q.Status != nil && busy.Load() {
				return &nodemsg.Answer{Error: "busy"}
			}
			return nil
		}
		n.near("A", "B", "C")
		a, b, c := n.start("A", newDisk()), n.start("B", newDisk()), n.start("C", newDisk())
		a.follow(here).edit(stone(1))
		<-time.After(20 * time.Second)
		id := idHere(t, a)
		diskB, diskC := n.kill(b), n.kill(c)
		<-time.After(a.recovery.SilentAfter())
		for _, lost := range []uint64{world.CatalogID, id} {
			if err := a.Recover(t.Context(), lost, false); err != nil {
				t.Fatal(err)
			}
		}
		busy.Store(true)
		b, c = n.start("B", diskB), n.start("C", diskC)
		<-time.After(20 * time.Second)
		if left := a.disk.afterCrash().tables["recovered"]; len(left) != 2 {
			t.Errorf("%d groups have former members that are to be notified, want 2", len(left))
		}
		busy.Store(false)
		<-time.After(time.Minute)
		for _, it := range []*node{b, c} {
			for _, group := range []uint64{world.CatalogID, id} {
				if p, err := it.Replicas.Position(group); err != nil || p.Members.Recovered != 1 || len(p.Members.Members) != 3 {
					t.Errorf("%s holds of group %d: %+v, %v", it.peer, group, p, err)
				}
			}
		}
		if left := a.disk.afterCrash().tables["recovered"]; len(left) != 0 {
			t.Errorf("former members are still recorded: %q", left)
		}
	})
}

// A region is recovered, gets other members, and is recovered again after these are lost. The members from before the
// first recovery are notified, too, when they come back.
func TestRecoveredTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b, c := three(t)
		a.follow(here).edit(stone(1))
		<-time.After(20 * time.Second)
		id := idHere(t, a)
		recoverBoth := func() {
			t.Helper()
			<-time.After(a.recovery.SilentAfter())
			for _, lost := range []uint64{world.CatalogID, id} {
				if err := a.Recover(t.Context(), lost, false); err != nil {
					t.Fatal(err)
				}
			}
			a.refollow()
		}
		diskB, diskC := n.kill(b), n.kill(c)
		n.near("A")
		recoverBoth()
		d, e := n.start("D", newDisk()), n.start("E", newDisk())
		n.near("A", "D", "E")
		<-time.After(time.Minute)
		if p, err := a.Replicas.Position(id); err != nil || len(p.Members.Members) != 3 {
			t.Fatalf("D and E are no members: %+v, %v", p, err)
		}
		n.kill(d)
		n.kill(e)
		n.near("A")
		recoverBoth()
		evicted := func(want string) {
			t.Helper()
			rows := a.disk.afterCrash().tables["recovered"]
			if len(rows) != 2 {
				t.Errorf("%d groups have former members that are to be notified, want 2", len(rows))
			}
			for _, row := range rows {
				before, err := nodemsg.DecodeRegion(row)
				var peers []string
				for _, m := range before.Members {
					peers = append(peers, m.Peer)
				}
				slices.Sort(peers)
				if got := strings.Join(peers, ""); err != nil || got != want {
					t.Errorf("of group %d are to be notified %s, %v; want %s", before.ID, got, err, want)
				}
			}
		}
		evicted("BCDE")
		b, c = n.start("B", diskB), n.start("C", diskC)
		n.near("A", "B", "C")
		<-time.After(time.Minute)
		for _, it := range []*node{a, b, c} {
			for _, group := range []uint64{world.CatalogID, id} {
				if p, err := it.Replicas.Position(group); err != nil || p.Members.Recovered != 2 || len(p.Members.Members) != 3 {
					t.Errorf("%s holds of group %d: %+v, %v", it.peer, group, p, err)
				}
			}
		}
		evicted("DE")
	})
}

// Former members are not notified before the copy here counts the recovery. Who is to be notified of a later recovery
// stays, although an earlier notice arrives meanwhile. A row has no more members than can be read again.
func TestEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.copies = 3
		var notices atomic.Int32
		var meanwhile atomic.Pointer[func()]
		n.meddle = func(_, _ string, q *nodemsg.Question) *nodemsg.Answer {
			if q.Superseded != nil {
				notices.Add(1)
			}
			if q.Superseded != nil && q.Superseded.Region != world.CatalogID {
				if then := meanwhile.Swap(nil); then != nil {
					(*then)()
					return &nodemsg.Answer{}
				}
			}
			return nil
		}
		n.near("A", "B", "C")
		a := n.start("A", newDisk())
		n.start("B", newDisk())
		n.start("C", newDisk())
		a.follow(here).edit(stone(1))
		<-time.After(20 * time.Second)
		info, err := a.regions.Member(idHere(t, a))
		if err != nil {
			t.Fatal(err)
		}
		evicted := a.recovery.Evicted
		kept := func() []nodemsg.Member {
			t.Helper()
			row, err := a.disk.Get("recovered", directory.Key(info.ID))
			if row == nil && err == nil {
				return nil
			}
			before, err2 := nodemsg.DecodeRegion(row)
			if err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
			return before.Members
		}
		before := nodemsg.Region{ID: info.ID, Cell: info.Cell, Epoch: info.Epoch, Members: []nodemsg.Member{member("B"), member("C")}}
		if err := evicted.Keep(before); err != nil {
			t.Fatal(err)
		}
		<-time.After(10 * time.Second)
		if notices.Load() != 0 || len(kept()) != 2 {
			t.Errorf("%d notices before the recovery; to be notified: %+v", notices.Load(), kept())
		}
		n.cut("A", true)
		<-time.After(a.recovery.SilentAfter())
		if err := a.Recover(t.Context(), world.CatalogID, false); err != nil {
			t.Fatal(err)
		}
		if err := a.Recover(t.Context(), info.ID, false); err != nil {
			t.Fatal(err)
		}
		again := before
		again.Epoch += nodemsg.RecoveredEpoch
		keep := func() {
			for i := range 20 {
				again.Members = append(again.Members, member(strings.Repeat("X", i+1)))
			}
			if err := evicted.Keep(again); err != nil {
				t.Error(err)
			}
		}
		meanwhile.Store(&keep)
		n.cut("A", false)
		<-time.After(time.Minute)
		if left := kept(); notices.Load() == 0 || len(left) != wire.MaxMembers || left[0].Peer != "B" {
			t.Errorf("after %d notices, to be notified of the later recovery: %+v", notices.Load(), left)
		}
	})
}

// A node whose other members are all away opens its copy, and asks them when it opens it again; not once they have
// answered.
func TestSilenceIsNotRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.copies = 3
		var asked atomic.Int32
		n.meddle = func(_, from string, q *nodemsg.Question) *nodemsg.Answer {
			if from == "C" && q.Status != nil {
				asked.Add(1)
			}
			return nil
		}
		n.near("A", "B", "C")
		a, _, c := n.start("A", newDisk()), n.start("B", newDisk()), n.start("C", newDisk())
		a.follow(here).edit(stone(1))
		<-time.After(20 * time.Second)
		info, err := c.regions.Member(idHere(t, c))
		if err != nil {
			t.Fatal(err)
		}
		left := n.kill(c)
		c = n.start("C", left)
		n.cut("A", true)
		n.cut("B", true)
		if err := c.executor.Admit(t.Context(), info); err != nil {
			t.Error("nobody answers: ", err)
		}
		n.cut("A", false)
		n.cut("B", false)
		asked.Store(0)
		<-time.After(6 * time.Second) // nobody is suspected any more
		if err := c.executor.Admit(t.Context(), info); err != nil || asked.Load() < 2 {
			t.Errorf("%d nodes were asked again, want 2: %v", asked.Load(), err)
		}
		asked.Store(0)
		if err := c.executor.Admit(t.Context(), info); err != nil || asked.Load() != 0 {
			t.Errorf("after all have answered, %d were asked: %v", asked.Load(), err)
		}
	})
}

// Members that were only cut off, and continued as a majority, drop their data when the network is whole again: the
// operator's recovery takes precedence.
func TestRecoveredWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b, c := three(t)
		g := a.follow(here)
		g.edit(stone(1))
		<-time.After(20 * time.Second)
		id := idHere(t, a)
		n.cut("A", true)
		<-time.After(a.recovery.SilentAfter())
		for _, lost := range []uint64{world.CatalogID, id} {
			if err := a.Recover(t.Context(), lost, false); err != nil {
				t.Fatal(err)
			}
		}
		if r := a.refollow().edit(stone(2))[2]; r.Refused != "" {
			t.Errorf("after the recovery: %+v", r)
		}
		if r := c.refollow().edit(stone(3))[3]; r.Refused != "" {
			t.Errorf("on the other side: %+v", r)
		}
		n.cut("A", false)
		<-time.After(time.Minute)
		for _, it := range []*node{b, c} {
			p, err := it.Replicas.Position(id)
			if err != nil || p.Members.Recovered != 1 || len(p.Members.Members) != 3 {
				t.Errorf("%s holds %+v, %v", it.peer, p, err)
			}
		}
		if s := c.refollow().state(here); len(s.Edits) != 2 {
			t.Errorf("the land has the edits %+v, want those of the recovered region", s.Edits)
		}
	})
}

// A catalog that was recovered on a node that is no issuer replaces nobody's copy: it may be a lie. Once the node is
// appointed, the others follow it.
func TestRecoveryWithoutIssuer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var appointed atomic.Bool
		n := newNetwork(t)
		n.copies = 3
		n.adjust = func(_ string, o *Options) {
			o.Issued = func(uint64, ed25519.PublicKey) (bool, error) { return appointed.Load(), nil }
		}
		n.near("A", "B", "C")
		a, b, c := n.start("A", newDisk()), n.start("B", newDisk()), n.start("C", newDisk())
		a.follow(here).edit(stone(1))
		<-time.After(20 * time.Second)
		diskB, diskC := n.kill(b), n.kill(c)
		<-time.After(a.recovery.SilentAfter())
		if err := a.Recover(t.Context(), world.CatalogID, false); err != nil {
			t.Fatal(err)
		}
		b, c = n.start("B", diskB), n.start("C", diskC)
		<-time.After(40 * time.Second)
		for _, it := range []*node{b, c} {
			if p, err := it.Replicas.Position(world.CatalogID); err != nil || p.Members.Recovered != 0 || len(p.Members.Members) != 3 {
				t.Errorf("%s has dropped its copy on one node's word: %+v, %v", it.peer, p, err)
			}
		}
		blamed := b.Examiner.Examine(t.Context()).Findings
		if !slices.ContainsFunc(blamed, func(f Finding) bool { return f.Kind == "contradicted" && f.Subject == "A" }) {
			t.Errorf("B's findings: %+v", blamed)
		}
		appointed.Store(true)
		<-time.After(40 * time.Second)
		for _, it := range []*node{a, b, c} {
			if p, err := it.Replicas.Position(world.CatalogID); err != nil || p.Members.Recovered != 1 || len(p.Members.Members) != 3 {
				t.Errorf("%s has of the catalog %+v, %v", it.peer, p, err)
			}
		}
	})
}

// Only the leader asks members often. A member that is cut off just before it would be asked again is not considered
// lost within ten seconds.
func TestRecoverWaitsForStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, _, c := three(t)
		g := a.follow(here)
		g.edit(stone(1))
		<-time.After(20 * time.Second)
		id := idHere(t, a)
		n.cut("C", true)
		synctest.Wait()
		cut := time.Now()
		reported := c.recovery.LastHeard
		c.recovery.LastHeard = func(peer string) time.Time { // as if it had been asked last as long before the cut as may be
			if at := reported(peer); at.After(cut) {
				return at
			}
			return cut.Add(-c.detector.StrangerEvery - directory.RoundEvery)
		}
		for time.Since(cut) < 10*time.Second {
			for _, lost := range []uint64{world.CatalogID, id} {
				if err := c.Recover(t.Context(), lost, false); err == nil || !strings.Contains(err.Error(), "wait") {
					t.Fatalf("%v after the cut: %v", time.Since(cut), err)
				}
			}
			<-time.After(time.Second)
		}
		if err := c.Recover(t.Context(), id, false); err == nil || !strings.Contains(err.Error(), "recover the catalog first") {
			t.Errorf("without the catalog: %v", err)
		}
		for _, lost := range []uint64{world.CatalogID, id} {
			if err := c.Recover(t.Context(), lost, false); err != nil {
				t.Errorf("%v after the cut: %v", time.Since(cut), err)
			}
		}
	})
}

// Of two survivors of five, only the one with the newest log may continue.
func TestRecoverOnTheBest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.copies = 5
		n.near("A", "B", "C", "D", "E")
		nodes := make(map[string]*node)
		for _, peer := range []string{"A", "B", "C", "D", "E"} {
			nodes[peer] = n.start(peer, newDisk())
		}
		a, b := nodes["A"], nodes["B"]
		g := a.follow(here)
		g.edit(stone(1))
		id := idHere(t, a)
		n.cut("B", true)
		g = a.refollow()
		g.edit(stone(2))
		for _, peer := range []string{"C", "D", "E"} {
			n.kill(nodes[peer])
		}
		<-time.After(5 * time.Second) // A no longer leads, or B would have heard from it
		n.cut("B", false)
		<-time.After(b.recovery.SilentAfter())
		if err := b.Recover(t.Context(), id, false); err == nil || !strings.Contains(err.Error(), "the copy of A has more") {
			t.Fatalf("on the worse one: %v", err)
		}
		if err := a.Recover(t.Context(), id, false); err != nil {
			t.Fatal(err)
		}
		if err := b.Recover(t.Context(), id, false); err == nil || !strings.Contains(err.Error(), "recovered already") {
			t.Fatalf("twice: %v", err)
		}
		if s := a.refollow().state(here); len(s.Edits) != 2 {
			t.Errorf("the land has the edits %+v", s.Edits)
		}
	})
}

// changed starts a world of A, B and C, in which D and E take the places of C and B, one after the other. C comes back
// with its copy from before, when A has just died, too.
func changed(t *testing.T) (n *network, back, d, e *node, id uint64) {
	t.Helper()
	n, a, b, c := three(t)
	a.follow(here).edit(stone(1))
	<-time.After(20 * time.Second) // the catalog has three members
	id = idHere(t, a)
	left := n.kill(c)
	d = n.start("D", newDisk())
	n.near("A", "B", "D")
	<-time.After(3 * time.Minute)
	n.kill(b)
	e = n.start("E", newDisk())
	n.near("A", "D", "E")
	<-time.After(3 * time.Minute)
	for _, it := range []*node{d, e} {
		if it.replicaID(id) == 0 || it.regions.Catalog() == nil {
			t.Fatalf("%s is no member", it.peer)
		}
	}
	a.refollow().edit(stone(2))
	n.kill(a)
	n.near("D", "E")
	<-time.After(10 * time.Second)
	return n, n.start("C", left), d, e, id
}

// A copy from before the members changed is not used while a node has a later one, whether that is one of most members
// or the only one left. There it is no obstacle.
func TestRecoverAfterMembersChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, c, d, e, id := changed(t)
		both := []uint64{world.CatalogID, id}
		refused := func(by string) {
			t.Helper()
			plans, err := c.PlanRecovery(t.Context(), both)
			if err != nil {
				t.Fatal(err)
			}
			for i, lost := range both {
				if !strings.Contains(by, plans[i].Best) || plans[i].Refused == "" {
					t.Errorf("the plan: %+v", plans[i])
				}
				if err := c.Recover(t.Context(), lost, false); err == nil || !strings.Contains(err.Error(), "more of the log") {
					t.Errorf("group %d is recovered from an old copy: %v", lost, err)
				}
			}
		}
		refused("DE")
		if r := e.refollow().edit(stone(3))[3]; r.Refused != "" {
			t.Errorf("over a member: %+v", r)
		}
		n.kill(d)
		<-time.After(e.recovery.SilentAfter() + time.Second)
		refused("E")
		n.near("C", "E")
		for _, lost := range both {
			if err := e.Recover(t.Context(), lost, false); err != nil {
				t.Errorf("group %d on the last member: %v", lost, err)
			}
		}
		if s := e.refollow().state(here); len(s.Edits) != 3 {
			t.Errorf("the land has the edits %+v", s.Edits)
		}
		<-time.After(time.Minute)
		for _, group := range both {
			if p, err := c.Replicas.Position(group); err != nil || p.Members.Recovered != 1 {
				t.Errorf("C holds of group %d: %+v, %v", group, p, err)
			}
		}
	})
}

// recoverAndGiveUp has a group recovered on a node by an operator who gives up once it is clear that it may be
// recovered.
func recoverAndGiveUp(t *testing.T, it *node, id uint64) error {
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	outdated := it.recovery.Outdated
	it.recovery.Outdated = func(asking context.Context, info nodemsg.Region, own replica.Position) (string, error) {
		why, err := outdated(asking, info, own)
		if asking == ctx { // the plan asks with less time
			giveUp()
		}
		return why, err
	}
	defer func() { it.recovery.Outdated = outdated }()
	return it.Recover(ctx, id, false)
}

// If nothing else is left, such a copy is used. What was used since then is not used again, and the later members are
// to be notified.
func TestRecoverFromBeforeMembersChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, c, d, e, id := changed(t)
		since, err := e.Locate(t.Context(), there)
		if err != nil {
			t.Fatal(err)
		}
		n.kill(d)
		left := n.kill(e)
		n.near("C")
		<-time.After(c.recovery.SilentAfter() + time.Second)
		if err := recoverAndGiveUp(t, c, world.CatalogID); err != nil {
			t.Fatal(err)
		}
		<-time.After(5 * time.Second)
		e = n.start("E", left) // neither the copy nor the catalog knows that it is a member
		n.near("C", "E")
		if err := c.Recover(t.Context(), id, false); err == nil || !strings.Contains(err.Error(), "the copy of E has more") {
			t.Errorf("recovered while E has a later copy: %v", err)
		}
		n.kill(e)
		n.near("C")
		<-time.After(c.recovery.SilentAfter() + time.Second)
		if err := recoverAndGiveUp(t, c, id); err != nil {
			t.Fatal(err)
		}
		if r := c.refollow().edit(stone(2))[2]; r.Refused != "" {
			t.Errorf("after the recovery: %+v", r)
		}
		for i := range int32(20) { // more entries than the catalog has had since C was away
			again, err := c.Locate(t.Context(), grid.ChunkPos{X: 1000 * (i + 1), Z: there.Z})
			if err != nil || again.ID == since.ID {
				t.Errorf("land that is founded after the recovery has the id %d, which was used before: %v", again.ID, err)
			}
		}
		row := c.disk.afterCrash().tables["recovered"][string(directory.Key(world.CatalogID))]
		before, err := nodemsg.DecodeRegion(row)
		var peers []string
		for _, m := range before.Members {
			peers = append(peers, m.Peer)
		}
		slices.Sort(peers)
		if got := strings.Join(peers, ""); err != nil || got != "ABDE" {
			t.Errorf("to be notified are %s, %v", got, err)
		}
	})
}

// The node with a later copy is asked, although most nodes are silent that are known.
func TestRecoverAsksAllNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, c, d, e, id := changed(t)
		n.kill(d)
		left := n.kill(e)
		n.near("C")
		<-time.After(c.recovery.SilentAfter() + time.Second)
		if err := c.Recover(t.Context(), world.CatalogID, false); err != nil {
			t.Fatal(err)
		}
		<-time.After(5 * time.Second)
		n.start("E", left)
		all := []string{"C", "E"}
		for i := range 126 {
			all = append(all, fmt.Sprint("silent", i))
		}
		n.near(all...)
		n.setMute(true)
		for range 3 { // in another order each time
			if err := c.Recover(t.Context(), id, false); err == nil || !strings.Contains(err.Error(), "the copy of E has more") {
				t.Errorf("recovered while E has a later copy: %v", err)
			}
		}
	})
}

// The catalog takes longer for each answer than a plan waits. A recovery waits for it.
func TestRecoverWithSlowCatalog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.copies = 2
		n.adjust = func(_ string, o *Options) { o.CatalogCopies = 1 }
		n.mu.nearTo[grid.CatalogKey] = []string{"A"}
		var slow atomic.Bool
		n.meddle = func(to, _ string, q *nodemsg.Question) *nodemsg.Answer {
			if slow.Load() && to == "A" && q.Authority != nil {
				<-time.After(integrity.PollTime + 200*time.Millisecond)
			}
			return nil
		}
		n.near("B", "C")
		a, b, c := n.start("A", newDisk()), n.start("B", newDisk()), n.start("C", newDisk())
		b.follow(here).edit(stone(1))
		<-time.After(20 * time.Second)
		id := idHere(t, b)
		if a.replicaID(id) != 0 || c.replicaID(id) == 0 || c.regions.Catalog() != nil {
			t.Fatal("the region is not on B and C alone, or the catalog not on A alone")
		}
		n.kill(b)
		n.near("C")
		<-time.After(c.recovery.SilentAfter())
		slow.Store(true)
		if err := c.Recover(t.Context(), id, false); err != nil {
			t.Error(err)
		}
	})
}

// Questions of operators are checked like all others.
func TestOperatorsQuestions(t *testing.T) {
	for name, q := range map[string]nodemsg.Question{
		"release 0":           {Release: &nodemsg.Release{}},
		"superseded 0":        {Superseded: &nodemsg.Release{}},
		"standing of nothing": {Status: &nodemsg.StatusRequest{}},
		"standing of 0":       {Status: &nodemsg.StatusRequest{Regions: []uint64{0}}},
		"too many":            {Status: &nodemsg.StatusRequest{Regions: make([]uint64, nodemsg.MaxStatuses+1)}},
		"two":                 {Regions: &nodemsg.RegionsRequest{}, Release: &nodemsg.Release{Region: 1}},
	} {
		if q.Valid() == nil {
			t.Errorf("%s is valid", name)
		}
	}
}
