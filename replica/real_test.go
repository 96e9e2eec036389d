package replica_test

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/store"
)

// testCluster is a few nodes with real stores in one process. Messages are delivered at once.
type testCluster struct {
	mu    sync.Mutex
	nodes map[string]*testNode
}

// testNode is a node. Its owner goroutine applies the deliveries, one row for each entry.
type testNode struct {
	host *replica.Host
	db   *store.DB
	end  func() error

	mu struct {
		sync.Mutex
		group   *replica.Group
		log     []string
		leading bool
		conf    replica.Configured
		failed  error
	}
}

var streetTables = []replica.TablePrefix{{Table: "world", Prefix: []byte("r1/")}}

func (s *testCluster) addNode(t testing.TB, peer, path string) *testNode {
	t.Helper()
	db, err := store.Open(store.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	n := &testNode{db: db}
	n.host, err = replica.NewHost(replica.Options{
		Storage: db, Self: peer,
		Send: func(to string, group uint64, message []byte) {
			if other := s.find(to); other != nil {
				_ = other.host.Receive(peer, group, message) // a network loses messages; raft sends again
			}
		},
		SendSnapshot: func(to string, group uint64, write func(io.Writer) error, done func(error)) {
			other := s.find(to)
			if other == nil {
				done(fmt.Errorf("no way to %s", to))
				return
			}
			r, w := io.Pipe()
			go func() { w.CloseWithError(write(w)) }()
			go func() { done(other.host.ReceiveSnapshot(context.Background(), peer, group, r)) }()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	storeEnd, hostEnd := make(chan error, 1), make(chan error, 1)
	go func() { storeEnd <- db.Run(context.Background()) }()
	go func() { hostEnd <- n.host.Run(ctx) }()
	n.end = sync.OnceValue(func() error {
		s.mu.Lock()
		delete(s.nodes, peer)
		s.mu.Unlock()
		cancel()
		if err := <-hostEnd; err != nil {
			return err
		}
		if err := db.Close(); err != nil {
			return err
		}
		return <-storeEnd
	})
	t.Cleanup(func() {
		if err := n.end(); err != nil {
			t.Error(err)
		}
	})
	s.mu.Lock()
	s.nodes[peer] = n
	s.mu.Unlock()
	return n
}

func (s *testCluster) find(peer string) *testNode {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nodes[peer]
}

// runOwner starts the owner of a group that was opened.
func (n *testNode) runOwner(t *testing.T, g *replica.Group, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	n.mu.group = g
	if err := n.load(); err != nil {
		t.Fatal(err)
	}
	go func() {
		for range g.Ready() {
			if n.drain(g) {
				return
			}
		}
	}()
}

func (n *testNode) load() error {
	n.mu.log = nil
	return n.db.Scan("world", []byte("r1/"), func(_, value []byte) error {
		n.mu.log = append(n.mu.log, string(value))
		return nil
	})
}

func (n *testNode) drain(g *replica.Group) (over bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, d := range g.Dequeue() {
		switch d := d.(type) {
		case replica.Committed:
			key := fmt.Appendf([]byte("r1/"), "%08d", len(n.mu.log))
			n.mu.log = append(n.mu.log, string(d.Entry))
			g.ReportApplied(d.Index, []kv.Write{{Table: "world", Key: key, Value: d.Entry}})
		case replica.Restored:
			n.mu.failed = n.load()
		case replica.Configured:
			n.mu.conf = d
		case replica.Leadership:
			n.mu.leading = d.Self
		case replica.Failed:
			n.mu.failed = d.Err
			return true
		}
	}
	return false
}

// await polls a condition every few milliseconds.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for !done() {
		select {
		case <-time.After(3 * time.Millisecond):
		case <-deadline:
			t.Fatalf("not in 20 s: %s", what)
		}
	}
}

func (n *testNode) has(entries int) func() bool {
	return func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return len(n.mu.log) >= entries
	}
}

// TestRealStores: a group grows from one node to three over real files, by snapshots through pipes, and continues when
// the first is gone.
func TestRealStores(t *testing.T) {
	s := &testCluster{nodes: make(map[string]*testNode)}
	dir := t.TempDir()
	a := s.addNode(t, "a", filepath.Join(dir, "a.db"))
	g, err := a.host.Open(t.Context(), replica.Founding{Group: 1, Members: []string{"a"}, Tables: streetTables})
	a.runOwner(t, g, err)
	leading := func(n *testNode) func() bool {
		return func() bool { n.mu.Lock(); defer n.mu.Unlock(); return n.mu.leading }
	}
	await(t, "a leads", leading(a))
	total := 0
	propose := func(n *testNode, count int) {
		for range count {
			await(t, "a proposal is taken", func() bool { return n.mu.group.Propose(fmt.Appendf(nil, "e%05d", total)) == nil })
			total++
		}
		await(t, "entries are committed", n.has(total))
	}
	propose(a, 2000) // more than the log keeps

	for _, peer := range []string{"b", "c"} {
		n := s.addNode(t, peer, filepath.Join(dir, peer+".db"))
		await(t, "learner is taken", func() bool { return a.mu.group.AddLearner(peer) == nil })
		var members []replica.Member
		var id uint64
		await(t, "learner is configured", func() bool {
			a.mu.Lock()
			defer a.mu.Unlock()
			members = a.mu.conf.Members
			return slices.ContainsFunc(members, func(m replica.Member) bool { id = m.ID; return m.Peer == peer })
		})
		g, err := n.host.Join(t.Context(), replica.JoinInfo{Group: 1, ID: id, Members: members, Tables: streetTables})
		n.runOwner(t, g, err)
		await(t, peer+" has caught up", n.has(total))
		await(t, peer+" is promoted", func() bool { return a.mu.group.Promote(peer) == nil })
		propose(a, 10)
		await(t, peer+" follows", n.has(total))
	}
	b, c := s.find("b"), s.find("c")
	if err := a.end(); err != nil {
		t.Fatal(err)
	}
	await(t, "another leads", func() bool { return leading(b)() || leading(c)() })
	if leading(b)() {
		propose(b, 50)
	} else {
		propose(c, 50)
	}
	await(t, "both have everything", func() bool { return b.has(total)() && c.has(total)() })
	for _, n := range []*testNode{b, c} {
		n.mu.Lock()
		for i, entry := range n.mu.log {
			if entry != fmt.Sprintf("e%05d", i) {
				t.Fatalf("entry %d is %q", i, entry)
			}
		}
		if n.mu.failed != nil {
			t.Fatal(n.mu.failed)
		}
		n.mu.Unlock()
	}
}

// A removed replica leaves nothing but its tombstone in a real file, even if its last rows are only in the journal.
// Remains of its log would be mistaken for the log of the replica that joins later.
func TestRemovedFromRealStore(t *testing.T) {
	s := &testCluster{nodes: make(map[string]*testNode)}
	a := s.addNode(t, "a", filepath.Join(t.TempDir(), "a.db"))
	g, err := a.host.Open(t.Context(), replica.Founding{Group: 1, Members: []string{"a"}, Tables: streetTables})
	a.runOwner(t, g, err)
	for i := range 50 {
		await(t, "a proposal is taken", func() bool { return g.Propose(fmt.Appendf(nil, "e%05d", i)) == nil })
	}
	await(t, "entries are committed", a.has(50))
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if err := a.host.Remove(1); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"raft_log", "raft_state"} {
		err := a.db.Scan(table, nil, func(key, _ []byte) error {
			if table == "raft_state" && key[len(key)-1] == 'x' {
				return nil
			}
			return fmt.Errorf("a row of %s stayed: %x", table, key)
		})
		if err != nil {
			t.Error(err)
		}
	}
	members := []replica.Member{{ID: 2, Peer: "b"}, {ID: 3, Peer: "a", Learner: true}}
	if g, err = a.host.Join(t.Context(), replica.JoinInfo{Group: 1, ID: 3, Members: members, Tables: streetTables}); err != nil {
		t.Fatal(err)
	}
	if g.AppliedIndex() != 0 {
		t.Errorf("the replica that joins has applied entries up to %d", g.AppliedIndex())
	}
}
