package integrity

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// disk is the storage of a node, in memory. It can be copied and put back, and it can fail.
type disk struct {
	kv.Tables
	full bool
}

var (
	errFull = errors.New("the disk is full")
	errDown = errors.New("no answer")
)

func (d *disk) Commit(writes []kv.Write) error {
	if d.full {
		return errFull
	}
	return d.Tables.Commit(writes)
}

// node is a node with a keeper, which reaches the others by name.
type node struct {
	*Incarnations
	name       string
	disk       *disk
	held       map[uint64]uint64
	promised   atomic.Uint64
	others     map[string]*node
	groupPeers []string // members of groups on its disk
	open       []string // members of groups that are open, unless it is hibernating
	hibernates atomic.Bool
	down       atomic.Bool
}

func newNode(t *testing.T, name string, others map[string]*node) *node {
	n := &node{name: name, disk: &disk{Tables: make(kv.Tables)}, held: map[uint64]uint64{1: 11, 2: 12}, others: others}
	n.start(t)
	others[name] = n
	return n
}

// start runs the node with what is on its disk.
func (n *node) start(t *testing.T) {
	t.Helper()
	k, err := OpenIncarnations(IncarnationsOptions{
		Storage: n.disk, Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
		Sign: func(text []byte) ([]byte, error) {
			return append([]byte(n.name+" signs "), text[:min(len(text), 64)]...), nil
		},
		Held:       func() (map[uint64]uint64, error) { return n.held, nil },
		GroupPeers: func() ([]string, error) { return n.groupPeers, nil }, OpenGroupPeers: func() []string {
			if n.hibernates.Load() {
				return nil
			}
			return n.open
		},
		Promised: func() uint64 { return n.promised.Load() },
		Ask: func(ctx context.Context, peer string, question []byte) ([]byte, error) {
			if n.others[peer].down.Load() {
				return nil, errDown
			}
			return n.others[peer].Answer(ctx, n.name, question)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	n.Incarnations = k
}

func (n *node) copyDisk() *disk { return &disk{Tables: n.disk.Clone()} }

func (n *node) meets(t *testing.T, other *node) {
	t.Helper()
	if err := n.Exchange(t.Context(), other.name); err != nil {
		t.Errorf("%s meets %s: %v", n.name, other.name, err)
	}
}

// A node that is started with an old copy of its disk abandons what it has, durably and before the others accept it
// again. Those who remember something of the same time later do not make it abandon what it has got since.
func TestOldCopyIsAbandoned(t *testing.T) {
	world := make(map[string]*node)
	a, b, c := newNode(t, "a", world), newNode(t, "b", world), newNode(t, "c", world)
	a.meets(t, b)
	old := a.copyDisk()
	a.start(t)
	a.meets(t, b)
	a.start(t)
	a.meets(t, c)

	a.disk = old
	a.start(t)
	accepted := false
	a.OnOutdated(func(_ context.Context, replicas map[uint64]uint64) error {
		if !maps.Equal(replicas, a.held) || !maps.Equal(a.Outdated(), a.held) {
			t.Errorf("abandoned: %v, marked: %v; want %v", replicas, a.Outdated(), a.held)
		}
		_, accepted = b.mu.shown["a"]
		return nil
	})
	a.meets(t, b)
	if len(a.Outdated()) == 0 || accepted {
		t.Fatalf("marked: %v; accepted before they were abandoned: %v", a.Outdated(), accepted)
	}
	if !a.Unlisted() {
		t.Error("it does not ask which of its replicas the copy lacks")
	}
	created := func() error { return nil }
	if err := a.Create(3, 13, created); !errors.Is(err, ErrUnlisted) {
		t.Errorf("replica 13 is made while it is not known which are lost: %v", err)
	}
	if err := a.Lost(map[uint64]uint64{3: 13}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []uint64{12, 13} {
		if err := errors.Join(a.Create(3, id, created), a.Create(2, id-1, created)); !errors.Is(err, ErrForgotten) {
			t.Errorf("a replica is made again: %v", err)
		}
	}
	if err := errors.Join(a.Create(1, 12, created), a.Create(2, 13, created), a.Create(3, 14, created), a.Create(4, 1, created)); err != nil {
		t.Errorf("no new replicas are made: %v", err)
	}
	a.start(t)
	if want := map[uint64]uint64{1: 11, 2: 12}; !maps.Equal(a.Outdated(), want) || !a.Unlisted() {
		t.Errorf("after a restart %v are marked, want %v; others are to be listed: %v", a.Outdated(), want, a.Unlisted())
	}
	for group := range a.held {
		if err := a.Replaced(group); err != nil {
			t.Fatal(err)
		}
	}
	a.meets(t, c) // it remembers what was lost, too
	if len(a.Outdated()) != 0 {
		t.Errorf("replicas that were made since are abandoned: %v", a.Outdated())
	}
}

// A snapshot of the disk beneath a running node is noticed once the node has announced a promise that it made after it.
func TestPromisesAreCountedFirst(t *testing.T) {
	world := make(map[string]*node)
	a, b, c := newNode(t, "a", world), newNode(t, "b", world), newNode(t, "c", world)
	a.meets(t, b)
	snapshot := a.copyDisk()
	if counted, err := a.Count(); counted || err != nil {
		t.Errorf("an idle node counts: %v, %v", counted, err)
	}
	a.promised.Add(1)
	a.disk.full = true
	before := a.Show()
	if counted, err := a.Count(); counted || !errors.Is(err, errFull) {
		t.Errorf("count on a full disk: %v, %v", counted, err)
	}
	if now := a.Show(); now.Running().Count != before.Running().Count {
		t.Error("it shows a count that is not on its disk: after a crash it would be refused")
	}
	a.disk.full = false
	if counted, err := a.Count(); !counted || err != nil {
		t.Fatalf("count: %v, %v", counted, err)
	}
	if last, err := LastPromised(a.disk); err != nil || time.Since(last) > time.Minute {
		t.Errorf("it has promised something just now, and has stored %v, %v", last, err)
	}
	a.meets(t, b)
	a.meets(t, c)
	a.start(t) // honest: its disk has all that it has shown
	a.meets(t, c)
	if len(a.Outdated()) != 0 {
		t.Fatalf("an honest node abandons %v", a.Outdated())
	}
	a.disk = snapshot
	a.start(t)
	a.meets(t, b)
	if !maps.Equal(a.Outdated(), a.held) {
		t.Errorf("marked: %v, want %v", a.Outdated(), a.held)
	}
}

// A replica that is being made while it turns out that the storage was put back is abandoned, too.
func TestReplicaMadeMeanwhileIsAbandoned(t *testing.T) {
	world := make(map[string]*node)
	a, b := newNode(t, "a", world), newNode(t, "b", world)
	old := a.copyDisk()
	a.start(t)
	a.meets(t, b)
	a.disk = old
	a.start(t)
	listed, met := make(chan struct{}), make(chan struct{})
	held := a.Held
	a.Held = func() (map[uint64]uint64, error) { close(listed); return held() }
	err := a.Create(3, 13, func() error {
		go func() {
			defer close(met)
			a.meets(t, b)
		}()
		select {
		case <-listed:
			t.Error("its replicas are listed while one is being made")
		case <-time.After(50 * time.Millisecond): // enough to notice the bug, nearly always
		}
		a.held = map[uint64]uint64{3: 13}
		return nil
	})
	<-met
	if err != nil || a.Outdated()[3] != 13 {
		t.Errorf("%v, abandoned: %v", err, a.Outdated())
	}
}

// The node that notices that another one was put back takes nothing from the stream at which it noticed: an abandoned
// replica may have written to it.
func TestStreamOfAnAbandonedReplica(t *testing.T) {
	world := make(map[string]*node)
	a, b := newNode(t, "a", world), newNode(t, "b", world)
	old := a.copyDisk()
	a.start(t)
	a.meets(t, b)
	a.disk = old
	a.start(t)
	if err := b.Exchange(t.Context(), "a"); !errors.Is(err, errAbandoned) || len(a.Outdated()) == 0 {
		t.Errorf("%v, abandoned: %v", err, a.Outdated())
	}
	b.meets(t, a) // for the next stream
}

// Only a refusal with the node's own signature makes it abandon anything.
func TestForgedRefusal(t *testing.T) {
	world := make(map[string]*node)
	a, b := newNode(t, "a", world), newNode(t, "b", world)
	a.meets(t, b)
	forged := b.Show()
	lie := forged.Running()
	lie.Count, lie.Signature = 99, bytes.Repeat([]byte{1}, 64)
	forged.Remembered = &lie
	if _, err := a.Receive(t.Context(), "b", forged); !errors.Is(err, errNotSigned) || len(a.Outdated()) != 0 {
		t.Errorf("%v, %v are abandoned", err, a.Outdated())
	}
}

// All nodes of a world are put back together, to copies made while all were stopped: nobody remembers anything newer.
func TestWorldPutBackTogether(t *testing.T) {
	world := make(map[string]*node)
	a, b := newNode(t, "a", world), newNode(t, "b", world)
	a.meets(t, b)
	olda, oldb := a.copyDisk(), b.copyDisk()
	a.start(t)
	b.start(t)
	b.meets(t, a)
	a.disk, b.disk = olda, oldb
	a.start(t)
	b.start(t)
	a.meets(t, b)
	if len(a.Outdated())+len(b.Outdated()) != 0 {
		t.Errorf("abandoned: %v, %v", a.Outdated(), b.Outdated())
	}
}

// A member of a group that has never sent this node a raft message remembers it all the same: it may be the only one
// that is left when the node's data is put back.
func TestMembersRememberWithoutRaftMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world := make(map[string]*node)
		a, b, c := newNode(t, "a", world), newNode(t, "b", world), newNode(t, "c", world)
		running := func() nodemsg.Incarnation {
			a.mu.Lock()
			defer a.mu.Unlock()
			return a.mu.own.running()
		}
		remember := func(what string, all ...*node) {
			t.Helper()
			for _, other := range all {
				other.mu.Lock()
				seen := other.mu.seen["a"].Incarnation
				other.mu.Unlock()
				if seen != running() {
					t.Errorf("%s does not remember %s", other.name, what)
				}
			}
		}
		a.groupPeers = []string{"b"}
		a.start(t)
		a.Greet(t.Context())
		remember("the start", b)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		a.open = []string{"c"}
		c.down.Store(true)
		go a.Run(ctx) //nolint:errcheck // always nil
		time.Sleep(15 * time.Second)
		synctest.Wait()
		c.down.Store(false)
		time.Sleep(10 * time.Second) // it is asked again, though nothing was promised
		synctest.Wait()
		remember("the start", c)
		a.promised.Add(1)
		a.hibernates.Store(true)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		remember("the promise", b, c)
	})
}

// A flood of strangers does not make a node forget those whose promises it relies on.
func TestStrangersAreForgottenFirst(t *testing.T) {
	world := make(map[string]*node)
	a, b := newNode(t, "a", world), newNode(t, "b", world)
	b.groupPeers = []string{"a"}
	b.start(t)
	b.meets(t, a)
	for i := range 2 * maxSeen {
		if _, err := b.Receive(t.Context(), fmt.Sprint("stranger", i), a.Show()); err != nil {
			t.Fatal(err)
		}
	}
	if _, known := b.mu.seen["a"]; !known || len(b.mu.seen) > maxSeen {
		t.Errorf("a is remembered: %v, among %d", known, len(b.mu.seen))
	}
}

// A copy of a node's data directory is started while the node runs. The node and another one notice it; the restart of
// a node, and data that was put back, are not taken for that.
func TestCopyRunsBesideTheOriginal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world := make(map[string]*node)
		a, b := newNode(t, "a", world), newNode(t, "b", world)
		nobody := func(when string) {
			t.Helper()
			if own, others := a.Copied(); own || len(others) > 0 {
				t.Errorf("%s: a is taken for a copy: %t, of others: %v", when, own, others)
			}
			if own, others := b.Copied(); own || len(others) > 0 {
				t.Errorf("%s: b is taken for a copy: %t, of others: %v", when, own, others)
			}
		}
		a.meets(t, b)
		old := a.copyDisk()
		a.start(t)
		a.meets(t, b)
		nobody("after a restart")
		a.disk = old
		a.start(t)
		a.meets(t, b)
		a.meets(t, b)
		nobody("after an old copy was put back")

		twin := &node{name: "a", disk: a.copyDisk(), held: maps.Clone(a.held), others: world}
		twin.start(t)
		twin.meets(t, b)
		nobody("after another start")
		time.Sleep(exchangeTime + time.Second)
		a.meets(t, b)
		if own, _ := a.Copied(); !own {
			t.Error("the original does not notice its copy")
		}
		if _, others := b.Copied(); len(others) != 1 || others[0] != "a" {
			t.Errorf("the other node takes %v for copied", others)
		}
		a.promised.Add(1)
		if _, err := a.Count(); err != nil {
			t.Fatal(err)
		}
		a.meets(t, b)
		twin.meets(t, b)
		if own, _ := twin.Copied(); !own {
			t.Error("the copy does not notice the original")
		}
		time.Sleep(copiedFor + time.Second)
		nobody("long after the copy was stopped")
	})
}

// An exchange that was under way when a node was restarted arrives after those of its next run. It is no copy of the
// node.
func TestLateExchangeIsNoCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world := make(map[string]*node)
		a, b := newNode(t, "a", world), newNode(t, "b", world)
		a.meets(t, b)
		late := a.Show()
		a.start(t)
		a.meets(t, b)
		for _, test := range []struct {
			after time.Duration
			want  int
		}{{exchangeTime, 0}, {time.Second, 1}} {
			time.Sleep(test.after)
			if _, err := b.Receive(t.Context(), "a", late); err != nil {
				t.Fatal(err)
			}
			if _, others := b.Copied(); len(others) != test.want {
				t.Errorf("%v later: the other node takes %v for copied", test.after, others)
			}
		}
	})
}
