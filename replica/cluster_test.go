package replica

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"
)

// net wires hosts of one process: what one sends, the other receives at once.
type net struct {
	mu    sync.Mutex
	hosts map[string]*Host
	cut   map[string]bool                               // peers that neither send nor receive
	lose  func(from, to string, m *raftpb.Message) bool // if not nil, reports which messages are lost
}

func (n *net) sender(from string) func(string, uint64, []byte) {
	return func(to string, group uint64, message []byte) {
		n.mu.Lock()
		h := n.hosts[to]
		if n.cut[from] || n.cut[to] || n.lose != nil && n.lose(from, to, unmarshal(message)) {
			h = nil
		}
		n.mu.Unlock()
		if h != nil {
			_ = h.Receive(from, group, message) // a network loses messages; raft sends again
		}
	}
}

func unmarshal(message []byte) *raftpb.Message {
	m := new(raftpb.Message)
	if err := proto.Unmarshal(message, m); err != nil {
		panic(err)
	}
	return m
}

func (n *net) set(peer string, cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut[peer] = cut
}

// testOwner owns a replica in a test: it applies the deliveries and records them.
type testOwner struct {
	*Group
	peer    string
	host    running
	disk    *disk
	log     []string
	leading bool
	failed  error
}

func (k *testOwner) drain() {
	index := uint64(0)
	for _, d := range k.Dequeue() {
		switch d := d.(type) {
		case Committed:
			k.log = append(k.log, string(d.Entry))
			index = d.Index
		case Leadership:
			k.leading = d.Self
		case Failed:
			k.failed = d.Err
		}
	}
	if index > 0 {
		k.ReportApplied(index, nil)
	}
}

func cluster(t *testing.T, f Founding) (*net, []*testOwner) {
	n := &net{hosts: make(map[string]*Host), cut: make(map[string]bool)}
	var owners []*testOwner
	for _, peer := range f.Members {
		k := &testOwner{peer: peer, disk: newDisk()}
		k.host = launch(t, Options{Storage: k.disk, Self: peer, Send: n.sender(peer)})
		n.mu.Lock()
		n.hosts[peer] = k.host.Host
		n.mu.Unlock()
		k.Group = k.host.mustOpen(t, f)
		owners = append(owners, k)
	}
	return n, owners
}

// leader lets time pass until exactly one of the owners leads.
func leader(t *testing.T, owners []*testOwner) *testOwner {
	t.Helper()
	for range 100 {
		<-time.After(100 * time.Millisecond)
		synctest.Wait()
		var found []*testOwner
		for _, k := range owners {
			k.drain()
			if k.leading {
				found = append(found, k)
			}
		}
		if len(found) == 1 {
			return found[0]
		}
	}
	t.Fatal("no leader in 10 s")
	return nil
}

// TestThreeHosts covers groups of three. They elect, agree, survive their leader, and bring it up to date again.
func TestThreeHosts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := Founding{Group: 5, Members: []string{"a", "b", "c"}}
		n, owners := cluster(t, f)
		first := leader(t, owners)
		var want []string
		propose := func(k *testOwner, count int) {
			for range count {
				text := numbered("e", len(want))
				if err := k.Propose([]byte(text)); err != nil {
					t.Fatal(err)
				}
				want = append(want, text)
			}
			<-time.After(time.Second)
			synctest.Wait()
			for _, k := range owners {
				k.drain()
			}
		}
		propose(first, 100)
		for _, k := range owners {
			if !slices.Equal(k.log, want) {
				t.Fatalf("%s has %d of %d entries", k.peer, len(k.log), len(want))
			}
			if k != first && !errors.Is(k.Propose([]byte("x")), ErrNotLeader) {
				t.Fatal("a follower took a proposal")
			}
		}

		// The leader is cut off: it acknowledges nothing more, and another takes over.
		n.set(first.peer, true)
		if err := first.Propose([]byte("never")); err != nil {
			t.Fatal(err)
		}
		rest := slices.DeleteFunc(slices.Clone(owners), func(k *testOwner) bool { return k == first })
		second := leader(t, rest)
		propose(second, 50)
		if first.drain(); first.leading || len(first.log) != 100 {
			t.Fatalf("cut off, the old leader leads: %v, with %d entries", first.leading, len(first.log))
		}
		n.set(first.peer, false)
		<-time.After(5 * time.Second)
		leader(t, owners)
		for _, k := range owners {
			if !slices.Equal(k.log, want) {
				t.Fatalf("%s has %v", k.peer, k.log)
			}
		}

		// One restarts from its disk and catches up from the log.
		k := owners[2]
		if err := k.host.stop(); err != nil {
			t.Fatal(err)
		}
		propose(leader(t, owners[:2]), 20)
		k.host = launch(t, Options{Storage: k.disk, Self: k.peer, Send: n.sender(k.peer)})
		n.mu.Lock()
		n.hosts[k.peer] = k.host.Host
		n.mu.Unlock()
		k.Group = k.host.mustOpen(t, f)
		<-time.After(3 * time.Second)
		leader(t, owners)
		if !slices.Equal(k.log, want) {
			t.Fatalf("after its restart %s has %d of %d entries", k.peer, len(k.log), len(want))
		}
	})
}

// TestFullDiskHandsOver: a leader whose disk is full yields to another, and follows it when there is space again. The
// outcome of its last proposals is unknown: here the others received them before its own disk refused them, and keep
// them.
func TestFullDiskHandsOver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, owners := cluster(t, Founding{Group: 5, Members: []string{"a", "b", "c"}})
		first := leader(t, owners)
		first.disk.setRefuse(full)
		if err := first.Propose([]byte("doubt")); err != nil {
			t.Fatal(err)
		}
		rest := slices.DeleteFunc(slices.Clone(owners), func(k *testOwner) bool { return k == first })
		second := leader(t, rest)
		if err := second.Propose([]byte("edit")); err != nil {
			t.Fatal(err)
		}
		<-time.After(5 * time.Second)
		first.disk.setRefuse(nil)
		<-time.After(5 * time.Second)
		leader(t, owners)
		for _, k := range owners {
			if !slices.Equal(k.log, []string{"doubt", "edit"}) {
				t.Fatalf("%s has %v", k.peer, k.log)
			}
		}
	})
}

// TestAgreement: random messages are lost and random replicas crash with their memory. All replicas get the same
// deliveries in the same order. Hosts are stepped by hand, so that a crash can be anywhere.
func TestAgreement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := Founding{Group: 5, Members: []string{"a", "b", "c"}}
		type node struct {
			host  *Host
			disk  *disk
			group *Group
			log   []string
		}
		nodes := make(map[string]*node)
		var wire []packet
		boot := func(peer string) {
			n := nodes[peer]
			h, err := NewHost(Options{Storage: n.disk, Self: peer, Send: func(to string, _ uint64, message []byte) {
				wire = append(wire, packet{peer, to, message})
			}})
			if err != nil {
				t.Fatal(err)
			}
			n.host, n.log = h, n.log[:0]
			h.input.post(func() {
				h.open(f, func(g *Group, e error) { n.group, err = g, e })
			})
			pump(h)
			if err != nil {
				t.Fatal(err)
			}
			// Nothing is ever applied here: a restart delivers the log from the beginning.
		}
		for _, peer := range f.Members {
			nodes[peer] = &node{disk: newDisk()}
			boot(peer)
		}
		var agreed []string
		drain := func(n *node) {
			for _, d := range n.group.Dequeue() {
				switch d := d.(type) {
				case Committed:
					at := len(n.log)
					n.log = append(n.log, string(d.Entry))
					if at == len(agreed) {
						agreed = append(agreed, string(d.Entry))
					} else if agreed[at] != string(d.Entry) {
						t.Fatalf("entry %d is %q here, %q elsewhere", at, d.Entry, agreed[at])
					}
				case Failed:
					t.Fatal(d.Err)
				}
			}
		}
		ship := func(lose bool) {
			packets := wire
			wire = nil
			for _, p := range packets {
				if !lose {
					_ = nodes[p.to].host.Receive(p.from, 5, p.message) // refused ones count as lost
				}
			}
		}
		proposed := 0
		pick := func() *node { return nodes[rapid.SampledFrom(f.Members).Draw(t, "peer")] }
		ticks := func(n *node) {
			for range 5 {
				n.host.tick()
			}
			pump(n.host)
		}
		t.Repeat(map[string]func(*rapid.T){
			"tick": func(*rapid.T) { ticks(pick()) },
			"round": func(*rapid.T) {
				for _, peer := range f.Members {
					pump(nodes[peer].host)
				}
				ship(false)
			},
			"lose": func(*rapid.T) { ship(true) },
			"propose": func(*rapid.T) {
				for _, peer := range f.Members {
					proposed++
					if nodes[peer].group.Propose(fmt.Append(nil, peer, proposed)) == nil {
						break
					}
				}
			},
			"drain": func(*rapid.T) { drain(pick()) },
			"crash": func(*rapid.T) { boot(rapid.SampledFrom(f.Members).Draw(t, "peer")) },
		})
		// In the end the network heals.
		for round := 0; ; round++ {
			if round > 400 {
				t.Fatal("no agreement")
			}
			for _, peer := range f.Members {
				ticks(nodes[peer])
				ship(false)
			}
			for _, peer := range f.Members {
				pump(nodes[peer].host)
				drain(nodes[peer])
				ship(false)
			}
			a, b, c := nodes["a"].log, nodes["b"].log, nodes["c"].log
			if round > 20 && slices.Equal(a, b) && slices.Equal(b, c) && len(a) == len(agreed) {
				return
			}
		}
	})
}
