package dht

import (
	"context"
	"errors"
	"fmt"
	"slices"

	kb "github.com/libp2p/go-libp2p-kbucket"
	"github.com/libp2p/go-libp2p/core/peer"
)

// Nearest returns the n nodes (fewer in a smaller network) whose ids are nearest to the key in Kademlia's metric,
// SHA-256(key) XOR SHA-256(id), the nearest first. It includes this node if it is near enough. The nodes are not pinged,
// so dead ones can be among them for a while. n is at most the bucket size.
func (d *DHT) Nearest(ctx context.Context, key string, n int) ([]string, error) {
	if n < 1 || n > d.opts.BucketSize {
		return nil, fmt.Errorf("find nearest nodes: %d of them, want 1 to %d", n, d.opts.BucketSize)
	}
	var peers []peer.ID
	err := d.walk(ctx, kindNearest, func(ctx context.Context) (err error) {
		peers, err = d.kad.GetClosestPeers(ctx, key)
		return err
	})
	// With an empty table, this node is the whole network.
	if err != nil && !errors.Is(err, kb.ErrLookupFailure) {
		return nil, fmt.Errorf("find nearest nodes to %s: %w", key, err)
	}
	peers = append(peers, d.lib.ID()) // kad-dht leaves out the asking node
	d.places.sortByDistance(key, peers)
	peers = slices.Compact(peers)
	names := make([]string, 0, n)
	for _, id := range peers[:min(n, len(peers))] {
		names = append(names, d.places.name(id))
	}
	return names, nil
}

// NearestKnown is Nearest without a question to other nodes. It considers this node's routing table, this node itself,
// and the nodes in also. A node knows its own neighbourhood in the keyspace well, so for keys near to it the answer is
// the same. also is needed because the table drops a node seconds after it has gone, and it may be back soon.
func (d *DHT) NearestKnown(key string, n int, also ...string) []string {
	peers := append(d.kad.RoutingTable().ListPeers(), d.lib.ID())
	for _, name := range also {
		if id, err := d.places.id(name); err == nil { // other names are not nodes
			peers = append(peers, id)
		}
	}
	d.places.sortByDistance(key, peers)
	peers = slices.Compact(peers)
	names := make([]string, 0, n)
	for _, id := range peers[:min(n, len(peers))] {
		names = append(names, d.places.name(id))
	}
	return names
}
