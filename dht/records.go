package dht

import (
	"context"
	"errors"
	"fmt"
	"time"

	kaddht "github.com/libp2p/go-libp2p-kad-dht"
	"github.com/libp2p/go-libp2p-kad-dht/records"
	kb "github.com/libp2p/go-libp2p-kbucket"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// regionReplies is how many copies of a region record end a search, including this node's own. The region itself corrects
// an outdated hint, so a full walk is not worth its cost. For players it is: a player restored at an outdated position
// stays there.
const regionReplies = 3

// PutRegion publishes where a region is: at this node, which must be the leader named in r. The record replaces records
// with a lower (epoch, term); ErrOutdated means that a newer one is known. Run republishes it from then on, until a newer
// one appears.
// In a network of one node, the record is stored locally and PutRegion does not wait.
func (d *DHT) PutRegion(ctx context.Context, r nodemsg.Region) error {
	return d.putRegion(ctx, d.cells.key(r.Cell), r)
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
	value, err := sealRecord(d.key, d.opts.World, key, payload)
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
	r, err := d.region(ctx, d.cells.key(cell))
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
	return d.chunks.open(key, value)
}

// PutPlayer publishes the player's record; this node must be the gateway named in it. The record replaces records with a
// lower Seq; ErrOutdated means that a newer one is known. It is also stored on this node's disk and republished by Run
// until a newer one appears, also after a restart. If this node has put a record of the player recently, only some of the
// nodes nearest to its key get it at once.
func (d *DHT) PutPlayer(ctx context.Context, rec nodemsg.PlayerRecord) error {
	payload, err := nodemsg.EncodePlayerRecord(rec)
	if err != nil {
		return fmt.Errorf("put player %v: %w", rec.Player, err)
	}
	key := rec.Player.Key()
	value, err := sealRecord(d.key, d.opts.World, key, payload)
	if err != nil {
		return fmt.Errorf("put player %v: %w", rec.Player, err)
	}
	if err := d.publish(ctx, kindPutPlayer, key, value); err != nil {
		return fmt.Errorf("put player %v: %w", rec.Player, err)
	}
	return nil
}

// Player returns the newest record of a player, or ErrNotFound. It asks all nodes nearest to the record's key.
func (d *DHT) Player(ctx context.Context, id player.ID) (nodemsg.PlayerRecord, error) {
	key := id.Key()
	value, err := d.get(ctx, kindPlayer, key, 0)
	if own, mine := d.publishedValue(key); mine {
		if err != nil {
			value, err = own, nil
		} else if best, _ := d.players.Select(key, [][]byte{value, own}); best == 1 {
			value = own
		}
	}
	if err != nil {
		return nodemsg.PlayerRecord{}, fmt.Errorf("look up player %v: %w", id, err)
	}
	rec, err := d.players.open(key, value)
	if err != nil {
		return nodemsg.PlayerRecord{}, fmt.Errorf("look up player %v: %w", id, err)
	}
	return rec, nil
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
// record is known, or when the walk did not end in time. A refusal by some of the nodes is not an error: kad-dht does not
// report it.
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
