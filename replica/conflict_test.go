package replica

import (
	"io"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/voxelpopuli/voxeld/replica/raftgroup"
	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// forget returns a group of a, b and c. The disk of a was put back, and nobody knows: a and b have elected a leader
// without an entry that a and c had acknowledged, and have gone on. C, which is cut off, has that entry.
func forget(t *testing.T, change ...func(*raftgroup.Limits)) *testGroup {
	p := newTestGroup(t, []string{"a", "b", "c"}, change...)
	p.propose(3, "a", "b", "c")
	p.pass(time.Second)
	p.members["a"].disk.mu.Lock()
	old := &disk{tables: p.members["a"].disk.tables.Clone()}
	p.members["a"].disk.mu.Unlock()
	p.net.set("b", true)
	p.propose(1, "a", "c")
	p.pass(time.Second) // the commit index is stored

	p.net.set("c", true)
	p.net.set("b", false)
	p.members["a"].disk = old
	p.boot("a")
	p.open("a", nil)
	for p.leader().Status().Term <= p.members["c"].Status().Term { // in the same term nothing could tell the entries apart
		p.handOver()
	}
	if err := p.leader().Propose([]byte("instead")); err != nil {
		t.Fatal(err)
	}
	p.until("it is applied", func() bool { return len(p.members["b"].log) == 4 })
	return p
}

// handOver makes the other one of a and b the leader.
func (p *testGroup) handOver() {
	p.t.Helper()
	term := p.leader().Status().Term
	p.try("transfer", func() error {
		if p.leader().peer == "a" {
			return p.leader().Transfer("b")
		}
		return p.leader().Transfer("a")
	})
	p.until("another term", func() bool { return p.leader().Status().Term > term })
}

// keepsEntry fails the test unless c has the entry that the others have forgotten.
func (p *testGroup) keepsEntry() {
	p.t.Helper()
	if c := p.members["c"]; c.failed != nil || len(c.log) != 4 || c.log[3] != numbered("e", 3) {
		p.t.Errorf("the member with the acknowledged entry: %v, %v", c.log, c.failed)
	}
}

// Two members go on without an entry that was acknowledged. The third member has it. It is not made to forget it, and
// does not help that leader to commit others.
func TestCommittedEntriesStay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := forget(t)
		// Without the rule, refusals and further attempts would follow each other for ever, in no time.
		const plenty = 2000
		sent := 0
		p.net.mu.Lock()
		p.net.lose = func(_, to string, _ *raftpb.Message) bool {
			if to == "c" {
				sent++
			}
			return sent > plenty
		}
		p.net.mu.Unlock()
		p.net.set("c", false)
		p.pass(20 * time.Second)
		p.net.mu.Lock()
		if sent > plenty {
			t.Errorf("more than %d messages in 20 s to the member with the acknowledged entry", plenty)
		}
		p.net.mu.Unlock()
		p.keepsEntry()
		for _, m := range p.leader().Status().Members {
			if m.Peer == "c" && m.Match != 0 {
				t.Errorf("it acknowledges entry %d of a leader without that entry", m.Match)
			}
		}
		if value(t, p.members["c"].host.metrics.rejected) == 0 {
			t.Error("no message of that leader was refused")
		}
	})
}

// conflict reports whether it is stored at c that a leader's log conflicts with a committed entry.
func (p *testGroup) conflict() bool {
	p.t.Helper()
	stored, err := raftlog.Conflict(p.members["c"].disk, testGroupID)
	if err != nil {
		p.t.Fatal(err)
	}
	return stored
}

// No snapshot replaces the entry either, when the others have compacted their logs: neither by another leader, nor
// after a restart. A recovery ends that.
func TestCommittedEntriesStayWithoutLog(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := forget(t, func(l *raftgroup.Limits) { l.KeepEntries = 20 })
		p.net.set("c", false)
		p.until("the conflict is stored", p.conflict)
		first := p.leader().Status().Last
		p.until("the logs are compacted", func() bool {
			if err := p.leader().Propose([]byte("more")); err != nil {
				t.Fatal(err)
			}
			compacted := true
			for _, peer := range []string{"a", "b"} {
				row, err := p.members[peer].disk.Get(raftlog.TableLog, raftlog.LogKey(testGroupID, first))
				compacted = compacted && err == nil && row == nil
			}
			return compacted
		})
		var sent atomic.Int32
		for _, peer := range []string{"a", "b"} {
			node := p.members[peer].host.node
			carry := node.SendSnapshot
			node.SendSnapshot = func(peer string, group uint64, write func(io.Writer) error, done func(error)) {
				sent.Add(1)
				carry(peer, group, write, done)
			}
		}
		p.pass(20 * time.Second)
		p.keepsEntry()
		if n := sent.Load(); n == 0 || n > 10 {
			t.Errorf("%d snapshots in 20 s to a member that refuses them", n)
		}
		p.handOver()
		p.pass(5 * time.Second)
		p.keepsEntry()
		p.boot("c")
		p.open("c", nil)
		p.pass(5 * time.Second)
		p.keepsEntry()
		if p.members["c"].restored != 0 {
			t.Error("a snapshot was installed")
		}
		if err := p.members["c"].Close(); err != nil {
			t.Fatal(err)
		}
		if err := p.members["c"].host.Recover(testGroupID); err != nil || p.conflict() {
			t.Errorf("after a recovery the conflict is stored: %v; %v", p.conflict(), err)
		}
	})
}

// A member that lies about the log cannot keep another one from snapshots for long: a leader that has all that is
// committed ends the conflict.
func TestConflictEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newTestGroup(t, []string{"a", "b", "c"})
		p.propose(3, "a", "b", "c")
		if p.leader().peer == "c" {
			p.handOver()
		}
		p.pass(time.Second)
		s := p.members["c"].Status()
		lie := &raftpb.Message{
			Type: raftpb.MsgApp.Enum(), From: new(uint64(2)), To: new(uint64(3)), Term: new(s.Term + 1), Index: new(s.Commit), LogTerm: new(s.Term + 1), Commit: new(s.Commit),
		}
		if err := p.members["c"].host.Receive("b", testGroupID, marshal(t, lie)); err != nil {
			t.Fatal(err)
		}
		p.until("the conflict is stored", p.conflict)
		p.propose(1, "a", "b", "c")
		p.until("it is over", func() bool { return !p.conflict() })
	})
}
