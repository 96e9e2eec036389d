package dht

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	recordpb "github.com/libp2p/go-libp2p-record/pb"
	"github.com/libp2p/go-libp2p/core/crypto"
	"google.golang.org/protobuf/proto"

	"github.com/voxelpopuli/voxeld/dht/record"
	"github.com/voxelpopuli/voxeld/dht/redial"
	"github.com/voxelpopuli/voxeld/dht/transport"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file is the DHT's part in backups.

// StoredPlayers visits the player records that this node stores for the network, in no particular order, without their
// logins: these prove nothing of the node that restores them. Records that are not valid are skipped.
func (d *DHT) StoredPlayers(visit func(nodemsg.PlayerRecord) error) error {
	err := d.store.storage.Scan(tableRecords, []byte(playerPrefix), func(_, value []byte) error {
		var stored recordpb.Record
		if proto.Unmarshal(bytes.Clone(value), &stored) != nil || !strings.HasPrefix(string(stored.GetKey()), playerPrefix) {
			return nil
		}
		rec, err := d.players.Open(string(stored.GetKey()), stored.GetValue())
		if err != nil {
			return nil
		}
		rec.Login = nil
		return visit(rec)
	})
	if err != nil {
		return fmt.Errorf("list player records: %w", err)
	}
	return nil
}

// Restorer makes the rows of a restored node: what it publishes, and whom it dials.
type Restorer struct {
	Self  string // its peer id
	key   crypto.PrivKey
	world string
}

// NewRestorer returns a restorer for the node whose storage this is. It creates the node's identity if there is none.
func NewRestorer(storage transport.Storage, world string) (*Restorer, error) {
	self, key, err := transport.Identity(storage)
	if err != nil {
		return nil, err
	}
	return &Restorer{Self: self, key: key, world: world}, nil
}

// Player returns the write that makes the node publish a player's record, whose gateway must be the node.
func (r *Restorer) Player(rec nodemsg.PlayerRecord) (kv.Write, error) {
	payload, err := nodemsg.EncodePlayerRecord(rec)
	if err != nil {
		return kv.Write{}, fmt.Errorf("publish player %v: %w", rec.Player, err)
	}
	key := rec.Player.Key()
	value, err := record.Seal(r.key, r.world, key, payload)
	if err != nil {
		return kv.Write{}, fmt.Errorf("publish player %v: %w", rec.Player, err)
	}
	return kv.Write{Table: tablePublished, Key: []byte(key), Value: value}, nil
}

// Known returns the write that makes the node dial a peer at these multiaddrs.
func (r *Restorer) Known(peer string, addrs []string) kv.Write {
	return redial.KnownRow(peer, addrs, time.Now())
}
