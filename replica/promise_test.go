package replica

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3/raftpb"
)

// TestNoWordBeforeFsync blocks the disk: no vote and no acknowledgement may leave before what it promises is stored
// (raft's doc.go).
func TestNoWordBeforeFsync(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := newDisk()
		words := make(chan raftpb.MessageType, 100)
		h := launch(t, Options{Storage: d, Send: func(_ string, _ uint64, message []byte) {
			words <- unmarshal(message).GetType()
		}})
		h.mustOpen(t, Founding{Group: 1, Members: []string{"me", "b", "c"}})
		synctest.Wait()
		d.hold = make(chan struct{})
		for _, c := range []struct {
			m      *raftpb.Message
			answer raftpb.MessageType
		}{
			{&raftpb.Message{Type: raftpb.MsgVote.Enum(), Term: new(uint64(5))}, raftpb.MsgVoteResp},
			{&raftpb.Message{
				Type: raftpb.MsgApp.Enum(), Term: new(uint64(6)), Entries: []*raftpb.Entry{{Index: new(uint64(2)), Term: new(uint64(6))}},
			}, raftpb.MsgAppResp},
		} {
			c.m.From, c.m.To, c.m.Index, c.m.LogTerm = new(uint64(2)), new(uint64(1)), new(uint64(1)), new(uint64(1))
			if err := h.Receive("b", 1, marshal(t, c.m)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if len(words) > 0 {
				t.Fatalf("%v left before the disk had it", <-words)
			}
			d.hold <- struct{}{}
			synctest.Wait()
			if got := <-words; got != c.answer {
				t.Fatalf("answered %v, expected %v", got, c.answer)
			}
		}
		close(d.hold)
	})
}

// TestVoteSurvivesCrash: no node votes twice in a term, not even across a crash.
func TestVoteSurvivesCrash(t *testing.T) {
	d := newDisk()
	var answers []*raftpb.Message
	boot := func() *Host {
		h, err := NewHost(Options{Storage: d, Self: "me", Send: func(_ string, _ uint64, message []byte) {
			answers = append(answers, unmarshal(message))
		}})
		if err != nil {
			t.Fatal(err)
		}
		openNow(t, h, Founding{Group: 1, Members: []string{"me", "b", "c"}})
		return h
	}
	vote := func(h *Host, peer string, id uint64) bool {
		answers = nil
		deliver(t, h, peer, 1, &raftpb.Message{
			Type: raftpb.MsgVote.Enum(), From: &id, To: new(uint64(1)), Term: new(uint64(5)), Index: new(uint64(1)), LogTerm: new(uint64(1)),
		})
		if len(answers) != 1 || answers[0].GetType() != raftpb.MsgVoteResp {
			t.Fatalf("answered %v", answers)
		}
		return !answers[0].GetReject()
	}
	if !vote(boot(), "b", 2) {
		t.Fatal("b did not get the vote")
	}
	h := boot()
	if vote(h, "c", 3) {
		t.Fatal("voted twice in a term")
	}
	if !vote(h, "b", 2) {
		t.Fatal("its vote was lost")
	}
}

// TestReturnDisturbsNobody: a member that was cut off for a while returns without ending the leader's term.
func TestReturnDisturbsNobody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newTestGroup(t, []string{"a", "b", "c"})
		p.propose(5, "a", "b", "c")
		l := p.leader()
		lost := p.members[map[string]string{"a": "b", "b": "c", "c": "a"}[l.peer]]
		term := l.Status().Term
		p.net.set(lost.peer, true)
		p.pass(20 * time.Second)
		p.net.set(lost.peer, false)
		p.pass(5 * time.Second)
		if s := l.Status(); s.Term != term || !s.Self {
			t.Fatalf("the leader of term %d is now %+v", term, s)
		}
		p.propose(5, "a", "b", "c")
	})
}

// TestReplacedLogIsNotGuessed: if a commit fails that replaces uncommitted entries by another leader's, and it is
// unknown which are stored, the group starts again from the stored ones.
func TestReplacedLogIsNotGuessed(t *testing.T) {
	for _, torn := range []bool{false, true} {
		h, d := gated(t)
		u := func(n uint64) *uint64 { return &n }
		tail := &raftpb.Message{
			Type: raftpb.MsgApp.Enum(), From: u(2), To: u(1), Term: u(5), Index: u(3), LogTerm: u(5), Commit: u(2),
			Entries: []*raftpb.Entry{{Index: u(4), Term: u(5)}, {Index: u(5), Term: u(5)}, {Index: u(6), Term: u(5)}},
		}
		deliver(t, h, "b", 1, tail)
		d.refuse, d.torn = full, torn
		g := h.groups.replicas[1].Group()
		deliver(t, h, "c", 1, &raftpb.Message{
			Type: raftpb.MsgApp.Enum(), From: u(3), To: u(1), Term: u(7), Index: u(3), LogTerm: u(5), Commit: u(2),
			Entries: []*raftpb.Entry{{Index: u(4), Term: u(7)}},
		})
		all := g.Dequeue()
		if f, ok := all[len(all)-1].(Failed); !ok || !errors.Is(f.Err, errFull) {
			t.Fatalf("got %v", all)
		}
		d.refuse = nil
		h.committer.retryStorage()
		pump(h)
		openNow(t, h, Founding{Group: 1})
		if last, want := h.groups.replicas[1].Group().Status().Last, map[bool]uint64{false: 6, true: 4}[torn]; last != want {
			t.Fatalf("torn %v: last entry %d, expected %d", torn, last, want)
		}
	}
}

// TestOverbid: a member asked for its vote by one that lacks entries campaigns itself, but only without a leader.
func TestOverbid(t *testing.T) {
	d := newDisk()
	h := newTestHost(t, d)
	openNow(t, h, Founding{Group: 1, Members: []string{"me", "b", "c"}})
	var sent []raftpb.MessageType
	h.node.Send = func(_ string, _ uint64, message []byte) { sent = append(sent, unmarshal(message).GetType()) }
	ask := func(term, logTerm, index uint64) []raftpb.MessageType {
		sent = nil
		deliver(t, h, "b", 1, &raftpb.Message{
			Type: raftpb.MsgPreVote.Enum(), From: new(uint64(2)), To: new(uint64(1)), Term: &term, LogTerm: &logTerm, Index: &index,
		})
		return sent
	}
	grant, both := []raftpb.MessageType{raftpb.MsgPreVoteResp}, []raftpb.MessageType{raftpb.MsgPreVote, raftpb.MsgPreVote, raftpb.MsgPreVoteResp}
	if got := ask(2, 1, 1); !slices.Equal(got, grant) {
		t.Fatalf("to one who has all: %v", got)
	}
	deliver(t, h, "c", 1, &raftpb.Message{
		Type: raftpb.MsgApp.Enum(), From: new(uint64(3)), To: new(uint64(1)), Term: new(uint64(5)), Index: new(uint64(1)), LogTerm: new(uint64(1)),
		Entries: []*raftpb.Entry{{Index: new(uint64(2)), Term: new(uint64(5))}},
	})
	if got := ask(6, 1, 1); len(got) != 0 {
		t.Fatalf("while c leads: %v", got)
	}
	h = newTestHost(t, d) // as after a long hibernation
	h.node.Send = func(_ string, _ uint64, message []byte) { sent = append(sent, unmarshal(message).GetType()) }
	openNow(t, h, Founding{Group: 1})
	if got := ask(6, 5, 2); !slices.Equal(got, grant) {
		t.Fatalf("to one who has all: %v", got)
	}
	if got := ask(6, 1, 1); !slices.Equal(got, both) {
		t.Fatalf("to one who lacks an entry: %v", got)
	}
}
