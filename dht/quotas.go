package dht

import (
	"bytes"
	"fmt"
	"sync"

	recordpb "github.com/libp2p/go-libp2p-record/pb"
	"google.golang.org/protobuf/proto"

	"github.com/voxelpopuli/voxeld/dht/record"
	"github.com/voxelpopuli/voxeld/kv"
)

// maxOfSigner bounds the records of each other node in this node's part of the DHT: the regions that it leads, and the players who were
// on it last. It could otherwise fill the disks of others with records of cells and players that it has invented.
const maxOfSigner = 100_000

// quotas counts the stored records of each signer. kad-dht changes a key by one goroutine at a time. Any goroutine may use it.
type quotas struct {
	storage Storage
	self    string // is not bounded
	max     int

	mu    sync.Mutex
	count map[string]int // by public key
}

func newQuotas(storage Storage, self string) (*quotas, error) {
	q := &quotas{storage: storage, self: self, max: maxOfSigner, count: make(map[string]int)}
	err := storage.Scan(tableRecords, nil, func(_, value []byte) error {
		q.count[signerOf(value)]++
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("count records: %w", err)
	}
	return q, nil
}

// reserve counts the records among the writes, which the caller commits next, or undoes. The error is that a signer would have too many records.
func (q *quotas) reserve(writes []kv.Write) (undo func(), err error) {
	change := make(map[string]int)
	for _, w := range writes {
		if w.Table != tableRecords {
			continue
		}
		stored, err := q.storage.Get(w.Table, w.Key)
		if err != nil {
			return nil, err
		}
		if stored != nil {
			change[signerOf(stored)]--
		}
		if w.Value != nil {
			change[signerOf(w.Value)]++
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for signer, n := range change {
		if n > 0 && signer != q.self && q.count[signer]+n > q.max {
			return nil, fmt.Errorf("there are %d records of the node that signed this one already", q.max)
		}
	}
	q.add(change, 1)
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.add(change, -1)
	}, nil
}

// add adds times the change to the counts. The lock is held.
func (q *quotas) add(change map[string]int, times int) {
	for signer, n := range change {
		if q.count[signer] += times * n; q.count[signer] == 0 {
			delete(q.count, signer)
		}
	}
}

// signerOf returns the public key of the node that signed a stored record; "" if it is no record.
func signerOf(stored []byte) string {
	var r recordpb.Record
	if proto.Unmarshal(bytes.Clone(stored), &r) != nil {
		return ""
	}
	return record.Signer(r.GetValue())
}
