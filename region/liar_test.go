package region

import (
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/region/actor"
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

// withLiar starts A, B and C. Once lying is set, C says of its groups that they continue with itself alone, and that it has removed whoever asks
// for that.
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
					Region: id, State: nodemsg.StateOpen, Epoch: 1 << 47, Members: []nodemsg.MemberStatus{{Replica: nodemsg.Replica{ID: 9, Peer: to}}},
				})
			}
			return &said
		}
		return nil
	}
	a, b, _ = n.start("A", newDisk()), n.start("B", newDisk()), n.start("C", newDisk())
	return n, a, b, lying
}

// A member reports changes of a region to the catalog that leave the members' peers as they are, and has the others told that the region goes on
// without their replicas. They keep their copies, and the members can be changed as before.
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
		if err := a.consent(t.Context(), "C", known, captured); err == nil {
			t.Error("the catalog obeyed")
		}
		if err := a.consent(t.Context(), "D", known, now); err == nil {
			t.Error("a report of a node that is no member is accepted")
		}
		if err := a.consent(t.Context(), "A", known, now); err != nil {
			t.Error("the truth is not accepted: ", err)
		}
		known.Members[1].Learner = true
		if said := a.askMembers(t.Context(), known.Members[0].Peer, known, now); said.voters != 2 {
			t.Errorf("with a learner there are %d voters", said.voters)
		}
	})
}

// A node wants its copy to be replaced, and a member that lies says that it has been removed. It keeps the copy until that is true, and then comes
// back, although the liar has named a replica id that nobody exceeds.
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
		if err := victim.reseeder.Reseed(t.Context(), info); err == nil {
			t.Error("it believes that it was removed")
		}
		n.cut(leader.peer, false)
		<-time.After(5 * time.Second)
		if id := victim.replicaID(info.ID); id != before {
			t.Fatalf("%s was replica %d, and is %d", victim.peer, before, id)
		}
		victim.reseeder.MarkCorrupt(info, errForgetful)
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
		if _, err := leader.reseeder.RemoveReplica(t.Context(), victim.peer, info.ID); err != nil {
			t.Fatal(err)
		}
		n.cut(victim.peer, false)
		if err := victim.reseeder.Reseed(t.Context(), info); err != nil {
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
