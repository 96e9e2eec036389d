package replica

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/voxelpopuli/voxeld/replica/raftframe"
	"github.com/voxelpopuli/voxeld/replica/raftgroup"
	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// TestPendingMembersAreAccepted: the deadlock case of the package documentation. A member admits messages of a member
// added by a change in its log, although the change is not known to be committed. When that change is cut off, it
// refuses them again.
func TestPendingMembersAreAccepted(t *testing.T) {
	u := func(n uint64) *uint64 { return &n }
	h, _ := gated(t)
	var sent []*raftpb.Message
	h.node.Send = func(peer string, _ uint64, b []byte) {
		m, err := raftframe.Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		if peer == "d" {
			sent = append(sent, m)
		}
	}
	vote := func(h *Host) error {
		return h.Receive("d", 1, marshal(t, &raftpb.Message{
			Type: raftpb.MsgVote.Enum(), From: u(4), To: u(1), Term: u(6), Index: u(9), LogTerm: u(5), Context: []byte(raftframe.CampaignTransfer),
		}))
	}
	if err := vote(h); !errors.Is(err, ErrNotMember) {
		t.Fatalf("a stranger was admitted: %v", err)
	}
	c := raftlog.Change{Kind: raftpb.ConfChangeAddLearnerNode, ID: 4, Peer: "d"}
	entry, err := c.Entry()
	if err != nil {
		t.Fatal(err)
	}
	entry.Index, entry.Term = u(4), u(5)
	app := &raftpb.Message{
		Type: raftpb.MsgApp.Enum(), From: u(2), To: u(1), Term: u(5), Index: u(3), LogTerm: u(5), Commit: u(2), Entries: []*raftpb.Entry{entry},
	}
	deliver(t, h, "b", 1, app)
	if got := h.groups.replicas[1].Group().Members(); !slices.Equal(got, []string{"me", "b", "c"}) {
		t.Fatalf("in force before it was committed: %v", got)
	}
	// The same after a restart.
	again := newTestHost(t, h.node.Storage)
	openNow(t, again, Founding{Group: 1})
	if err := vote(again); err != nil {
		t.Fatal("after a restart the pending member is a stranger")
	}
	if err := vote(h); err != nil {
		t.Fatal(err)
	}
	pump(h)
	if len(sent) != 1 || sent[0].GetType() != raftpb.MsgVoteResp || sent[0].GetReject() {
		t.Fatalf("answered %v", sent)
	}
	// Another leader's entry replaces the change.
	deliver(t, h, "c", 1, &raftpb.Message{
		Type: raftpb.MsgApp.Enum(), From: u(3), To: u(1), Term: u(7), Index: u(3), LogTerm: u(5), Commit: u(2),
		Entries: []*raftpb.Entry{{Index: u(4), Term: u(7)}},
	})
	if err := vote(h); !errors.Is(err, ErrNotMember) {
		t.Fatalf("the member of a lost change was admitted: %v", err)
	}
}

// TestOldLeaderDiesWhileThirdIsAdded: in a group of two the leader dies right after the third has got its vote, before
// the second is informed. The two survivors continue.
func TestOldLeaderDiesWhileThirdIsAdded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newTestGroup(t, []string{"a", "b"})
		old := p.leader()
		second := p.members[map[string]string{"a": "b", "b": "a"}[old.peer]]
		third := p.join("c")
		p.propose(5, "a", "b", "c")
		// The second gets the entry, but not the message that it is committed.
		index := old.Status().Last + 1
		p.net.mu.Lock()
		p.net.lose = losesCommit(second.peer, index)
		p.net.mu.Unlock()
		p.try("promote", func() error { return old.Promote("c") })
		p.until("the third has its vote", func() bool { return len(third.conf.Members) == 3 && !third.conf.Members[2].Learner })
		if c := second.conf.Members; len(c) == 3 && !c[2].Learner {
			t.Fatal("the second has the commit index already")
		}
		p.net.set(old.peer, true)
		p.net.mu.Lock()
		p.net.lose = nil
		p.net.mu.Unlock()
		p.until("another leader", func() bool { return second.leading || third.leading })
		p.propose(5, second.peer, "c")
	})
}

// TestTrustMembers: a member was cut off while its group got new members, which now lead it. It admits their messages
// only after its owner trusts them.
func TestTrustMembers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newTestGroup(t, []string{"a", "b", "c"}, func(l *raftgroup.Limits) { l.KeepEntries = 10 })
		l := p.leader()
		lost := p.members[map[string]string{"a": "b", "b": "c", "c": "a"}[l.peer]]
		p.propose(5, "a", "b", "c")
		p.net.set(lost.peer, true)
		for _, peer := range []string{"d", "e"} {
			p.join(peer)
			p.promote(peer)
		}
		p.try("transfer", func() error {
			if l := p.leader(); l.peer != "d" {
				return errors.Join(l.Transfer("d"), errors.New("asked"))
			}
			return nil
		})
		p.propose(50, "d", "e")
		for _, peer := range []string{"a", "b", "c"} {
			if peer != lost.peer {
				p.remove(peer)
			}
		}
		p.net.set(lost.peer, false)
		p.pass(5 * time.Second)
		if len(lost.log) != 5 {
			t.Fatalf("it admitted strangers: %d entries", len(lost.log))
		}
		if err := lost.TrustMembers(p.members["d"].Group.Configuration()); err != nil {
			t.Fatal(err)
		}
		p.propose(5, "d", "e", lost.peer)
		if lost.restored != 1 || len(lost.conf.Members) != 3 {
			t.Fatalf("restored %d times, told %v", lost.restored, lost.conf)
		}
		synctest.Wait()
		if lost.TrustMembers(Configured{Members: []Member{{ID: 1}}}) == nil {
			t.Fatal("no members to trust")
		}
	})
}
