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
	"github.com/voxelpopuli/voxeld/wire"
)

// regionReplies is how many nodes' copies of a region record are enough to stop looking, this node's own included.
// An outdated hint is corrected by the region itself, so a full walk is not worth its cost; a player who appears in
// an outdated place stays there, so for players it is.
const regionReplies = 3

// PutRegion publishes where a region is: here, for this node must be the leader named in it. The record replaces
// older ones, those with a lower (epoch, term); ErrOutdated says that a newer one is known. Run republishes it from
// then on, until a newer one turns up.
// Alone in the network, the record is stored here and nothing is waited for.
func (d *DHT) PutRegion(ctx context.Context, r wire.Region) error {
	return d.putRegion(ctx, d.cells.key(r.Cell), r)
}

// PutCatalog publishes where the catalog is, as PutRegion does. r.ID must be 1.
func (d *DHT) PutCatalog(ctx context.Context, r wire.Region) error {
	return d.putRegion(ctx, grid.CatalogKey, r)
}

func (d *DHT) putRegion(ctx context.Context, key string, r wire.Region) error {
	payload, err := wire.EncodeRegion(r)
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

// Region returns the record of the region that covers exactly this cell. ErrNotFound says that no node that was
// asked has one; a region may exist all the same.
func (d *DHT) Region(ctx context.Context, cell grid.Cell) (wire.Region, error) {
	r, err := d.region(ctx, d.cells.key(cell))
	if err != nil {
		return wire.Region{}, fmt.Errorf("look up region of cell %v: %w", cell, err)
	}
	return r, nil
}

// Catalog returns the catalog's record, or ErrNotFound.
func (d *DHT) Catalog(ctx context.Context) (wire.Region, error) {
	r, err := d.region(ctx, grid.CatalogKey)
	if err != nil {
		return wire.Region{}, fmt.Errorf("look up catalog: %w", err)
	}
	return r, nil
}

func (d *DHT) region(ctx context.Context, key string) (wire.Region, error) {
	value, err := d.get(ctx, kindRegion, key, regionReplies)
	if err != nil {
		return wire.Region{}, err
	}
	return d.chunks.open(key, value)
}

// PutPlayer publishes what the network shall remember of a player; this node must be the gateway named in it.
// The record replaces those with a lower Seq; ErrOutdated says that a newer one is known. It is also kept on this
// node's own disk and republished by Run until a newer one turns up, also after a restart. Of the nodes that ought to have it only
// some get it at once if this node has put one of the player lately.
func (d *DHT) PutPlayer(ctx context.Context, rec wire.PlayerRecord) error {
	payload, err := wire.EncodePlayerRecord(rec)
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

// Player returns the newest record of a player, or ErrNotFound. It asks all nodes that ought to have one.
func (d *DHT) Player(ctx context.Context, id player.ID) (wire.PlayerRecord, error) {
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
		return wire.PlayerRecord{}, fmt.Errorf("look up player %v: %w", id, err)
	}
	rec, err := d.players.open(key, value)
	if err != nil {
		return wire.PlayerRecord{}, fmt.Errorf("look up player %v: %w", id, err)
	}
	return rec, nil
}

// get looks a record up: the best of the given number of replies, or of all that the whole walk finds (0).
// What the walk has found when its time is over is good enough; the caller's own deadline is an error.
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

// put stores a record here and on the nodes nearest to its key. It is an error when this node's storage fails, when
// a newer record is known, or when the walk did not end in time; that some nodes refused it is not (kad-dht does not
// tell).
func (d *DHT) put(ctx context.Context, kind, key string, value []byte) error {
	holders, err := d.walked(ctx, kind, func(ctx context.Context) error {
		err := d.kad.PutValue(ctx, key, value)
		if errors.Is(err, kb.ErrLookupFailure) {
			return nil // stored here, and there is nobody else
		}
		return err
	})
	if err == nil && kind == kindPutPlayer {
		d.holders.learn(key, holders, time.Now())
	}
	if err != nil && isOutdated(err) {
		return ErrOutdated
	}
	return err
}

// isOutdated recognises kad-dht's two ways to say that the stored record is newer.
func isOutdated(err error) bool {
	return errors.Is(err, records.ErrOldRecord) || err.Error() == "can't replace a newer value with an older value"
}
