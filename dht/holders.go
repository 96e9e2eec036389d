package dht

import (
	"context"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	kadpb "github.com/libp2p/go-libp2p-kad-dht/pb"
	record "github.com/libp2p/go-libp2p-record"
	recordpb "github.com/libp2p/go-libp2p-record/pb"
	"github.com/libp2p/go-libp2p/core/peer"
)

// A gateway puts the records of the players who are with it again and again, and a walk through the keyspace each time
// costs two questions to each of Kademlia's k nodes nearest to the key. Who these are hardly changes: so they are remembered, and
// the next records go straight to the nearest of them. Those that are left out keep an older record; who looks for
// the player asks all of them, and takes the newest.

const (
	// holdersFor is how long it is remembered who holds a record: nodes that came since may be nearer to its key.
	holdersFor = 10 * time.Minute
	// freshCopies is how many of them get the records that follow: the player is set back if all of these end together.
	freshCopies = 5
	// holdersMost is for how many records it is remembered, less than a KiB each.
	holdersMost = 4096
)

// holders remembers which nodes hold the records that this node has put. Any goroutine may use it.
type holders struct {
	known *lru.Cache[string, held] // by record key
	send  *kadpb.ProtocolMessenger
}

// held is who holds a record, as of the last walk.
type held struct {
	peers []peer.ID // the nearest first; those that did not answer since are left out. Never changed
	until time.Time
}

func newHolders(sender kadpb.MessageSender) (*holders, error) {
	send, err := kadpb.NewProtocolMessenger(sender)
	if err != nil {
		return nil, err
	}
	return &holders{known: must(lru.New[string, held](holdersMost)), send: send}, nil
}

// learn remembers the nodes that a walk has put a record to.
func (h *holders) learn(key string, peers []peer.ID, now time.Time) {
	if len(peers) == 0 {
		return // alone: whoever comes is to be found
	}
	sortByDistance(key, peers)
	h.known.Add(key, held{peers: peers, until: now.Add(holdersFor)})
}

// forget has the next record of everybody walk.
func (h *holders) forget() { h.known.Purge() }

// put stores a record on the nearest of the nodes that are known to hold older ones, and tells whether enough of them
// took it. Otherwise they are forgotten.
func (h *holders) put(ctx context.Context, key string, value []byte, now time.Time) bool {
	known, there := h.known.Get(key)
	if !there || now.After(known.until) {
		return false
	}
	var took []peer.ID
	rest, silent := known.peers, false
	for len(took) < freshCopies && len(rest) > 0 {
		next := rest[:min(freshCopies-len(took), len(rest))]
		rest = rest[len(next):]
		good := h.putTo(ctx, next, record.MakePutRecord(key, value))
		took = append(took, good...)
		silent = silent || len(good) < len(next)
	}
	switch {
	case !silent: // in a small network there may be fewer than freshCopies
	case len(took) < freshCopies:
		h.known.Remove(key)
		return false
	default:
		h.known.Add(key, held{append(took, rest...), known.until})
	}
	return true
}

// putTo stores a record on the peers, and gives those of them that took it, in the same order.
func (h *holders) putTo(ctx context.Context, peers []peer.ID, rec *recordpb.Record) []peer.ID {
	ctx, cancel := context.WithTimeout(ctx, silentTime)
	defer cancel()
	failed := make([]error, len(peers))
	var crew sync.WaitGroup
	for i, id := range peers {
		crew.Go(func() { failed[i] = h.send.PutValue(ctx, id, rec) })
	}
	crew.Wait()
	var took []peer.ID
	for i, id := range peers {
		if failed[i] == nil {
			took = append(took, id)
		}
	}
	return took
}
