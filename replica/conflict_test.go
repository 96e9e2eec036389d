package replica

import (
	"maps"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"
)

// A disk is put back, and nobody knows: the member and another one elect a leader without an entry that was acknowledged, and go on. The
// third member has that entry. It is not made to forget it, and does not help that leader to commit others.
func TestCommittedEntriesStay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newTestGroup(t, []string{"a", "b", "c"})
		p.propose(3, "a", "b", "c")
		p.pass(time.Second)
		old := newDisk()
		p.members["a"].disk.mu.Lock()
		for table, rows := range p.members["a"].disk.tables {
			old.tables[table] = maps.Clone(rows)
		}
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
			term := p.leader().Status().Term
			p.try("transfer", func() error {
				if p.leader().peer == "a" {
					return p.leader().Transfer("b")
				}
				return p.leader().Transfer("a")
			})
			p.until("another term", func() bool { return p.leader().Status().Term > term })
		}
		l := p.leader()
		if err := l.Propose([]byte("instead")); err != nil {
			t.Fatal(err)
		}
		p.until("it is applied", func() bool { return len(p.members["b"].log) == 4 })

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
		c := p.members["c"]
		if c.failed != nil || len(c.log) != 4 || c.log[3] != numbered("e", 3) {
			t.Errorf("the member with the acknowledged entry: %v, %v", c.log, c.failed)
		}
		for _, m := range p.leader().Status().Members {
			if m.Peer == "c" && m.Match != 0 {
				t.Errorf("it acknowledges entry %d of a leader without that entry", m.Match)
			}
		}
		if value(t, c.host.metrics.rejected) == 0 {
			t.Error("no message of that leader was refused")
		}
	})
}
