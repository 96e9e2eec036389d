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

// A gateway republishes the records of its players frequently, and each walk through the keyspace costs two questions
// to each of Kademlia's k nodes nearest to the key. These nodes hardly ever change. So they are cached, and the
// following records are sent straight to the nearest of them. The nodes left out keep an older record. A reader of a
// player's record asks all of them and takes the newest.

const (
	// holdersFor is how long the holders of a record are cached: nodes that joined since may be nearer to its key.
	holdersFor = 10 * time.Minute
	// freshCopies is how many of the holders receive the following records. If all of these end together, the player
	// falls back to an older record.
	freshCopies = 5
	// silentTime is how long a holder may take to accept a record.
	silentTime = 3 * time.Second
	// maxHeldRecords is the number of records whose holders are cached, in less than 1 KiB each.
	maxHeldRecords = 4096
)

// holders caches which nodes hold the records that this node has put. Any goroutine may use it.
type holders struct {
	known  *lru.Cache[string, held] // by record key
	send   *kadpb.ProtocolMessenger
	places *places
}

// held lists the nodes that hold a record, as of the last walk.
type held struct {
	peers []peer.ID // the nearest first, without those that have stopped answering; never modified
	until time.Time
}

func newHolders(sender kadpb.MessageSender, p *places) (*holders, error) {
	send, err := kadpb.NewProtocolMessenger(sender)
	if err != nil {
		return nil, err
	}
	known, err := lru.New[string, held](maxHeldRecords)
	if err != nil {
		return nil, err
	}
	return &holders{known: known, send: send, places: p}, nil
}

// add caches the nodes that a walk has put a record to.
func (h *holders) add(key string, peers []peer.ID, now time.Time) {
	if len(peers) == 0 {
		return // alone: nodes that join later must be found
	}
	sortByDistance(key, peers, h.places.of)
	h.known.Add(key, held{peers: peers, until: now.Add(holdersFor)})
}

// clear makes the next put of every record walk again.
func (h *holders) clear() { h.known.Purge() }

// put stores a record on the nearest of the nodes known to hold older versions, and reports whether enough of them
// accepted it. If not, the nodes are removed from the cache.
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

// putTo stores a record on the peers, and returns those that accepted it, in the same order.
func (h *holders) putTo(ctx context.Context, peers []peer.ID, rec *recordpb.Record) []peer.ID {
	ctx, cancel := context.WithTimeout(ctx, silentTime)
	defer cancel()
	failed := make([]error, len(peers))
	var wg sync.WaitGroup
	for i, id := range peers {
		wg.Go(func() { failed[i] = h.send.PutValue(ctx, id, rec) })
	}
	wg.Wait()
	var took []peer.ID
	for i, id := range peers {
		if failed[i] == nil {
			took = append(took, id)
		}
	}
	return took
}
