package region

import (
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/copies"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// ask asks a node as a peer.
func (n *node) ask(peer string, q nodemsg.Question) nodemsg.Answer {
	t := n.net.t
	t.Helper()
	question, err := nodemsg.EncodeQuestion(q)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := n.AnswerQuestion(t.Context(), peer, question)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := nodemsg.DecodeAnswer(reply)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// withLiar starts A, B and C. Once lying is set, C says of its groups that they continue with itself alone, as their
// leader, and that it has removed whoever asks for that.
func withLiar(t *testing.T, near ...string) (n *network, a, b *node, lying *atomic.Bool) {
	n, lying = newNetwork(t), new(atomic.Bool)
	n.copies = 3
	n.near(near...)
	n.meddle = func(to, _ string, q *nodemsg.Question) *nodemsg.Answer {
		switch {
		case to != "C" || !lying.Load():
		case q.Rejoin != nil:
			return &nodemsg.Answer{Replica: math.MaxUint64}
		case q.Status != nil:
			var said nodemsg.Answer
			for _, id := range q.Status.Regions {
				said.Statuses = append(said.Statuses, nodemsg.RegionStatus{
					Region: id, State: nodemsg.StateOpen, Epoch: 1 << 47, Leader: to, Term: 1 << 47,
					Members: []nodemsg.MemberStatus{{Replica: nodemsg.Replica{ID: 9, Peer: to}}},
				})
			}
			return &said
		}
		return nil
	}
	a, b, _ = n.start("A", newDisk()), n.start("B", newDisk()), n.start("C", newDisk())
	return n, a, b, lying
}

// A member reports changes of a region to the catalog that leave the members' peers as they are, and has the others
// told that the region goes on without their replicas. They keep their copies, and the members can be changed as
// before.
func TestLiarMovesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b, lying := withLiar(t, "A", "B", "C")
		n.start("D", newDisk())
		g := a.follow(here)
		g.edit(stone(1))
		<-time.After(20 * time.Second)
		lying.Store(true)
		info := a.Regions(t.Context())[0].Region
		replicas := b.replicaID(info.ID)
		for name, change := range map[string]func(*nodemsg.Region){
			"other replicas":             func(r *nodemsg.Region) { r.Members[0].Replica, r.Members[1].Replica = 99, 98 },
			"another order":              func(r *nodemsg.Region) { slices.Reverse(r.Members); numberAnew(r) },
			"no votes":                   func(r *nodemsg.Region) { r.Members[0].Learner = true },
			"recoveries":                 func(r *nodemsg.Region) { r.Epoch += 1000 * nodemsg.RecoveredEpoch },
			"an epoch that none exceeds": func(r *nodemsg.Region) { r.Epoch = nodemsg.RecoveredEpoch - 2 },
			"a split":                    func(r *nodemsg.Region) { r.Epoch, r.Split = info.Epoch, 1<<39 },
			"a merge":                    func(r *nodemsg.Region) { r.Epoch, r.Merged = info.Epoch, 1<<39 },
		} {
			moved := info
			moved.Epoch++
			moved.Members = slices.Clone(info.Members)
			change(&moved)
			if answer := a.ask("C", nodemsg.Question{Moved: &moved}); answer.Error == "" {
				t.Errorf("%s: the catalog obeyed: %+v", name, answer)
			}
			b.ask("C", nodemsg.Question{Superseded: &nodemsg.Release{Region: info.ID}})
			<-time.After(time.Second)
			if b.replicaID(info.ID) != replicas {
				t.Fatalf("%s: B has dropped its copy", name)
			}
		}
		if listed, err := a.Directory.ByID(t.Context(), info.ID); err != nil || listed.Newer(info) {
			t.Errorf("the catalog lists %+v, %v", listed, err)
		}
		n.near("A", "B", "D")
		<-time.After(30 * time.Second)
		listed, err := a.Directory.ByID(t.Context(), info.ID)
		if err != nil || !actor.HasMember(listed, "D") || actor.HasMember(listed, "C") {
			t.Errorf("C is not replaced by D: %+v, %v", listed, err)
		}
	})
}

// A member says that it leads a region, in a later term than all others. Gateways whose edits wait keep their links
// with the real leader.
func TestLiarLeadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b, lying := withLiar(t, "A", "B", "C")
		a.follow(here).edit(stone(1))
		<-time.After(20 * time.Second)
		lying.Store(true)
		for _, n := range []*node{a, b} {
			link := n.follow(here).Link.(routedLink)
			if leader := link.info.Leader; leader == "C" {
				t.Fatal("the liar leads the region")
			}
			if link.LedElsewhere(t.Context()) {
				t.Errorf("%s believes that the region is led elsewhere", n.peer)
			}
			if route, ok := n.Directory.Known(here); !ok || route.Leader == "C" {
				t.Errorf("%s has the route %+v", n.peer, route)
			}
		}
	})
}

// A member says that it leads a region, in its present term, while the other follower has just restarted or has voted:
// it knows the term, and names no leader. A gateway keeps its link, also if the real leader does not answer it.
func TestLiarLeadsNothingDuringElections(t *testing.T) {
	for _, answers := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork(t)
			n.copies = 3
			n.near("A", "B", "C")
			var status atomic.Pointer[nodemsg.RegionStatus] // what A says; until it is set, nobody lies
			n.meddle = func(to, _ string, q *nodemsg.Question) *nodemsg.Answer {
				if q.Status == nil || status.Load() == nil || to == "A" && answers {
					return nil
				}
				said := *status.Load()
				switch to {
				case "A":
					return &nodemsg.Answer{Error: "busy"}
				case "B":
					said.Leader = ""
				case "C":
					said.Leader = "C"
				}
				return &nodemsg.Answer{Statuses: []nodemsg.RegionStatus{said}}
			}
			a, _, _, gateway := n.start("A", newDisk()), n.start("B", newDisk()), n.start("C", newDisk()), n.start("D", newDisk())
			link := gateway.follow(here).Link.(routedLink)
			led := a.reporter.status(link.info.ID, false)
			if link.info.Leader != "A" || led.Leader != "A" {
				t.Fatalf("%s leads, A says %+v", link.info.Leader, led)
			}
			status.Store(&led)
			if link.LedElsewhere(t.Context()) {
				t.Errorf("the leader answers: %v: its gateway believes that the region is led elsewhere", answers)
			}
			if route, ok := gateway.Directory.Known(here); !ok || route.Leader != "A" {
				t.Errorf("the leader answers: %v: the route is %+v", answers, route)
			}
		})
	}
}

// numberAnew leaves out the replica ids, so that the members are numbered in their order.
func numberAnew(r *nodemsg.Region) {
	for i := range r.Members {
		r.Members[i].Replica = 0
	}
}

// Between two changes that the catalog has not heard of yet, a member reports one that never was.
func TestLiarReportsWhatIsPast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, _, _ := three(t)
		a.follow(here).edit(stone(1))
		<-time.After(20 * time.Second)
		known := a.Regions(t.Context())[0].Region
		if err := a.regions.Loaded(known.ID).Raft().Remove("C"); err != nil {
			t.Fatal(err)
		}
		<-time.After(100 * time.Millisecond)
		now := a.Regions(t.Context())[0].Region
		if now.Epoch < known.Epoch+2 {
			t.Fatalf("epoch %d after %d leaves no room", now.Epoch, known.Epoch)
		}
		captured := known
		captured.Epoch, captured.Leader, captured.Members = now.Epoch-1, "C", []nodemsg.Member{member("C")}
		if err := a.consent.moved(t.Context(), "C", known, captured); err == nil {
			t.Error("the catalog obeyed")
		}
		if err := a.consent.moved(t.Context(), "D", known, now); err == nil {
			t.Error("a report of a node that is no member is accepted")
		}
		if err := a.consent.moved(t.Context(), "A", known, now); err != nil {
			t.Error("the truth is not accepted: ", err)
		}
		known.Members[1].Learner = true
		if said := a.consent.askMembers(t.Context(), known.Members[0].Peer, known, func(s nodemsg.RegionStatus) opinion { return confirms(s, now) }); said.voters != 2 {
			t.Errorf("with a learner there are %d voters", said.voters)
		}
	})
}

// A node wants its copy to be replaced, and a member that lies says that it has been removed. It keeps the copy until
// that is true, and then comes back, although the liar has named a replica id that nobody exceeds.
func TestLiarRemovesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b, lying := withLiar(t, "C", "A", "B")
		g := a.follow(here)
		g.edit(stone(1))
		n.near("A", "B", "C") // C does not lead it any more
		<-time.After(20 * time.Second)
		a.refollow()
		<-time.After(time.Second)
		info, err := a.Directory.FromCatalog(t.Context(), here)
		if err != nil || info.Members[0].Peer != "C" {
			t.Fatalf("C is not asked first: %+v, %v", info, err)
		}
		leader := leaderAmong(a, b)
		if leader == nil {
			t.Fatal("the liar leads the region")
		}
		victim := map[*node]*node{a: b, b: a}[leader]
		before := victim.replicaID(info.ID)
		lying.Store(true)
		n.cut(leader.peer, true)
		if err := victim.executor.Replace(t.Context(), info); err == nil {
			t.Error("it believes that it was removed")
		}
		n.cut(leader.peer, false)
		<-time.After(5 * time.Second)
		if id := victim.replicaID(info.ID); id != before {
			t.Fatalf("%s was replica %d, and is %d", victim.peer, before, id)
		}
		victim.executor.Note(info, copies.Lacking, errors.New("a test says so"))
		<-time.After(30 * time.Second)
		leader.refollow()
		<-time.After(30 * time.Second)
		if id := victim.replicaID(info.ID); id <= before || id > 1000 {
			t.Errorf("%s was replica %d, and is %d", victim.peer, before, id)
		}
		if d := victim.Damaged(); len(d) != 0 {
			t.Errorf("left: %+v", d)
		}

		// It was removed before, and the liar is the first to confirm that.
		again := victim.replicaID(info.ID)
		if info, err = victim.regions.Member(info.ID); err != nil {
			t.Fatal(err)
		}
		n.cut(victim.peer, true)
		if _, err := leader.executor.RemoveReplica(t.Context(), victim.peer, info.ID); err != nil {
			t.Fatal(err)
		}
		n.cut(victim.peer, false)
		victim.executor.Note(info, copies.Lacking, errors.New("a test says so"))
		if err := victim.executor.Replace(t.Context(), info); err != nil {
			t.Error(err)
		}
		<-time.After(time.Second)
		leader.refollow()
		<-time.After(30 * time.Second)
		if id := victim.replicaID(info.ID); id <= again || id > 1000 {
			t.Errorf("%s was replica %d, and is %d", victim.peer, again, id)
		}
	})
}

// A node introduces itself as the leader of land of which it is not a member. No gateway follows it there, whatever it
// claims.
func TestLiarLeadsNoLand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		a, _ := n.start("A", newDisk()), n.start("X", newDisk())
		n.near("A")
		for i, lie := range []struct {
			name   string
			founds bool // the land is founded before
			change func(*nodemsg.Region)
		}{
			{"a later leader", true, func(r *nodemsg.Region) { r.Term += 9 }},
			{"other members", true, func(r *nodemsg.Region) { r.Epoch += 9 }},
			{"a recovery", true, func(r *nodemsg.Region) { r.Epoch += nodemsg.RecoveredEpoch }},
			{"a merge", true, func(r *nodemsg.Region) { r.Merged = 99 }},
			{"a split", true, func(r *nodemsg.Region) { r.Split = 99 }},
			{"another region", true, func(r *nodemsg.Region) { r.ID, r.Epoch = 99, r.Epoch+9 }},
			{"a part", true, func(r *nodemsg.Region) { r.ID = 99; r.Cell, _ = r.Cell.Children() }},
			{"land that is not founded", false, func(*nodemsg.Region) {}},
			{"a part of such land", false, func(r *nodemsg.Region) { r.Cell, _ = r.Cell.Children() }},
		} {
			pos := grid.ChunkPos{X: here.X + 8*cellSize*int32(i), Z: here.Z} //nolint:gosec // few
			at := nodemsg.Region{ID: 99, Cell: grid.CellAt(pos, grid.FoundingLabel), Epoch: actor.FirstEpoch}
			if lie.founds {
				at = a.follow(pos).Link.(routedLink).info
				<-time.After(mendTime) // its leader has published it
			}
			claim := at
			claim.Leader, claim.Members = "X", []nodemsg.Member{member("X")}
			lie.change(&claim)
			if claim.Cell != at.Cell {
				a.Directory.Invalidate(at) // a hint of a part counts if the whole is not known
			}
			a.ask("X", nodemsg.Question{Introduce: &claim})
			if known, ok := a.Directory.Known(pos); !ok || known.Leader != "X" {
				t.Errorf("%s: the hint was not taken: the test shows nothing", lie.name)
			}
			_, info, err := a.Follow(t.Context(), pos)
			if err != nil || info.Leader != "A" || info.ID == 99 || lie.founds && info.ID != at.ID {
				t.Errorf("%s: %+v is followed, %v", lie.name, info, err)
			}
		}
	})
}

// A chunk that is split does not exist: who claims that is refused, and the node goes on.
func TestLiarSplitsAChunk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newNetwork(t).start("A", newDisk())
		claim := nodemsg.Region{ID: 99, Cell: grid.CellAt(here, grid.MaxLabel), Split: 9, Leader: "X", Members: []nodemsg.Member{member("X")}}
		question, err := nodemsg.EncodeQuestion(nodemsg.Question{Introduce: &claim})
		if err == nil {
			_, err = a.AnswerQuestion(t.Context(), "X", question)
		}
		if err == nil {
			t.Error("the claim is accepted")
		}
		claim.Split = 0
		a.Directory.CacheSplit(claim, 9)
		a.follow(here).state(here)
	})
}

// While the catalog cannot be asked, known land is followed as before, at once.
func TestRouteWithoutCatalog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		a, b := n.start("A", newDisk()), n.start("B", newDisk())
		n.near("B")
		n.place(grid.CatalogKey, "A")
		c := n.start("C", newDisk())
		c.follow(here).state(here)
		<-time.After(time.Hour) // what the catalog has listed is old
		if a.regions.Catalog() == nil {
			t.Fatal("the catalog is on another node: the test shows nothing")
		}
		n.setMute(true) // questions to the dead get no answer and no error
		n.kill(a)
		began := time.Now()
		if _, info, err := c.Follow(t.Context(), here); err != nil || info.Leader != b.peer {
			t.Errorf("%+v is followed, %v", info, err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("that took %v", took)
		}
	})
}

// While the catalog cannot be asked, members are found of which it has not told the node yet.
func TestNewMembersWithoutCatalog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.copies = 3
		z, g := n.start("Z", newDisk()), n.start("G", newDisk())
		n.place(grid.CatalogKey, "Z")
		a, b, c := n.start("A", newDisk()), n.start("B", newDisk()), n.start("C", newDisk())
		n.near("A", "B", "C")
		link := g.follow(here)
		link.edit(stone(1))
		link.Close()
		n.start("D", newDisk())
		n.start("E", newDisk())
		n.near("A", "D", "E")
		for _, gone := range []*node{b, c} {
			n.kill(gone)
			<-time.After(3 * time.Minute)
		}
		info, err := a.Locate(t.Context(), here)
		if err != nil || info.Leader != a.peer || !actor.HasMember(info, "D") || !actor.HasMember(info, "E") {
			t.Fatalf("%+v, %v: the test shows nothing", info, err)
		}
		n.kill(z)
		n.kill(a)
		g.Directory.CacheRoute(info) // a neighbour told it
		if _, info, err := g.Follow(t.Context(), here); err != nil || info.Leader == a.peer {
			t.Errorf("%+v is followed, %v", info, err)
		}
	})
}

// Land was split while a gateway had no link to it. The gateway follows the parts.
func TestRouteOfLandThatWasSplit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c := threeNodes(t)
		a.follow(here).accepts(stoneAt(here, 1))
		g := c.follow(here)
		whole := g.Link.(routedLink).info
		g.Close()
		<-time.After(time.Minute)
		if err := b.Splitter.Split(t.Context(), hereCell); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Hour)
		c.Directory.CacheRoute(whole) // it has heard nothing of it
		for _, pos := range []grid.ChunkPos{here, beyond} {
			if _, info, err := c.Follow(t.Context(), pos); err != nil || info.ID == whole.ID {
				t.Errorf("%v: %+v is followed, %v", pos, info, err)
			}
		}
	})
}

// The catalog has not heard of a split, and a node introduces itself as the leader of one half. Gateways find that half
// through the members of the whole.
func TestLiarLeadsNoHalf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.copies = 3
		n.meddle = func(_, _ string, q *nodemsg.Question) *nodemsg.Answer {
			if q.Moved != nil {
				return &nodemsg.Answer{Error: "the catalog hears of nothing"}
			}
			return nil
		}
		d := n.start("D", newDisk())
		n.place(grid.CatalogKey, "D")
		n.place(d.Directory.Key(hereCell), "A", "B", "C")
		a := n.start("A", newDisk())
		n.start("B", newDisk())
		n.start("C", newDisk())
		a.follow(here).accepts(stoneAt(here, 1))
		if err := a.Splitter.Split(t.Context(), hereCell); err != nil {
			t.Fatal(err)
		}
		half := a.reach(here).Link.(routedLink).info
		if listed, err := d.Directory.Exactly(t.Context(), hereCell); err != nil || listed.Split != 0 {
			t.Fatalf("the catalog lists %+v, %v: the test shows nothing", listed, err)
		}
		e := n.start("E", newDisk())
		e.reach(here)
		claim := half
		claim.Leader, claim.Members, claim.Term = "X", []nodemsg.Member{member("X")}, half.Term+9
		e.ask("X", nodemsg.Question{Introduce: &claim})
		if known, ok := e.Directory.Known(here); !ok || known.Leader != "X" {
			t.Error("the hint was not taken: the test shows nothing")
		}
		if _, info, err := e.Follow(t.Context(), here); err != nil || info.ID != half.ID || info.Leader == "X" {
			t.Errorf("%+v is followed, %v", info, err)
		}
	})
}
