package region

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/voxelpopuli/voxeld/kv"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

const (
	// republishEvery is how often a leader renews its records, which the DHT keeps for 48 hours.
	republishEvery = 6 * time.Hour
	// republishRetry is the pause after an attempt that failed for some of them.
	republishRetry = time.Minute
)

// changed stores what this node now knows of a region that it is a member of. If this node leads it, the network and the
// neighbours are informed. Updates of one region are published in order, and only the newest one.
func (h *Host) changed(info nodemsg.Region) {
	h.mu.Lock()
	_, under := h.mu.changes[info.ID]
	h.mu.changes[info.ID] = info
	if info.Leader != h.Self.Peer && h.mu.damage[info.ID] != nil { // the new leader tracks it now
		delete(h.mu.damage, info.ID)
		h.countDamage()
	}
	h.mu.Unlock()
	if !under {
		h.start(func(ctx context.Context) { h.publishChanges(ctx, info.ID) })
	}
}

func (h *Host) publishChanges(ctx context.Context, id uint64) {
	var done nodemsg.Region
	for {
		h.mu.Lock()
		info := h.mu.changes[id]
		if reflect.DeepEqual(info, done) || ctx.Err() != nil {
			delete(h.mu.changes, id)
			h.mu.Unlock()
			return
		}
		h.mu.Unlock()
		h.publishChange(ctx, info)
		done = info
	}
}

func (h *Host) publishChange(ctx context.Context, info nodemsg.Region) {
	if err := h.store(info); err != nil {
		h.Logger.Warn("store region", "cell", info.Cell.String(), "error", err)
	}
	if info.Leader != h.Self.Peer {
		return
	}
	h.Directory.cacheRoute(info)
	if err := h.announce(ctx, info); err != nil {
		h.Logger.Debug("region's members not announced", "cell", info.Cell.String(), "error", err) // tried again
	}
	if err := h.Records.PutRegion(ctx, info); err != nil {
		h.Logger.Warn("publish region", "cell", info.Cell.String(), "error", err)
	}
	h.Directory.introduce(ctx, info)
}

// deleteRegion deletes what this node stores of a closed region that it is no longer a member of.
func (h *Host) deleteRegion(info nodemsg.Region) error {
	writes := []kv.Write{{Table: regionTable, Key: regionKey(info.ID)}}
	err := h.Storage.Keys(world.LandTable, regionKey(info.ID), func(key []byte) error {
		writes = append(writes, kv.Write{Table: world.LandTable, Key: bytes.Clone(key)})
		return nil
	})
	if err == nil {
		err = h.Replicas.Remove(info.ID, writes...)
	}
	if err != nil {
		return fmt.Errorf("delete region %d: %w", info.ID, err)
	}
	h.Directory.invalidate(info)
	return nil
}

// store stores what this node knows of a region that it is a member of. That includes the term: records with an older term than
// the published one cannot be renewed after a restart.
func (h *Host) store(info nodemsg.Region) error {
	row, err := nodemsg.EncodeRegion(info)
	if err != nil {
		return fmt.Errorf("store region %d: %w", info.ID, err)
	}
	key := regionKey(info.ID)
	if before, err := h.Storage.Get(regionTable, key); err == nil && bytes.Equal(before, row) {
		return nil
	}
	if err := h.Storage.Commit([]kv.Write{{Table: regionTable, Key: key, Value: row}}); err != nil {
		return fmt.Errorf("store region %d: %w", info.ID, err)
	}
	return nil
}

// republish renews the records of all regions that this node leads: at the start, when the network may have lost them, and every
// republishEvery.
func (h *Host) republish(ctx context.Context) {
	for {
		pause := republishEvery
		if err := h.publish(ctx); err != nil && ctx.Err() == nil {
			h.Logger.Warn("renew records", "error", err)
			pause = republishRetry
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// publish puts every record. A record that fails does not hold up the others; the error is the first one.
func (h *Host) publish(ctx context.Context) error {
	var first error
	failed := 0
	note := func(err error) {
		if err == nil {
			return
		}
		if failed++; first == nil {
			first = err
		}
	}
	if c := h.root(); c != nil {
		if root, err := c.where(ctx); err == nil && root.Leader == h.Self.Peer {
			note(h.Records.PutCatalog(ctx, root))
		}
	}
	var led []nodemsg.Region
	err := h.Storage.Scan(regionTable, nil, func(_, value []byte) error {
		info, err := nodemsg.DecodeRegion(value)
		if err == nil && info.Leader == h.Self.Peer {
			led = append(led, info)
		}
		return err
	})
	if err != nil {
		return errors.Join(first, fmt.Errorf("list regions: %w", err))
	}
	for _, info := range led {
		note(h.Records.PutRegion(ctx, info))
	}
	if first != nil {
		return fmt.Errorf("publish %d of %d records: %w", failed, len(led)+1, first)
	}
	return nil
}
