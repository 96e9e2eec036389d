package replica

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/replica/raftgroup"
	"github.com/voxelpopuli/voxeld/replica/raftlog"
)

// testGroup is a group whose members change: hosts in a bubble, connected by net, each with an owner that keeps the
// entries as rows of table "world".
type testGroup struct {
	t       *testing.T
	net     *net
	members map[string]*testMember
	change  []func(*raftgroup.Limits)
}

// testMember owns a replica: its state is the list of entries, one row each.
type testMember struct {
	*Group
	peer     string
	host     running
	disk     *disk
	log      []string
	leading  bool
	conf     Configured
	removed  bool
	restored int
	failed   error
}

const testGroupID = 5

var partyTables = []TablePrefix{{Table: "world", Prefix: raftlog.GroupPrefix(testGroupID)}}

func newTestGroup(t *testing.T, founders []string, change ...func(*raftgroup.Limits)) *testGroup {
	p := &testGroup{
		t: t, net: &net{hosts: make(map[string]*Host), cut: make(map[string]bool)}, members: make(map[string]*testMember), change: change,
	}
	for _, peer := range founders {
		p.boot(peer)
	}
	for _, peer := range founders {
		p.open(peer, founders)
	}
	return p
}

// boot starts, or restarts, the host of a peer.
func (p *testGroup) boot(peer string) *testMember {
	p.t.Helper()
	g := p.members[peer]
	if g == nil {
		g = &testMember{peer: peer, disk: newDisk()}
		p.members[peer] = g
	} else if err := g.host.stop(); err != nil {
		p.t.Fatal(err)
	}
	*g = testMember{peer: peer, disk: g.disk}
	g.host = launch(p.t, Options{
		Storage: g.disk, Self: peer, Send: p.net.sender(peer), SendSnapshot: p.net.snapshots(peer),
	}, p.change...)
	p.net.mu.Lock()
	p.net.hosts[peer] = g.host.Host
	p.net.mu.Unlock()
	return g
}

func (p *testGroup) open(peer string, founders []string) {
	p.t.Helper()
	g := p.members[peer]
	group, err := g.host.Open(context.Background(), Founding{Group: testGroupID, Members: founders, Tables: partyTables})
	if err != nil {
		p.t.Fatal(err)
	}
	g.Group, g.conf = group, group.Configuration()
	g.load(p.t)
}

// snapshots is the carrier: a goroutine for each snapshot.
func (n *net) snapshots(from string) func(string, uint64, func(io.Writer) error, func(error)) {
	return func(to string, group uint64, write func(io.Writer) error, done func(error)) {
		go func() {
			n.mu.Lock()
			h := n.hosts[to]
			if n.cut[from] || n.cut[to] {
				h = nil
			}
			n.mu.Unlock()
			var b bytes.Buffer
			err := write(&b)
			if err == nil && h == nil {
				err = errors.New("no way to " + to)
			}
			if err == nil {
				err = h.ReceiveSnapshot(context.Background(), from, group, &b)
			}
			done(err)
		}()
	}
}

func (g *testMember) load(t testing.TB) {
	t.Helper()
	g.log = nil
	if err := g.disk.Scan("world", raftlog.GroupPrefix(testGroupID), func(_, value []byte) error {
		g.log = append(g.log, string(value))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// worldRow returns the n-th entry as a row.
func worldRow(n int, entry []byte) kv.Write {
	key := append(raftlog.GroupPrefix(testGroupID), numbered("", n)...)
	return kv.Write{Table: "world", Key: key, Value: entry}
}

func (g *testMember) drain(t testing.TB) {
	t.Helper()
	if g.Group == nil {
		return
	}
	for _, d := range g.Dequeue() {
		switch d := d.(type) {
		case Committed:
			row := worldRow(len(g.log), d.Entry)
			g.log = append(g.log, string(d.Entry))
			g.ReportApplied(d.Index, []kv.Write{row})
		case Restored:
			g.restored++
			g.load(t)
		case Configured:
			g.conf = d
		case Removed:
			g.removed = true
		case Leadership:
			g.leading = d.Self
		case Failed:
			g.failed = d.Err
		}
	}
}

// pass lets time pass while the owners work.
func (p *testGroup) pass(d time.Duration) {
	p.t.Helper()
	for range int(d / (10 * time.Millisecond)) {
		<-time.After(10 * time.Millisecond)
		synctest.Wait()
		for _, g := range p.members {
			g.drain(p.t)
		}
	}
}

// until lets time pass until a condition is true, for a minute at most.
func (p *testGroup) until(what string, done func() bool) {
	p.t.Helper()
	for range 6000 {
		if done() {
			return
		}
		p.pass(10 * time.Millisecond)
	}
	p.t.Fatalf("not within a minute: %s", what)
}

// leader waits until one of the peers leads that are not cut off, and returns it.
func (p *testGroup) leader() *testMember {
	p.t.Helper()
	var found *testMember
	p.until("a leader", func() bool {
		found = nil
		leaders := 0
		for _, g := range p.members {
			p.net.mu.Lock()
			cut := p.net.cut[g.peer]
			p.net.mu.Unlock()
			if g.leading && !cut {
				found, leaders = g, leaders+1
			}
		}
		return leaders == 1
	})
	return found
}

// propose has entries committed, and waits until the given peers have applied them.
func (p *testGroup) propose(n int, peers ...string) {
	p.t.Helper()
	l := p.leader()
	want := len(l.log) + n
	for i := range n {
		for {
			err := l.Propose([]byte(numbered("e", want-n+i)))
			if err == nil {
				break
			}
			if !errors.Is(err, ErrOverloaded) {
				p.t.Fatal(err)
			}
			p.pass(10 * time.Millisecond)
		}
	}
	p.agree(want, peers...)
}

func (p *testGroup) agree(want int, peers ...string) {
	p.t.Helper()
	p.until("agreement", func() bool {
		return !slices.ContainsFunc(peers, func(peer string) bool { return len(p.members[peer].log) < want })
	})
	for _, peer := range peers {
		for i, entry := range p.members[peer].log {
			if entry != numbered("e", i) {
				p.t.Fatalf("%s has %q at place %d", peer, entry, i)
			}
		}
	}
}

// try repeats a change until it is accepted: right after an election or another change it may be refused for a while.
func (p *testGroup) try(what string, f func() error) {
	p.t.Helper()
	var err error
	p.until(what, func() bool { err = f(); return err == nil })
}

// join makes a peer a learner, and lets it join.
func (p *testGroup) join(peer string) *testMember {
	p.t.Helper()
	p.try("add learner", func() error { return p.leader().AddLearner(peer) })
	id := uint64(0)
	p.until("learner configured", func() bool {
		for _, m := range p.leader().conf.Members {
			if m.Peer == peer {
				id = m.ID
			}
		}
		return id != 0
	})
	g := p.members[peer]
	if g == nil {
		g = p.boot(peer)
	}
	p.joinAs(g, id, p.leader().conf.Members)
	return g
}

func (p *testGroup) joinAs(g *testMember, id uint64, members []Member) {
	p.t.Helper()
	group, err := g.host.Join(context.Background(), JoinInfo{Group: testGroupID, ID: id, Members: members, Tables: partyTables})
	if err != nil {
		p.t.Fatal(err)
	}
	*g = testMember{peer: g.peer, disk: g.disk, host: g.host, Group: group, conf: group.Configuration()}
	g.load(p.t)
}

// promote waits until a learner has caught up, and gives it its vote.
func (p *testGroup) promote(peer string) {
	p.t.Helper()
	p.try("promote", func() error { return p.leader().Promote(peer) })
	p.until("promoted", func() bool {
		return slices.ContainsFunc(p.members[peer].conf.Members, func(m Member) bool { return m.Peer == peer && !m.Learner })
	})
}

// remove removes a member and waits until the leader has the new configuration.
func (p *testGroup) remove(peer string) {
	p.t.Helper()
	p.try("remove", func() error { return p.leader().Remove(peer) })
	p.until("removed", func() bool {
		return !slices.ContainsFunc(p.leader().conf.Members, func(m Member) bool { return m.Peer == peer })
	})
}

// losesCommit drops the messages that would inform a peer that an entry is committed.
func losesCommit(peer string, index uint64) func(from, to string, m *raftpb.Message) bool {
	return func(_, to string, m *raftpb.Message) bool { return to == peer && m.GetCommit() >= index }
}
