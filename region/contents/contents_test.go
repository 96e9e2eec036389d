package contents

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// node is one of the nodes of a test.
type node struct {
	*Store
	disk   *kv.Memory
	wanted []Hash
	known  []string
	asked  atomic.Int32 // questions to others
}

// silence is how long a node that is down is waited for.
const silence = 15 * time.Second

// nodes are connected by function calls. A nil node does not answer.
type nodes map[string]*node

func (all nodes) open(t *testing.T, name string, disk *kv.Memory, known ...string) *node {
	t.Helper()
	n := &node{disk: disk, known: known}
	s, err := Open(Options{
		Self: name, Storage: disk, Logger: slog.New(slog.DiscardHandler), Known: func() []string { return n.known }, Wanted: func() []Hash { return n.wanted },
		Fetch: func(_ context.Context, peer string, f nodemsg.Fetch) (nodemsg.Fetched, error) {
			n.asked.Add(1)
			if strings.HasPrefix(peer, "down") {
				time.Sleep(silence) // in a bubble of synctest
			}
			of := all[peer]
			if of == nil {
				return nodemsg.Fetched{}, errors.New("silent")
			}
			got := of.Serve(*f.Content)
			if got.Error != "" {
				return got, errors.New(got.Error)
			}
			return got, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	n.Store, all[name] = s, n
	return n
}

func (n *node) has(t *testing.T, hash Hash, want []byte) {
	t.Helper()
	if got, err := n.Get(hash); err != nil || !bytes.Equal(got, want) || !n.Has(hash) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

var content = bytes.Repeat([]byte("a mod "), 1000)

// What the policy names is fetched from a node that has it, past those that have not or that send something else, and is
// there after a restart.
func TestFetch(t *testing.T) {
	all := make(nodes)
	a, liar := all.open(t, "a", new(kv.Memory)), all.open(t, "liar", new(kv.Memory))
	all.open(t, "empty", new(kv.Memory))
	hash, err := a.Put(content)
	if err != nil {
		t.Fatal(err)
	}
	other, err := liar.Put([]byte("something else"))
	if err != nil {
		t.Fatal(err)
	}
	row, err := liar.disk.Get(Table, other[:])
	if err != nil {
		t.Fatal(err)
	}
	if err := liar.put(hash, row); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	b := all.open(t, "b", new(kv.Memory), "b", "silent", "empty", "liar")
	b.step(t.Context(), now)
	if b.asked.Load() != 0 {
		t.Error("a node asks for what nobody wants")
	}
	b.wanted = []Hash{hash}
	b.step(t.Context(), now)
	if _, err := b.Get(hash); !errors.Is(err, ErrMissing) || b.Has(hash) || b.asked.Load() != 3 {
		t.Errorf("nobody has it, and it is there after %d questions: %v", b.asked.Load(), err)
	}
	b.known = append(b.known, "a")
	b.step(t.Context(), now.Add(retry-1))
	if b.asked.Load() != 3 {
		t.Error("a node asks again at once")
	}
	b.step(t.Context(), now.Add(retry))
	b.has(t, hash, content)
	again := all.open(t, "b", b.disk)
	again.wanted = b.wanted
	again.step(t.Context(), now)
	again.has(t, hash, content)
}

// What the policy no longer names is deleted after a while. What it is about to name is kept for as long.
func TestForget(t *testing.T) {
	n := make(nodes).open(t, "a", new(kv.Memory))
	hash, err := n.Put(content)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	n.step(t.Context(), now)
	n.step(t.Context(), now.Add(keepFor-1))
	n.has(t, hash, content)
	n.wanted = []Hash{hash}
	n.step(t.Context(), now.Add(keepFor))
	n.wanted = nil
	n.step(t.Context(), now.Add(keepFor+time.Minute))
	n.step(t.Context(), now.Add(2*keepFor))
	n.has(t, hash, content)
	n.step(t.Context(), now.Add(2*keepFor+time.Minute))
	if _, err := n.Get(hash); !errors.Is(err, ErrMissing) || n.Has(hash) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestLargeContent(t *testing.T) {
	n := make(nodes).open(t, "a", new(kv.Memory))
	hash, err := n.Put(make([]byte, nodemsg.MaxContent+1))
	if err == nil || n.Has(hash) {
		t.Error("a content that is too large is kept")
	}
}

func TestSound(t *testing.T) {
	n := make(nodes).open(t, "a", new(kv.Memory))
	hash, err := n.Put(content)
	if err != nil {
		t.Fatal(err)
	}
	row, err := n.disk.Get(Table, hash[:])
	if err != nil || !Sound(hash[:], row) || Sound(hash[:5], row) || Sound(hash[:], row[1:]) || Sound(make([]byte, 32), row) {
		t.Errorf("sound is wrong, %v", err)
	}
}

// The last of many nodes has it, and the others are down: each takes as long to say nothing.
func TestManyNodesAreDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := make(nodes)
		a, b := all.open(t, "a", new(kv.Memory)), all.open(t, "b", new(kv.Memory))
		hash, err := a.Put(content)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 10 * askedAtOnce {
			b.known = append(b.known, "down"+strconv.Itoa(i))
		}
		b.known, b.wanted = append(b.known, "a"), []Hash{hash}
		start := time.Now()
		b.step(t.Context(), start)
		b.has(t, hash, content)
		if took := time.Since(start); took > 10*silence {
			t.Errorf("it took %v", took)
		}
	})
}

// What cannot be deleted is still there, and is deleted later.
func TestForgetFails(t *testing.T) {
	disk := &full{Memory: new(kv.Memory)}
	n := make(nodes).open(t, "a", disk.Memory)
	n.Storage = disk
	hash, err := n.Put(content)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	n.step(t.Context(), now)
	disk.err = errors.New("the disk is full")
	n.step(t.Context(), now.Add(keepFor))
	n.has(t, hash, content)
	disk.err = nil
	n.step(t.Context(), now.Add(keepFor+time.Second))
	if _, err := n.Get(hash); !errors.Is(err, ErrMissing) || n.Has(hash) {
		t.Errorf("it is still there: %v", err)
	}
}

// full is a disk that may refuse writes.
type full struct {
	*kv.Memory
	err error
}

func (f *full) Commit(writes []kv.Write) error {
	if f.err != nil {
		return f.err
	}
	return f.Memory.Commit(writes)
}

// What is damaged on the disk is fetched again once somebody needs it.
func TestDamagedContentIsFetchedAgain(t *testing.T) {
	for name, row := range map[string]kv.Write{"damaged": {Value: []byte("x")}, "gone": {}} {
		all := make(nodes)
		a, b := all.open(t, "a", new(kv.Memory)), all.open(t, "b", new(kv.Memory), "a")
		hash, err := a.Put(content)
		if err != nil {
			t.Fatal(err)
		}
		b.wanted = []Hash{hash}
		now := time.Now()
		b.step(t.Context(), now)
		row.Table, row.Key = Table, hash[:]
		if err := b.disk.Commit([]kv.Write{row}); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Get(hash); err == nil {
			t.Fatalf("%s: it is there", name)
		}
		b.step(t.Context(), now.Add(time.Second))
		b.has(t, hash, content)
	}
}
