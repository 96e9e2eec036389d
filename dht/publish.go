package dht

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/dht/record"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/kv"
)

// publication is a record that this node signed and republishes.
type publication struct {
	kind  string
	value []byte
	due   time.Time // when to republish
	saved time.Time // of a player's record: when it was put last
}

const playerPrefix = "/player/"

// publish puts a record that this node has just signed, and keeps it for republishing. Player records are also stored
// on disk: nodes drop a record after 48 h, and a world may be switched off for longer than that.
func (d *DHT) publish(ctx context.Context, kind, key string, value []byte) error {
	if err := d.validator(kind).Validate(key, value); err != nil {
		return err
	}
	if own, mine := d.publishedValue(key); mine && !bytes.Equal(own, value) {
		best, err := d.validator(kind).Select(key, [][]byte{value, own})
		if err != nil {
			return err
		}
		if best != 0 {
			return ErrOutdated
		}
	}
	if kind == kindPutPlayer {
		if err := d.store.commit([]kv.Write{{Table: tablePublished, Key: []byte(key), Value: value}}); err != nil {
			return err
		}
	}
	d.mu.Lock()
	now := time.Now()
	d.mu.published[key] = publication{kind: kind, value: value, due: now.Add(d.opts.RepublishEvery), saved: now}
	d.mu.Unlock()
	if err := boundPublished(d); err != nil {
		return err
	}
	if kind == kindPutPlayer && d.holders.put(ctx, key, value, time.Now()) {
		d.metrics.straight.Inc()
		d.dueBy(key, time.Now().Add(holdersFor)) // the remaining holders of an older version get it then, if nothing newer comes
		return nil
	}
	err := d.put(ctx, kind, key, value)
	if errors.Is(err, ErrOutdated) {
		return errors.Join(err, d.retract(kind, key, value))
	}
	return err
}

// boundPublished stops republishing the oldest player records if there are too many: anybody can log in with any number
// of keys, and other nodes take no more of one node.
func boundPublished(d *DHT) error {
	d.mu.Lock()
	var players []string
	if len(d.mu.published) > d.maxPublished {
		for key, p := range d.mu.published {
			if p.kind == kindPutPlayer {
				players = append(players, key)
			}
		}
	}
	if len(players) <= d.maxPublished {
		players = nil
	}
	slices.SortFunc(players, func(a, b string) int { return d.mu.published[a].saved.Compare(d.mu.published[b].saved) })
	players = players[:min(len(players), max(1, d.maxPublished/100))]
	var writes []kv.Write
	for _, key := range players {
		delete(d.mu.published, key)
		writes = append(writes, kv.Write{Table: tablePublished, Key: []byte(key)})
	}
	d.mu.Unlock()
	if len(writes) == 0 {
		return nil
	}
	return d.store.commit(writes)
}

// dueBy makes a published record due at the given time, or earlier.
func (d *DHT) dueBy(key string, at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p, there := d.mu.published[key]; there && p.due.After(at) {
		p.due = at
		d.mu.published[key] = p
	}
}

func (d *DHT) validator(kind string) interface {
	Validate(key string, value []byte) error
	Select(key string, values [][]byte) (int, error)
} {
	if kind == kindPutPlayer {
		return d.players
	}
	return d.regions
}

// retract stops republishing a record, unless it was replaced meanwhile.
func (d *DHT) retract(kind, key string, value []byte) error {
	d.mu.Lock()
	current, there := d.mu.published[key]
	mine := there && bytes.Equal(current.value, value)
	if mine {
		delete(d.mu.published, key)
	}
	d.mu.Unlock()
	if !mine || kind != kindPutPlayer {
		return nil
	}
	return d.store.commit([]kv.Write{{Table: tablePublished, Key: []byte(key)}})
}

// publishedValue returns the record that this node republishes under the key.
func (d *DHT) publishedValue(key string) ([]byte, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, there := d.mu.published[key]
	return p.value, there
}

// loadPublished reads the player records that this node republishes. They are due at once, because other nodes may have
// dropped them. Records that fail verification (the world's rules have changed) are skipped, unless this node's clock
// may be why.
func (d *DHT) loadPublished() error {
	err := d.store.storage.Scan(tablePublished, []byte(playerPrefix), func(key, value []byte) error {
		name := string(key)
		r, err := d.players.Open(name, value)
		if err != nil && !errors.Is(err, record.ErrImplausible) {
			d.logger.Warn("invalid saved player record skipped", "key", name, "error", err)
			return nil
		}
		d.mu.published[name] = publication{kind: kindPutPlayer, value: bytes.Clone(value), saved: time.UnixMilli(r.SavedAt)}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read published records: %w", err)
	}
	return nil
}

// expedite makes records due early when the network has grown to the given number of known peers. New nodes may be
// nearer to a key than the holders of its record, and no other node sends them the record. The catalog's record, on
// which all others depend, is republished for every new node, the others when the network has grown by a quarter.
func (d *DHT) expedite(peers int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p, there := d.mu.published[grid.CatalogKey]; there && peers > d.mu.catalogSpread {
		d.mu.catalogSpread = peers
		p.due = time.Time{}
		d.mu.published[grid.CatalogKey] = p
	}
	if peers <= d.mu.spread+d.mu.spread/4 {
		return
	}
	d.mu.spread = peers
	for key, p := range d.mu.published {
		p.due = time.Time{}
		d.mu.published[key] = p
	}
}

// republish publishes every due record again, one after the other. Records that other nodes have replaced are
// retracted, and so are those of expired guests, once the clock has settled.
func (d *DHT) republish(ctx context.Context) {
	for _, key := range d.duePublications(time.Now()) {
		if ctx.Err() != nil {
			return
		}
		d.mu.Lock()
		p, there := d.mu.published[key]
		if there {
			p.due = time.Now().Add(d.opts.RepublishEvery)
			d.mu.published[key] = p
		}
		d.mu.Unlock()
		if !there {
			continue
		}
		if err := d.republishOne(ctx, key, p); err != nil && ctx.Err() == nil {
			d.logger.Warn("record not republished", "key", key, "error", err)
		}
	}
}

func (d *DHT) republishOne(ctx context.Context, key string, p publication) error {
	kind := kindRegion
	if strings.HasPrefix(key, playerPrefix) {
		kind = kindPlayer
		r, err := d.players.Open(key, p.value)
		if err != nil {
			return err
		}
		if r.Expired(d.opts.Now()) {
			if !d.opts.Settled() {
				return nil
			}
			return d.retract(p.kind, key, p.value)
		}
	}
	found, err := d.get(ctx, kind, key, 0)
	switch {
	case err == nil && !bytes.Equal(found, p.value):
		if best, err := d.validator(p.kind).Select(key, [][]byte{p.value, found}); err == nil && best == 1 {
			return d.retract(p.kind, key, p.value)
		}
	case err != nil && !errors.Is(err, ErrNotFound):
		return err
	}
	err = d.put(ctx, p.kind, key, p.value)
	if errors.Is(err, ErrOutdated) {
		return d.retract(p.kind, key, p.value)
	}
	return err
}

func (d *DHT) duePublications(now time.Time) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var due []string
	for key, p := range d.mu.published {
		if !p.due.After(now) {
			due = append(due, key)
		}
	}
	return due
}
