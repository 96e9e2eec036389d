package dht

import (
	"errors"
	"fmt"
	"time"

	kaddht "github.com/libp2p/go-libp2p-kad-dht"
	librecord "github.com/libp2p/go-libp2p-record"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/voxelpopuli/voxeld/dht/record"
	"github.com/voxelpopuli/voxeld/dht/redial"
	"github.com/voxelpopuli/voxeld/dht/transport"
)

// Join makes the host a node of a world's DHT, in server mode from the start. It dials no peers; Run does.
// A host joins one world, once.
func Join(host *transport.Host, opts Options) (*DHT, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	lib := host.LibP2P()
	key := lib.Peerstore().PrivKey(lib.ID())
	if key == nil {
		return nil, fmt.Errorf("join world: %w", transport.ErrClosed)
	}
	self, err := crypto.MarshalPublicKey(key.GetPublic())
	if err != nil {
		return nil, fmt.Errorf("join world: %w", err)
	}
	records, err := newQuotas(opts.Storage, string(self), opts.Certificate)
	if err != nil {
		return nil, err
	}
	d := &DHT{
		host:    host,
		lib:     lib,
		opts:    opts,
		key:     key,
		places:  newPlaces(),
		forgets: make(chan peer.ID, maxForgets),
		store:   &datastore{storage: opts.Storage, quotas: records, stepped: opts.Stepped},
		joined:  time.Now(),
		logger:  opts.Logger,

		maxPublished: maxOfSigner,
	}
	d.placement = placement{d.places, opts.Certificate}
	d.regions, d.players = record.NewValidators(opts.World, opts.Placement, opts.Now)
	d.mu.published = make(map[string]publication)
	if err := d.loadPublished(); err != nil {
		return nil, err
	}
	if d.dials, err = redial.Load(opts.RedialEvery, host.Bootstrap(), opts.Storage); err != nil {
		return nil, err
	}
	d.met = d.dials.Knows()
	d.kad, err = kaddht.New(lib,
		// Any prefix but /ipfs turns off the checks of the public network. This one also separates the worlds.
		kaddht.ProtocolPrefix(protocol.ID("/voxeld/"+opts.World[:16])),
		kaddht.Mode(kaddht.ModeServer), // automatic mode would remain a client
		kaddht.BucketSize(opts.BucketSize),
		kaddht.Concurrency(concurrency),
		kaddht.Resiliency(min(3, opts.BucketSize)),
		kaddht.Datastore(d.store),
		// The NamespacedValidator option would leave /pk and /ipns open.
		kaddht.Validator(librecord.NamespacedValidator{"chunk": d.regions, "player": d.players}),
		kaddht.DisableProviders(),
	)
	if err != nil {
		return nil, fmt.Errorf("join world: %w", err)
	}
	if d.holders, err = newHolders(d.kad.MessageSender(), d.places); err != nil {
		return nil, errors.Join(fmt.Errorf("join world: %w", err), d.kad.Close())
	}
	if d.metrics, err = newMetrics(opts.Registerer, d.kad.RoutingTable().Size); err != nil {
		return nil, errors.Join(err, d.kad.Close())
	}
	host.SetAddressFinder(d.findAddress)
	return d, nil
}

// Close leaves the network. Call it after Run has returned and before Host.Close. Once it has returned, the DHT no
// longer accesses the storage.
func (d *DHT) Close() error {
	d.host.SetAddressFinder(nil)
	err := errors.Join(d.kad.Close(), d.store.Close())
	if err != nil {
		return fmt.Errorf("close dht: %w", err)
	}
	return nil
}
