package dht

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"sync"
	"time"

	kaddht "github.com/libp2p/go-libp2p-kad-dht"
	kb "github.com/libp2p/go-libp2p-kbucket"
	record "github.com/libp2p/go-libp2p-record"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/core/routing"

	"github.com/voxelpopuli/voxeld/grid"
)

// Options select the world whose network a node joins. The zero value of a field means its default.
type Options struct {
	World     string         // world id in hex, at least 16 digits (required)
	Placement grid.Placement // of the world's cells (required)

	// BucketSize is Kademlia's k: peers per bucket, and nodes that hold a record. (Of a player's record, five nodes hold
	// the newest version: docs/adr/0016.) Default 20. It must be the same on all nodes of a world.
	BucketSize int

	// RedialEvery is how often Run looks for lost bootstrap and known peers. Default 2 s. Each peer that does not answer
	// is tried less and less often, down to once in 4 to 64 rounds, depending on how many are lost.
	RedialEvery time.Duration

	// RepublishEvery is how often Run republishes the records that this node signed, so that they reach nodes that joined
	// later and never reach the age of 48 h, at which nodes drop them. Default 1 h.
	RepublishEvery time.Duration
}

// Validate returns an error if an option is missing or out of range.
func (o Options) Validate() error {
	if !worldForm.MatchString(o.World) {
		return fmt.Errorf("dht options: world id %.80q: want at least 16 hex digits", o.World)
	}
	if _, err := grid.ParsePlacement(string(o.Placement)); err != nil {
		return fmt.Errorf("dht options: %w", err)
	}
	if o.BucketSize < 0 || o.RedialEvery < 0 || o.RepublishEvery < 0 {
		return errors.New("dht options: a negative value")
	}
	return nil
}

var worldForm = regexp.MustCompile(`^[0-9a-f]{16,128}$`)

func (o Options) withDefaults() Options {
	if o.BucketSize == 0 {
		o.BucketSize = 20
	}
	if o.RedialEvery == 0 {
		o.RedialEvery = 2 * time.Second
	}
	if o.RepublishEvery == 0 {
		o.RepublishEvery = time.Hour
	}
	return o
}

var (
	// ErrNotFound means that none of the nodes asked has the record.
	ErrNotFound = errors.New("no record")

	// ErrOutdated means that the record was not stored, because a newer one is known.
	ErrOutdated = errors.New("a newer record is known")
)

const (
	// lookupTimeout bounds every walk.
	lookupTimeout = 10 * time.Second

	// slowAfter is how long a walk runs before the connections to peers that have not answered are checked.
	slowAfter = time.Second

	// concurrency is Kademlia's alpha: peers asked at once, as in the Kademlia paper (§2.3) and VoxelPopuli.
	// kad-dht's 10 would ask most of a small network before the first answer is in.
	concurrency = 3
)

// DHT is a node's part in one world's Kademlia network. Its methods may be called from any goroutine.
type DHT struct {
	host    *Host
	opts    Options
	key     crypto.PrivKey
	kad     *kaddht.IpfsDHT
	store   *datastore
	cells   *cellKeys
	holders *holders
	chunks  chunkValidator
	players playerValidator
	logger  *slog.Logger
	metrics *metrics

	redial    redial // belongs to Run
	lastTable struct {
		peers []peer.ID // in the routing table, in order
		at    time.Time
	} // when Run last looked at the table; belongs to Run

	mu struct {
		sync.Mutex
		published     map[string]publication // by record key
		spread        int                    // known peers when all records were last made due for newcomers
		catalogSpread int                    // likewise, for the catalog's record
	}
}

// Join makes the host a node of a world's DHT, in server mode from the start. It dials no peers; Run does.
// A host joins one world, once.
func Join(host *Host, opts Options) (*DHT, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	key := host.lib.Peerstore().PrivKey(host.lib.ID())
	if key == nil {
		return nil, fmt.Errorf("join world: %w", ErrClosed)
	}
	d := &DHT{
		host:    host,
		opts:    opts,
		key:     key,
		store:   &datastore{storage: host.storage},
		cells:   newCellKeys(opts.Placement),
		logger:  host.logger,
		metrics: host.metrics,
	}
	opened := newRecordCache(opts.World)
	d.players = playerValidator{cache: opened}
	d.chunks = chunkValidator{cache: opened, cells: d.cells}
	d.mu.published = make(map[string]publication)
	if err := d.loadPublished(); err != nil {
		return nil, err
	}
	known, err := loadKnown(host.storage)
	if err != nil {
		return nil, err
	}
	d.redial = newRedial(opts.RedialEvery, host.bootstrap, known)
	d.kad, err = kaddht.New(host.lib,
		// Any prefix but /ipfs turns off the checks of the public network. This one also separates the worlds.
		kaddht.ProtocolPrefix(protocol.ID("/voxeld/"+opts.World[:16])),
		kaddht.Mode(kaddht.ModeServer), // automatic mode would remain a client
		kaddht.BucketSize(opts.BucketSize),
		kaddht.Concurrency(concurrency),
		kaddht.Resiliency(min(3, opts.BucketSize)),
		kaddht.Datastore(d.store),
		// The NamespacedValidator option would leave /pk and /ipns open.
		kaddht.Validator(record.NamespacedValidator{"chunk": d.chunks, "player": d.players}),
		kaddht.DisableProviders(),
	)
	if err != nil {
		return nil, fmt.Errorf("join world: %w", err)
	}
	if d.holders, err = newHolders(d.kad.MessageSender()); err != nil {
		return nil, errors.Join(fmt.Errorf("join world: %w", err), d.kad.Close())
	}
	host.mu.Lock()
	host.mu.find = d.findAddress
	host.mu.table = d.kad.RoutingTable().Size
	host.mu.Unlock()
	return d, nil
}

// Close leaves the network. Call it after Run has returned and before Host.Close. Once it has returned, the DHT no longer
// accesses the storage.
func (d *DHT) Close() error {
	d.host.mu.Lock()
	d.host.mu.find, d.host.mu.table = nil, nil
	d.host.mu.Unlock()
	err := errors.Join(d.kad.Close(), d.store.Close())
	if err != nil {
		return fmt.Errorf("close dht: %w", err)
	}
	return nil
}

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
	if info = d.host.lib.Peerstore().PeerInfo(id); len(info.Addrs) > 0 && ctx.Err() == nil {
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
					d.host.checkConnections(id)
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
