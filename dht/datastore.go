package dht

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	ds "github.com/ipfs/go-datastore"
	dsq "github.com/ipfs/go-datastore/query"

	"github.com/voxelpopuli/voxeld/dht/transport"
	"github.com/voxelpopuli/voxeld/internal/kv"
)

// datastore stores kad-dht's records in a table of the node's storage. kad-dht uses the prefixes "/chunk/…" for chunk
// records and "/player/…" for player records (each followed by the key in base32), so the two kinds do not mix.
//
// After Close nothing reaches the storage any more. Handlers of kad-dht may outlive the datastore, and the storage is
// closed next.
type datastore struct {
	storage Storage
	quotas  *quotas
	// stepped reports whether the machine's clock is wrong, by which kad-dht finds records too old. Then none is
	// deleted. Nil: it is right.
	stepped func() bool
	overdue atomic.Int32 // commits that have been under way for longer than commitWithin
	gate    struct {
		sync.RWMutex // held for reading during every access, for writing by Close
		closed       bool
	}
}

// commitWithin is how long a commit of what others have sent may take before its writes count as refused. kad-dht sends
// one message at a time to a peer: a node whose disk hangs would have lookups of all others wait for it.
const commitWithin = time.Second

var errOverdue = errors.New("the disk does not answer")

var _ ds.Batching = (*datastore)(nil)

// enter admits one access. If it returns nil, the caller must call leave afterwards.
func (d *datastore) enter() error {
	d.gate.RLock()
	if d.gate.closed {
		d.gate.RUnlock()
		return transport.ErrClosed
	}
	return nil
}

func (d *datastore) leave() { d.gate.RUnlock() }

func (d *datastore) Get(_ context.Context, key ds.Key) ([]byte, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	value, err := d.storage.Get(tableRecords, key.Bytes())
	if err != nil {
		return nil, fmt.Errorf("read record: %w", err)
	}
	if value == nil {
		return nil, ds.ErrNotFound // kad-dht compares with ==
	}
	return value, nil
}

func (d *datastore) Has(ctx context.Context, key ds.Key) (bool, error) {
	return ds.GetBackedHas(ctx, d, key)
}

func (d *datastore) GetSize(ctx context.Context, key ds.Key) (int, error) {
	return ds.GetBackedSize(ctx, d, key)
}

// Query reads everything under the prefix, then filters. Records are small, and only the daily sweep calls it.
func (d *datastore) Query(_ context.Context, q dsq.Query) (dsq.Results, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	var entries []dsq.Entry
	prefix := []byte(ds.NewKey(q.Prefix).String())
	if len(prefix) > 1 {
		prefix = append(prefix, '/')
	}
	err := d.storage.Scan(tableRecords, prefix, func(key, value []byte) error {
		entry := dsq.Entry{Key: string(key), Size: len(value)}
		if !q.KeysOnly {
			entry.Value = bytes.Clone(value)
		}
		entries = append(entries, entry)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list records: %w", err)
	}
	return dsq.NaiveQueryApply(q, dsq.ResultsWithEntries(q, entries)), nil
}

func (d *datastore) Put(ctx context.Context, key ds.Key, value []byte) error {
	if value == nil {
		value = []byte{} // a nil value would delete
	}
	return d.commitRecords(ctx, []kv.Write{{Table: tableRecords, Key: key.Bytes(), Value: value}})
}

func (d *datastore) Delete(ctx context.Context, key ds.Key) error {
	if d.wrongClock() {
		return nil
	}
	return d.commitRecords(ctx, []kv.Write{{Table: tableRecords, Key: key.Bytes()}})
}

func (d *datastore) wrongClock() bool { return d.stepped != nil && d.stepped() }

// commitRecords is commit for kad-dht's records. This node's own walks have a deadline, and wait. What others have sent
// has none: it is refused if it takes longer than commitWithin, and at once while another such commit does. It may be
// stored later all the same.
func (d *datastore) commitRecords(ctx context.Context, writes []kv.Write) error {
	if _, own := ctx.Deadline(); own {
		return d.commit(writes)
	}
	if d.overdue.Load() > 0 {
		return fmt.Errorf("write record: %w", errOverdue)
	}
	done := make(chan error, 1)
	go func() { done <- d.commit(writes) }()
	within := time.NewTimer(commitWithin)
	defer within.Stop()
	select {
	case err := <-done:
		return err
	case <-within.C:
		d.overdue.Add(1)
		go func() {
			<-done
			d.overdue.Add(-1)
		}()
		return fmt.Errorf("write record: %w", errOverdue)
	}
}

func (d *datastore) commit(writes []kv.Write) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.leave()
	undo, err := d.quotas.reserve(writes)
	if err == nil {
		if err = d.storage.Commit(writes); err != nil {
			undo()
		}
	}
	if err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	return nil
}

// Sync does nothing: every commit is already durable.
func (d *datastore) Sync(context.Context, ds.Key) error { return nil }

// Close waits for the accesses in progress and rejects later ones. The storage stays open.
func (d *datastore) Close() error {
	d.gate.Lock()
	defer d.gate.Unlock()
	d.gate.closed = true
	return nil
}

func (d *datastore) Batch(context.Context) (ds.Batch, error) { return &batch{store: d}, nil }

// batch collects writes for one commit.
type batch struct {
	store  *datastore
	writes []kv.Write
}

func (b *batch) Put(_ context.Context, key ds.Key, value []byte) error {
	b.writes = append(b.writes, kv.Write{Table: tableRecords, Key: key.Bytes(), Value: append([]byte{}, value...)})
	return nil
}

func (b *batch) Delete(_ context.Context, key ds.Key) error {
	if !b.store.wrongClock() {
		b.writes = append(b.writes, kv.Write{Table: tableRecords, Key: key.Bytes()})
	}
	return nil
}

func (b *batch) Commit(ctx context.Context) error {
	writes := b.writes
	b.writes = nil
	if len(writes) == 0 {
		return nil
	}
	return b.store.commitRecords(ctx, writes)
}

// Storage persists a node's known peers and its share of the records. It is safe for concurrent use. Commit
// returns when all writes, or none of them, are durable.
type Storage interface {
	Get(table string, key []byte) ([]byte, error)
	Scan(table string, prefix []byte, visit func(key, value []byte) error) error
	Commit(writes []kv.Write) error
}

// The tables of this package; package redial has another.
const (
	tableRecords   = "dht"       // datastore key ("/chunk/…", "/player/…") → record in libp2p's protobuf
	tablePublished = "published" // record key → envelope of a player record that this node signed
)
