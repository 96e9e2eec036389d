package replica

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/replica/raftgroup"
)

// disk is a Storage in memory: what Commit has accepted survives.
type disk struct {
	mu      sync.Mutex
	tables  kv.Tables
	commits int
	hold    chan struct{}                 // if not nil, a Commit takes one token before it stores anything
	refuse  func(writes []kv.Write) error // if not nil, called before anything is stored
	torn    bool                          // a refused commit is stored all the same (an fsync that failed late)
}

func newDisk() *disk { return &disk{tables: make(kv.Tables)} }

func (d *disk) Get(table string, key []byte) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.tables[table][string(key)]), nil
}

func (d *disk) Scan(table string, prefix []byte, visit func(key, value []byte) error) error {
	d.mu.Lock()
	rows := kv.Tables{table: maps.Clone(d.tables[table])}
	d.mu.Unlock()
	return rows.Scan(table, prefix, visit)
}

func (d *disk) Commit(writes []kv.Write) error {
	if d.hold != nil {
		<-d.hold
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var refusal error
	if d.refuse != nil {
		refusal = d.refuse(writes)
	}
	if refusal == nil || d.torn {
		d.tables.Commit(writes) //nolint:errcheck // it has no error
	}
	d.commits++
	return refusal
}

func (d *disk) View(read func(
	get func(table string, key []byte) ([]byte, error),
	scan func(table string, prefix []byte, visit func(key, value []byte) error) error,
) error,
) error { // commits continue meanwhile
	d.mu.Lock()
	still := d.tables.Clone()
	d.mu.Unlock()
	return read(still.Get, still.Scan)
}

func (d *disk) setRefuse(refuse func([]kv.Write) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refuse = refuse
}

func (d *disk) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.commits
}

func (d *disk) rows(table string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.tables[table])
}

var errFull = errors.New("no space left on device")

func full([]kv.Write) error { return errFull }

// newTestHost returns a host that the test steps itself with pump, without Run.
func newTestHost(t testing.TB, storage Storage) *Host {
	t.Helper()
	h, err := NewHost(Options{Storage: storage, Self: "me"})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// pump lets the host do everything that it can do without time passing.
func pump(h *Host) {
	for {
		h.processInput()
		h.commitRound()
		h.input.mu.Lock()
		idle := len(h.input.mu.queue)+len(h.input.mu.commands) == 0
		h.input.mu.Unlock()
		if idle && !h.committer.busy() {
			return
		}
	}
}

// await pumps a host while f waits for it.
func await(h *Host, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	for {
		pump(h)
		select {
		case err := <-done:
			return err
		case <-h.input.wake:
		}
	}
}

// openNow opens a group on a host that is stepped with pump.
func openNow(t testing.TB, h *Host, f Founding) *Group {
	t.Helper()
	var group *Group
	var failure error
	h.input.post(func() { h.open(f, func(g *Group, err error) { group, failure = g, err }) })
	pump(h)
	if failure != nil {
		t.Fatal(failure)
	}
	return group
}

func alone(group uint64) Founding { return Founding{Group: group, Members: []string{"me"}} }

// running is a host whose Run runs in a synctest bubble.
type running struct {
	*Host
	stop func() error
}

func launch(t testing.TB, o Options, change ...func(*raftgroup.Limits)) running {
	t.Helper()
	if o.Self == "" {
		o.Self = "me"
	}
	h, err := NewHost(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range change {
		f(&h.node.Limits)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	stop := sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Log("stop:", err)
		}
	})
	return running{Host: h, stop: stop}
}

func (h running) mustOpen(t testing.TB, f Founding) *Group {
	t.Helper()
	g, err := h.Open(context.Background(), f)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// leads waits until this node leads the group, and returns the deliveries before that.
func leads(t testing.TB, g *Group) []Delivery {
	t.Helper()
	var all []Delivery
	for {
		for _, d := range g.Dequeue() {
			all = append(all, d)
			switch d := d.(type) {
			case Leadership:
				if d.Self {
					return all
				}
			case Failed:
				t.Fatal(d.Err)
			}
		}
		<-g.Ready()
	}
}

// committed waits for n committed entries and returns all deliveries up to then.
func committed(t testing.TB, g *Group, n int) []Delivery {
	t.Helper()
	var all []Delivery
	for {
		all = append(all, g.Dequeue()...)
		if len(texts(all)) >= n {
			return all
		}
		<-g.Ready()
	}
}

// texts returns the committed entries among deliveries.
func texts(deliveries []Delivery) []string {
	var all []string
	for _, d := range deliveries {
		if c, ok := d.(Committed); ok {
			all = append(all, string(c.Entry))
		}
	}
	return all
}

func lastIndex(deliveries []Delivery) uint64 {
	last := uint64(0)
	for _, d := range deliveries {
		if c, ok := d.(Committed); ok {
			last = c.Index
		}
	}
	return last
}

func row(key, value string) []kv.Write {
	return []kv.Write{{Table: "world", Key: []byte(key), Value: []byte(value)}}
}

func numbered(word string, n int) string { return fmt.Sprintf("%s%05d", word, n) }

// bubble runs a test in synctest.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}
