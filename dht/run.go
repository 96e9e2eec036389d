package dht

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/voxelpopuli/voxeld/dht/address"
	"github.com/voxelpopuli/voxeld/dht/redial"
	"github.com/voxelpopuli/voxeld/dht/transport"
	"github.com/voxelpopuli/voxeld/internal/kv"
)

const (
	redialAtOnce  = 8 // dials in flight
	redialTimeout = 5 * time.Second
	saveAgain     = 5 * time.Second  // after a failure to save known peers
	seeRounds     = 8                // rounds of redialling between two looks at a table without new peers
	lookSeldom    = 10 * time.Minute // between two of kad-dht's own refreshes of its table
)

// Run keeps this node connected until ctx ends. It dials bootstrap addresses and known peers that are not connected, at
// growing intervals; adds peers that answer to the routing table; saves the known peers; republishes the records that
// this node signed; and closes streams that have been idle for long. It returns nil, or the error of the last save.
func (d *DHT) Run(ctx context.Context) error {
	var loops sync.WaitGroup
	loops.Go(func() {
		every(ctx, min(d.opts.RedialEvery, d.opts.RepublishEvery), func() {
			d.expedite(d.kad.RoutingTable().Size())
			d.republish(ctx)
		})
	})
	loops.Go(func() { every(ctx, d.opts.RedialEvery, func() { d.fillTable(ctx) }) })
	loops.Go(func() { d.refreshTable(ctx) })
	loops.Go(func() { every(ctx, transport.IdleSweepInterval, d.host.CloseIdleStreams) })
	err := d.runRedial(ctx)
	loops.Wait()
	return err
}

// every calls do at once and then at each interval, until ctx ends.
func every(ctx context.Context, interval time.Duration, do func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		do()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// refreshTable searches for the nodes near to this one, at growing intervals up to kad-dht's own. Nodes that start
// together ask the node that they join before it has met them all, and would otherwise find each other only at
// kad-dht's next refresh. A refresh is a walk. It is skipped while the table is as large as a pause ago, because it
// would hardly find a new node.
func (d *DHT) refreshTable(ctx context.Context) {
	known := 0 // nodes in the table one pause ago
	for pause := d.opts.RedialEvery; pause < lookSeldom; pause *= 2 {
		select {
		case <-time.After(pause):
			now := d.kad.RoutingTable().Size()
			if now != known {
				d.kad.RefreshRoutingTable() // returns at once
			}
			known = now
		case <-ctx.Done():
			return
		}
	}
}

// dialed is the outcome of an attempt.
type dialed struct {
	entry *redial.Entry
	id    peer.ID
	err   error
}

// runRedial owns d.dials. Dials run in goroutines, so that one that hangs delays no other.
func (d *DHT) runRedial(ctx context.Context) error {
	tick := time.NewTicker(d.opts.RedialEvery)
	defer tick.Stop()
	var failed time.Time // the last attempt to save
	outcomes := make(chan dialed)
	flying := 0
	var unsaved []kv.Write
	for {
		// At once: nodes that are all killed, and were given no address to join, find each other by their saved peers.
		unsaved = append(unsaved, d.updateKnownPeers(d.opts.Now())...)
		if len(unsaved) > 0 && time.Since(failed) >= saveAgain {
			if err := d.store.commit(unsaved); err != nil {
				d.logger.Error("known peers not saved", "error", err)
				failed = time.Now()
			} else {
				unsaved = nil
			}
		}
		for _, e := range d.dials.Next(time.Now(), d.connections()) {
			if flying == redialAtOnce {
				break
			}
			flying++
			d.dials.MarkDialing(e)
			bootstrap, id, targets := e.Bootstrap, e.ID, slices.Clone(e.Targets)
			go func() { // awaited by the receives below
				id, err := d.dial(ctx, bootstrap, id, targets)
				outcomes <- dialed{e, id, err}
			}()
		}
		select {
		case o := <-outcomes:
			flying--
			d.recordOutcome(o)
		case id := <-d.forgets:
			if !d.connected(id) {
				unsaved = append(unsaved, d.dials.Forget(id)...)
				d.kad.RoutingTable().RemovePeer(id)
				d.lib.Peerstore().ClearAddrs(id)
			}
		case <-tick.C:
		case <-ctx.Done():
			for ; flying > 0; flying-- {
				<-outcomes
			}
			d.lastTable.at = time.Time{} // once more, for addresses found since
			if err := d.store.commit(append(unsaved, d.updateKnownPeers(d.opts.Now())...)); err != nil {
				return fmt.Errorf("save known peers: %w", err)
			}
			return nil
		}
	}
}

// maxForgets bounds the peers that wait to be forgotten.
const maxForgets = 64

// Forget has the node forget the addresses of a peer that does not come back, unless it is connected. Any goroutine may
// call it.
func (d *DHT) Forget(name string) {
	id, err := peer.Decode(name)
	if err != nil {
		return
	}
	select {
	case d.forgets <- id:
	default: // it is dialled for a month, without an answer
	}
}

func (d *DHT) recordOutcome(o dialed) {
	now := time.Now()
	switch {
	case o.err == nil:
		d.dials.MarkReached(o.entry, o.id, now)
		d.metrics.redials.WithLabelValues("reached").Inc()
		d.logger.Debug("peer reached", "name", o.entry.Name, "peer", o.id)
		d.kad.RefreshRoutingTable() // exchanges peers between two islands
	case errors.Is(o.err, transport.ErrSelf):
		d.dials.MarkSelf(o.entry)
	default:
		d.dials.MarkFailed(o.entry, now)
		if id := o.entry.ID; id != "" && !d.connected(id) {
			d.kad.RoutingTable().RemovePeer(id) // otherwise each walk would wait for it
		}
		d.metrics.redials.WithLabelValues("failed").Inc()
		d.logger.Debug("peer not reached", "name", o.entry.Name, "again_in", o.entry.Due.Sub(now), "error", o.err)
	}
}

func (d *DHT) connected(id peer.ID) bool {
	return d.lib.Network().Connectedness(id) == network.Connected
}

// connections returns the connected peers. Querying libp2p for each known peer costs an idle node more.
func (d *DHT) connections() func(peer.ID) bool {
	now := make(map[peer.ID]struct{})
	for _, id := range d.lib.Network().Peers() {
		now[id] = struct{}{}
	}
	return func(id peer.ID) bool {
		_, there := now[id]
		return there
	}
}

// dial tries all addresses of an entry at once.
func (d *DHT) dial(ctx context.Context, bootstrap bool, id peer.ID, targets []address.Target) (peer.ID, error) {
	ctx, cancel := context.WithTimeout(ctx, redialTimeout)
	defer cancel()
	if bootstrap {
		return d.host.Dial(ctx, targets[0])
	}
	if id == d.lib.ID() {
		return "", transport.ErrSelf
	}
	info := peer.AddrInfo{ID: id}
	for _, t := range targets {
		info.Addrs = append(info.Addrs, t.Addr)
	}
	return id, d.host.DialAgain(ctx, info)
}

// fillTable adds connected nodes of this world that answer to the routing table, if they are missing. kad-dht adds a
// peer when it connects, and drops it after one failed query; only a new connection would bring it back. A node that joins
// the world after it has connected may be missing, too: libp2p can take in the protocols that a peer had before after
// those that it has now, so what it says of a peer is not asked here.
func (d *DHT) fillTable(ctx context.Context) {
	added := false
	table := d.kad.RoutingTable()
	inside := make(map[peer.ID]struct{}, table.Size())
	for _, id := range table.ListPeers() {
		inside[id] = struct{}{}
	}
	for _, id := range d.lib.Network().Peers() {
		if ctx.Err() != nil {
			return
		}
		if _, there := inside[id]; there || !table.UsefulNewPeer(id) { // its Find sorts a bucket for each
			continue
		}
		pingCtx, cancel := context.WithTimeout(ctx, redialTimeout)
		err := d.kad.Ping(pingCtx, id)
		cancel()
		if err != nil {
			continue
		}
		if fresh, err := table.TryAddPeer(id, true, false); err == nil && fresh {
			added = true
		}
	}
	if added {
		d.kad.RefreshRoutingTable()
	}
}

// updateKnownPeers makes the peers in the routing table known, and returns the writes that this requires. While the
// table does not change, it looks only now and then, for addresses found later.
func (d *DHT) updateKnownPeers(now time.Time) []kv.Write {
	peers := d.kad.RoutingTable().ListPeers()
	slices.Sort(peers)
	if slices.Equal(peers, d.lastTable.peers) && now.Sub(d.lastTable.at) < seeRounds*d.opts.RedialEvery {
		return nil
	}
	if len(peers) > len(d.lastTable.peers) {
		d.holders.clear() // the new peer may be nearer to a record than its holders
	}
	d.lastTable.peers, d.lastTable.at = peers, now
	seen := make(map[peer.ID][]string)
	for _, id := range peers {
		for _, addr := range d.lib.Peerstore().Addrs(id) {
			if err := address.Check(addr); err == nil {
				seen[id] = append(seen[id], addr.String())
			}
		}
	}
	return d.dials.Update(seen, now, d.opts.Settled())
}
