package dht

import (
	"context"
	"errors"
	"fmt"

	kb "github.com/libp2p/go-libp2p-kbucket"
	"github.com/libp2p/go-libp2p/core/peer"
)

// Nearest returns the n nodes (fewer in a smaller network) whose places are nearest to the key, the nearest of each
// operator first: see placement. It includes this node if it is near enough. The nodes are not pinged, so dead ones can
// be among them for a while. n is at most the bucket size.
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
	if d.opts.Certificate != nil {
		peers = append(peers, d.kad.RoutingTable().ListPeers()...) // places are not where Kademlia looks
	}
	return d.places.named(d.placement.nearest(key, append(peers, d.lib.ID()), n)), nil // kad-dht leaves out the asking node
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
	return d.places.named(d.placement.nearest(key, peers, n))
}

// Operator returns who runs a node, as its certificate says; "" if that is not known, and in an open world.
func (d *DHT) Operator(peer string) string {
	id, err := d.places.id(peer)
	if err != nil {
		return ""
	}
	return d.placement.operator(id)
}
