package dht

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/voxelpopuli/voxeld/dht/record"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// startTime is how long after its start a node that knows others expects to reach one of them.
const startTime = 30 * time.Second

// PutRegion publishes where a region is: at this node, which must be the leader named in r. The record replaces records
// with a lower (epoch, term); ErrOutdated means that a newer one is known. Run republishes it from then on, until a
// newer one appears. In a network of one node, the record is stored locally and PutRegion does not wait.
func (d *DHT) PutRegion(ctx context.Context, r nodemsg.Region) error {
	return d.putRegion(ctx, d.regions.Key(r.Cell), r)
}

// PutCatalog publishes where the catalog is, as PutRegion does. r.ID must be 1.
func (d *DHT) PutCatalog(ctx context.Context, r nodemsg.Region) error {
	return d.putRegion(ctx, grid.CatalogKey, r)
}

func (d *DHT) putRegion(ctx context.Context, key string, r nodemsg.Region) error {
	payload, err := nodemsg.EncodeRegion(r)
	if err != nil {
		return fmt.Errorf("put region %d: %w", r.ID, err)
	}
	value, err := record.Seal(d.key, d.opts.World, key, payload)
	if err != nil {
		return fmt.Errorf("put region %d: %w", r.ID, err)
	}
	if err := d.publish(ctx, kindPutRegion, key, value); err != nil {
		return fmt.Errorf("put region %d: %w", r.ID, err)
	}
	return nil
}

// Region returns the record of the region that covers exactly this cell. ErrNotFound means that none of the nodes asked
// has one; a region may exist all the same.
func (d *DHT) Region(ctx context.Context, cell grid.Cell) (nodemsg.Region, error) {
	r, err := d.region(ctx, d.regions.Key(cell))
	if err != nil {
		return nodemsg.Region{}, fmt.Errorf("look up region of cell %v: %w", cell, err)
	}
	return r, nil
}

// Catalog returns the catalog's record, or ErrNotFound.
func (d *DHT) Catalog(ctx context.Context) (nodemsg.Region, error) {
	r, err := d.region(ctx, grid.CatalogKey)
	if err != nil {
		return nodemsg.Region{}, fmt.Errorf("look up catalog: %w", err)
	}
	return r, nil
}

func (d *DHT) region(ctx context.Context, key string) (nodemsg.Region, error) {
	value, err := d.get(ctx, kindRegion, key, regionReplies)
	if err != nil {
		return nodemsg.Region{}, err
	}
	return d.regions.Open(key, value)
}

// PutPlayer publishes the player's record; this node must be the gateway named in it. ErrOutdated means that one is
// known that this one does not replace (nodemsg.PlayerRecord.Compare). It is also stored on this node's disk and
// republished by Run until a newer one appears, also after a restart. If this node has put a record of the player
// recently, only some of the nodes nearest to its key get it at once.
func (d *DHT) PutPlayer(ctx context.Context, rec nodemsg.PlayerRecord) error {
	value, err := d.sealPlayer(rec)
	if err != nil {
		return err
	}
	if err := d.publish(ctx, kindPutPlayer, rec.Player.Key(), value); err != nil {
		return fmt.Errorf("put player %v: %w", rec.Player, err)
	}
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

// Player returns the newest record of a player, or ErrNotFound. It asks all nodes nearest to the record's key. After
// another error a newer one than this node's own may exist. Having no peers is an error only shortly after the start of
// a node that had met others before.
func (d *DHT) Player(ctx context.Context, id player.ID) (nodemsg.PlayerRecord, error) {
	if d.met && d.kad.RoutingTable().Size() == 0 && time.Since(d.joined) < startTime {
		return nodemsg.PlayerRecord{}, fmt.Errorf("look up player %v: no other node has been reached since the start", id)
	}
	key := id.Key()
	value, err := d.get(ctx, kindPlayer, key, 0)
	if own, mine := d.publishedValue(key); mine {
		if errors.Is(err, ErrNotFound) {
			value, err = own, nil
		} else if best, _ := d.players.Select(key, [][]byte{value, own}); err == nil && best == 1 {
			value = own
		}
	}
	if err != nil {
		return nodemsg.PlayerRecord{}, fmt.Errorf("look up player %v: %w", id, err)
	}
	rec, err := d.players.Open(key, value)
	if err != nil {
		return nodemsg.PlayerRecord{}, fmt.Errorf("look up player %v: %w", id, err)
	}
	return rec, nil
}
