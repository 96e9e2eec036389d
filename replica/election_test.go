package replica

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/voxelpopuli/voxeld/internal/kv"
)

// slow is a disk with slow commits.
type slow struct {
	*disk
	fsync time.Duration
}

func (s slow) Commit(writes []kv.Write) error {
	<-time.After(s.fsync)
	return s.disk.Commit(writes)
}

// delayed delivers messages in order, each a little later.
func (n *net) delayed(from string, delay time.Duration) func(string, uint64, []byte) {
	send := n.sender(from)
	return func(to string, group uint64, message []byte) {
		time.AfterFunc(delay, func() { send(to, group, message) })
	}
}

// TestDeadLeaderIsReplaced measures, in virtual time, how long a group of three accepts no entries after its leader has
// died at a random moment: 10 ms for a commit, 1 ms for a message.
func TestDeadLeaderIsReplaced(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 50
	}
	var gaps []time.Duration
	for range rounds {
		bubble(t, func(t *testing.T) {
			n := &net{hosts: make(map[string]*Host), cut: make(map[string]bool)}
			f := Founding{Group: 5, Members: []string{"a", "b", "c"}}
			var owners []*testOwner
			for _, peer := range f.Members {
				<-time.After(rand.N(100 * time.Millisecond)) // their clocks tick apart
				k := &testOwner{peer: peer, disk: newDisk()}
				k.host = launch(t, Options{
					Storage: slow{k.disk, 10 * time.Millisecond}, Self: peer, Send: n.delayed(peer, time.Millisecond),
				})
				n.mu.Lock()
				n.hosts[peer] = k.host.Host
				n.mu.Unlock()
				k.Group = k.host.mustOpen(t, f)
				owners = append(owners, k)
			}
			first := leader(t, owners)
			<-time.After(time.Second + rand.N(time.Second))
			died := time.Now()
			n.set(first.peer, true)
			rest := slices.DeleteFunc(slices.Clone(owners), func(k *testOwner) bool { return k == first })
			for proposed := false; ; <-time.After(2 * time.Millisecond) {
				synctest.Wait()
				for _, k := range rest {
					k.drain()
					if k.leading && !proposed {
						proposed = k.Propose([]byte("edit")) == nil
					}
				}
				if slices.ContainsFunc(rest, func(k *testOwner) bool { return len(k.log) > 0 }) {
					break
				}
				if time.Since(died) > time.Minute {
					t.Fatal("no leader")
				}
			}
			gaps = append(gaps, time.Since(died))
		})
	}
	slices.Sort(gaps)
	at := func(share float64) time.Duration { return gaps[int(share*float64(len(gaps)-1))] }
	t.Logf("%d leaders died: entries again after p50 %v, p90 %v, p99 %v, at most %v", rounds, at(.5), at(.9), at(.99), at(1))
	if at(.5) > 1500*time.Millisecond || at(.99) > 3*time.Second {
		t.Error("too slow")
	}
}

// TestTransfer: leadership moves within a few fsyncs, and no entry is lost or acknowledged twice.
func TestTransfer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newTestGroup(t, []string{"a", "b", "c"})
		p.propose(5, "a", "b", "c")
		p.pass(time.Second)
		for _, to := range []string{"a", "b", "c", "a"} {
			l := p.leader()
			if l.peer == to {
				continue
			}
			began := time.Now()
			if err := l.Transfer(to); err != nil {
				t.Fatal(err)
			}
			p.until(to+" leads", func() bool { return p.members[to].leading && !l.leading })
			if d := time.Since(began); d > 300*time.Millisecond {
				t.Fatalf("the transfer took %v", d)
			}
			p.propose(5, "a", "b", "c")
			p.pass(time.Second)
		}

		// To a member that does not answer: the leader continues after the election timeout, and accepts what waited.
		l := p.leader()
		to := map[string]string{"a": "b", "b": "c", "c": "a"}[l.peer]
		p.net.set(to, true)
		if err := l.Transfer(to); err != nil {
			t.Fatal(err)
		}
		p.propose(5, l.peer)
		if !l.leading {
			t.Fatal("leadership was lost")
		}
	})
}

// lazyDisk is a disk with commits of random duration.
type lazyDisk struct {
	*disk
	longest time.Duration
}

func (d lazyDisk) Commit(writes []kv.Write) error {
	<-time.After(rand.N(d.longest))
	return d.disk.Commit(writes)
}

// TestWaking: a group that was closed on all its members works again within a few fsyncs, when one of them campaigns
// and the others are opened by the first message. This is repeated, each time with another member.
func TestWaking(t *testing.T) {
	const fsync, rounds = 5 * time.Millisecond, 100
	var elected, committed []time.Duration
	bubble(t, func(t *testing.T) {
		founders := []string{"a", "b", "c"}
		p := newTestGroup(t, founders)
		p.propose(5, founders...)
		p.pass(time.Second)
		sleep := func() {
			for _, g := range p.members {
				g.drain(t)
				if err := g.Close(); err != nil {
					t.Fatal(err)
				}
				g.Group, g.leading = nil, false
			}
			synctest.Wait()
			for _, g := range p.members {
				if n := len(g.host.groups.replicas) + len(g.host.groups.ticking); n != 0 {
					t.Fatal("a closed group costs something")
				}
			}
		}
		sleep()
		var mu sync.Mutex // guards the members' Group
		for from, g := range p.members {
			g.host.node.Storage = lazyDisk{g.disk, 2 * fsync}
			g.host.node.Send = func(to string, group uint64, message []byte) {
				time.AfterFunc(time.Millisecond, func() { p.deliverOrOpen(&mu, from, to, group, message) })
			}
		}
		for round := range rounds {
			began := time.Now()
			g := p.members[founders[round%3]]
			mu.Lock()
			p.open(g.peer, nil)
			mu.Unlock()
			g.Campaign()
			if g = p.awaitLeader(&mu); g.Propose([]byte("edit")) != nil {
				t.Fatal("the leader takes no entry")
			}
			elected = append(elected, time.Since(began))
			for want := len(g.log) + 1; len(g.log) < want; g.drain(t) {
				<-g.Ready()
			}
			committed = append(committed, time.Since(began))
			g.Campaign() // it already leads
			<-time.After(rand.N(2 * time.Second))
			synctest.Wait()
			mu.Lock()
			sleep()
			mu.Unlock()
			<-time.After(5 * time.Millisecond) // otherwise the last leader's messages would still count for the members that wake
		}
	})
	slices.Sort(elected)
	slices.Sort(committed)
	t.Logf("with up to %v for a commit and 1 ms for a message: elected after p50 %v, at most %v; committed after p50 %v, at most %v",
		2*fsync, elected[rounds/2], elected[rounds-1], committed[rounds/2], committed[rounds-1])
	if d := committed[rounds-1]; d > 150*time.Millisecond {
		t.Errorf("waking took %v", d)
	}
}

// awaitLeader waits until any of them leads.
func (p *testGroup) awaitLeader(mu *sync.Mutex) *testMember {
	for {
		<-time.After(time.Millisecond / 2)
		synctest.Wait()
		mu.Lock()
		for _, g := range p.members {
			if g.drain(p.t); g.leading {
				mu.Unlock()
				return g
			}
		}
		mu.Unlock()
	}
}

// deliverOrOpen delivers a message. If the group is not open there, the carrier asks its owner to open it, and delivers
// again.
func (p *testGroup) deliverOrOpen(mu *sync.Mutex, from, to string, group uint64, message []byte) {
	other := p.members[to]
	if !errors.Is(other.host.Receive(from, group, message), ErrNotOpen) {
		return
	}
	if unmarshal(message).GetType() != raftpb.MsgPreVote {
		return // only an election wakes
	}
	mu.Lock()
	defer mu.Unlock()
	opened, err := other.host.Open(context.Background(), Founding{Group: testGroupID, Tables: partyTables})
	switch {
	case err == nil:
		*other = testMember{peer: to, disk: other.disk, host: other.host, Group: opened}
		other.load(p.t)
	case !errors.Is(err, ErrOpen):
		p.t.Error(err)
	}
	if err := other.host.Receive(from, group, message); err != nil {
		p.t.Error(err)
	}
}

func TestElectionOptions(t *testing.T) {
	for _, o := range []Options{{ElectionTicks: 2}, {ElectionTicks: -1}, {TickEvery: -1}} {
		o.Storage, o.Self = newDisk(), "me"
		if _, err := NewHost(o); err == nil {
			t.Errorf("took %+v", o)
		}
	}
}

func TestStatus(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newTestGroup(t, []string{"a", "b", "c"})
		p.propose(5, "a", "b", "c")
		p.join("d")
		p.pass(3 * time.Second)
		l := p.leader()
		for peer, g := range p.members {
			s := g.Status()
			if s.Leader != l.peer || s.Self != (g == l) || s.Term != l.Status().Term || s.Applied != s.Commit || s.Commit != s.Last || len(s.Members) != 4 {
				t.Fatalf("%s: %+v", peer, s)
			}
			for i, m := range s.Members {
				want := Progress{Member: Member{ID: uint64(i) + 1, Peer: string(rune('a' + i)), Learner: i == 3}}
				if g == l {
					want.Match, want.Active = s.Last, true
				}
				if m != want {
					t.Errorf("%s reports %+v, expected %+v", peer, m, want)
				}
			}
		}
		p.net.set("d", true)
		p.pass(3 * time.Second)
		if m := l.Status().Members[3]; m.Active {
			t.Fatalf("cut off: %+v", m)
		}
	})
}
