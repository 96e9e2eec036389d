package dht

import (
	"context"
	"errors"
	"time"

	kaddht "github.com/libp2p/go-libp2p-kad-dht"
	"github.com/libp2p/go-libp2p-kad-dht/records"
	kb "github.com/libp2p/go-libp2p-kbucket"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/routing"
)

// findAddress looks up a peer's address in the network.
func (d *DHT) findAddress(ctx context.Context, id peer.ID) (peer.AddrInfo, error) {
	var info peer.AddrInfo
	err := d.walk(ctx, kindAddress, func(ctx context.Context) (err error) {
		info, err = d.kad.FindPeer(ctx, id)
		return err
	})
	if err == nil {
		return info, nil
	}
	// A peer that was in the table without an address counts as unreachable for the whole walk, even after other peers
	// have sent its address.
	if info = d.lib.Peerstore().PeerInfo(id); len(info.Addrs) > 0 && ctx.Err() == nil {
		return info, nil
	}
	if isNotFound(err) {
		return info, errors.New("no node has its address")
	}
	return info, err
}

// walk runs one walk through the keyspace under a time limit and counts it.
func (d *DHT) walk(ctx context.Context, kind string, run func(context.Context) error) error {
	_, err := d.walkPeers(ctx, kind, run)
	return err
}

// walkPeers is walk, and also returns the peers that a value was sent to.
func (d *DHT) walkPeers(ctx context.Context, kind string, run func(context.Context) error) ([]peer.ID, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	ctx, events := routing.RegisterForQueryEvents(ctx)
	watched := make(chan walkResult)
	go func() { watched <- d.follow(events) }() // ends when cancel closes the events
	start := time.Now()
	err := run(ctx)
	d.metrics.seconds.WithLabelValues(kind).Observe(time.Since(start).Seconds())
	cancel()
	seen := <-watched
	d.metrics.contacted.WithLabelValues(kind).Observe(float64(seen.asked))
	d.metrics.lookups.WithLabelValues(kind).Inc()
	if err != nil && !isNotFound(err) {
		d.metrics.failures.WithLabelValues(kind).Inc()
	}
	return seen.put, err
}

// walkResult are the results of a walk.
type walkResult struct {
	asked int       // peers
	put   []peer.ID // peers that were sent a value
}

// follow watches a walk until its events end, and returns its result. A peer that is slow to answer may be behind a
// dead connection, so that connection is checked: kad-dht itself would wait for 10 s and then ask once more.
func (d *DHT) follow(events <-chan *routing.QueryEvent) (seen walkResult) {
	waits := make(map[peer.ID]bool) // by peer asked: whether its answer is outstanding
	slow := time.NewTicker(slowAfter)
	defer slow.Stop()
	for {
		select {
		case e, more := <-events:
			if !more {
				seen.asked = len(waits)
				return seen
			}
			switch {
			case e.Type == routing.SendingQuery:
				waits[e.ID] = true
			case (e.Type == routing.PeerResponse || e.Type == routing.QueryError) && waits[e.ID]:
				waits[e.ID] = false
			case e.Type == routing.Value: // PutValue reports each peer that it sends the value to
				seen.put = append(seen.put, e.ID)
			}
		case <-slow.C:
			for id, still := range waits {
				if still {
					d.host.CheckConnections(id)
				}
			}
		}
	}
}

// isNotFound reports whether err means that no node has the value, or that there is no node to ask, rather than a
// failure.
func isNotFound(err error) bool {
	return errors.Is(err, routing.ErrNotFound) || errors.Is(err, kb.ErrLookupFailure)
}

// get looks a record up: the best of the given number of replies, or of all that the whole walk finds (0).
// When the walk's time limit ends it, its results so far count; when the caller's own deadline ends it, get returns an
// error.
func (d *DHT) get(ctx context.Context, kind, key string, replies int) ([]byte, error) {
	var value []byte
	err := d.walk(ctx, kind, func(ctx context.Context) (err error) {
		value, err = d.kad.GetValue(ctx, key, kaddht.Quorum(max(replies-1, 0))) // Quorum(n) awaits n+1 replies; 0 all
		return err
	})
	switch {
	case err == nil:
		return value, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case value != nil:
		return value, nil
	case isNotFound(err):
		return nil, ErrNotFound
	}
	return nil, err
}

// put stores a record here and on the nodes nearest to its key. It fails when this node's storage fails, when a newer
// record is known, or when the walk did not end in time. A refusal by some of the nodes is not an error: kad-dht does
// not report it.
func (d *DHT) put(ctx context.Context, kind, key string, value []byte) error {
	holders, err := d.walkPeers(ctx, kind, func(ctx context.Context) error {
		err := d.kad.PutValue(ctx, key, value)
		if errors.Is(err, kb.ErrLookupFailure) {
			return nil // stored locally, and there are no other nodes
		}
		return err
	})
	if err == nil && kind == kindPutPlayer {
		d.holders.add(key, holders, time.Now())
	}
	if err != nil && isOutdated(err) {
		return ErrOutdated
	}
	return err
}

// isOutdated reports whether err is one of kad-dht's two errors for a stored record that is newer.
func isOutdated(err error) bool {
	return errors.Is(err, records.ErrOldRecord) || err.Error() == "can't replace a newer value with an older value"
}

const (
	// lookupTimeout bounds every walk.
	lookupTimeout = 10 * time.Second

	// slowAfter is how long a walk runs before the connections to peers that have not answered are checked.
	slowAfter = time.Second

	// concurrency is Kademlia's alpha: peers asked at once, as in the Kademlia paper (§2.3) and VoxelPopuli.
	// kad-dht's 10 would ask most of a small network before the first answer is in.
	concurrency = 3
)

// regionReplies is how many copies of a region record end a search, including this node's own. The region itself
// corrects an outdated hint, so a full walk is not worth its cost. For players it is: a player restored at an outdated
// position stays there.
const regionReplies = 3
