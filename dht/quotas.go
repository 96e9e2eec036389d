package dht

import (
	"bytes"
	"fmt"
	"sync"

	recordpb "github.com/libp2p/go-libp2p-record/pb"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"google.golang.org/protobuf/proto"

	"github.com/voxelpopuli/voxeld/dht/record"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/trust"
)

// maxOfSigner bounds the records of each other node in this node's part of the DHT: the regions that it leads, and the
// players who were on it last. It could otherwise fill the disks of others with records of cells and players that it
// has invented. Where nodes are admitted, it also bounds the records of all nodes together whose certificates are not
// known here: whoever is admitted could pass on records that are signed with invented keys.
//
// maxOfOthers bounds the records of all other nodes. Twenty nodes hold a record, so each has that many if all nodes
// have as many as they may.
const (
	maxOfSigner = 100_000
	maxOfOthers = 20 * maxOfSigner
)

// quotas counts the stored records of each signer. kad-dht changes a key by one goroutine at a time. Any goroutine may
// use it.
type quotas struct {
	storage     Storage
	self        string                                  // is not bounded
	certificate func(peer.ID) (trust.Certificate, bool) // of a node, if it is known; nil in an open world
	max, all    int

	mu      sync.Mutex
	signers map[string]signer // other nodes, by public key
	others  int               // records of other nodes
	unknown int               // those of nodes that are not known
}

// signer is a node that has signed stored records.
type signer struct {
	records int
	known   bool // its certificate was known when it was last allowed more records; false after a start
}

func newQuotas(storage Storage, self string, certificate func(peer.ID) (trust.Certificate, bool)) (*quotas, error) {
	q := &quotas{storage: storage, self: self, certificate: certificate, max: maxOfSigner, all: maxOfOthers, signers: make(map[string]signer)}
	err := storage.Scan(tableRecords, nil, func(_, value []byte) error {
		q.add(signerOf(value), 1)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("count records: %w", err)
	}
	return q, nil
}

// reserve counts the records among the writes, which the caller commits next, or undoes. The error is that there would
// be too many records of a signer, or of others.
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
	if err := q.check(change); err != nil {
		q.addAll(change, 0)
		return nil, err
	}
	q.addAll(change, 1)
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.addAll(change, -1)
	}, nil
}

// check returns an error if a change would make too many records. The lock is held.
func (q *quotas) check(change map[string]int) error {
	more := 0
	for signer, n := range change {
		if signer == q.self {
			continue
		}
		more += n
		if n <= 0 {
			continue
		}
		switch s := q.recognise(signer); {
		case s.records+n > q.max:
			return fmt.Errorf("there are %d records of the node that signed this one already", s.records)
		case !s.known && q.unknown+n > q.max:
			return fmt.Errorf("there are %d records of nodes whose certificates are not known here already, and this one is signed by another such node", q.unknown)
		}
	}
	if more > 0 && q.others+more > q.all {
		return fmt.Errorf("there are %d records of other nodes already", q.others)
	}
	return nil
}

// recognise finds out whether a signer is known. It is listed until add finds that it has no records. The lock is held.
func (q *quotas) recognise(key string) signer {
	s := q.signers[key]
	if known := q.knows(key); known != s.known {
		if s.known = known; known {
			q.unknown -= s.records
		} else {
			q.unknown += s.records
		}
	}
	q.signers[key] = s
	return s
}

// knows reports whether the node with the public key was admitted. In an open world every node is.
func (q *quotas) knows(key string) bool {
	if q.certificate == nil {
		return true
	}
	public, err := crypto.UnmarshalPublicKey([]byte(key))
	if err != nil {
		return false
	}
	id, err := peer.IDFromPublicKey(public)
	if err != nil {
		return false
	}
	_, known := q.certificate(id)
	return known
}

// addAll adds times the change to the counts. The lock is held.
func (q *quotas) addAll(change map[string]int, times int) {
	for signer, n := range change {
		q.add(signer, times*n)
	}
}

// add adds records to the counts of a signer. The lock is held.
func (q *quotas) add(key string, n int) {
	if key == q.self {
		return
	}
	s := q.signers[key]
	s.records += n
	q.others += n
	if !s.known {
		q.unknown += n
	}
	if q.signers[key] = s; s.records == 0 {
		delete(q.signers, key)
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
