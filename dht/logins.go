package dht

import (
	"context"
	"fmt"
	"io"
	"slices"

	librecord "github.com/libp2p/go-libp2p-record"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/voxelpopuli/voxeld/dht/record"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Player records have logins since ADR 47. Nodes of earlier versions refuse these records, so they are sent others,
// without. A node that accepts logins says so by a protocol that nobody speaks: nodes tell each other their protocols
// when they connect.

// loginsProtocol returns the protocol of nodes that accept player records with logins.
func loginsProtocol(world string) string { return "/voxeld/" + world[:16] + "/logins" }

// announceLogins announces that this node accepts player records with logins.
func announceLogins(d *DHT) {
	d.host.Handle(loginsProtocol(d.opts.World), func(context.Context, string, io.ReadWriteCloser) {})
}

// withoutLogins returns the nodes nearest to a key among those that do not accept player records with logins.
func (d *DHT) withoutLogins(key string) []peer.ID {
	older := slices.DeleteFunc(d.kad.RoutingTable().ListPeers(), func(id peer.ID) bool {
		spoken, err := d.lib.Peerstore().SupportsProtocols(id, protocol.ID(loginsProtocol(d.opts.World)))
		return err == nil && len(spoken) > 0
	})
	sortByDistance(key, older, d.places.of)
	return older[:min(len(older), d.opts.BucketSize)]
}

// putWithoutLogin sends a player's record without its login to the nodes that refuse it otherwise.
func putWithoutLogin(ctx context.Context, d *DHT, rec nodemsg.PlayerRecord) error {
	if rec.Login == nil {
		return nil
	}
	key := rec.Player.Key()
	older := d.withoutLogins(key)
	if len(older) == 0 {
		return nil
	}
	rec.Login = nil
	value, err := d.sealPlayer(rec)
	if err != nil {
		return err
	}
	d.holders.putTo(ctx, older, librecord.MakePutRecord(key, value))
	return nil
}

// sealPlayer signs a player's record.
func (d *DHT) sealPlayer(rec nodemsg.PlayerRecord) ([]byte, error) {
	payload, err := nodemsg.EncodePlayerRecord(rec)
	if err != nil {
		return nil, fmt.Errorf("put player %v: %w", rec.Player, err)
	}
	value, err := record.Seal(d.key, d.opts.World, rec.Player.Key(), payload)
	if err != nil {
		return nil, fmt.Errorf("put player %v: %w", rec.Player, err)
	}
	return value, nil
}
