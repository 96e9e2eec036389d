package region

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/kv"
	"github.com/voxelpopuli/voxeld/region/failuredetector"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file detects copies that are superseded: those of a group from before an operator recovered it from one survivor
// (docs/adr/0009), and those that were replaced while their nodes were away. The node drops such a copy before it serves the
// region, and joins again.

// recoveredTable stores the regions that were recovered on this node, until all former members have been notified: id, 8 bytes
// big-endian → the region before.
const recoveredTable = "recovered"

// recoveredEpoch is added to a region's epoch by each recovery. A log never has that many entries.
const recoveredEpoch = 1 << 40

// epochOf returns the epoch of a region whose group has this configuration.
func epochOf(c replica.Configured) uint64 {
	return c.Recovered*recoveredEpoch + max(c.Index, firstEpoch)
}

// validateTime bounds how long a region waits for its other members to report whether it was recovered without this node.
const validateTime = time.Second

// errSuperseded is returned if the region continues elsewhere without the copy of this node.
var errSuperseded = errors.New("the region continues without this node; the copy here is dropped")

// validateCopy ensures that a region's copy here is not superseded, once for each region while the process runs. A node that
// comes back asks the other members before it acts for a group that it may have left.
func (h *Host) validateCopy(ctx context.Context, info nodemsg.Region) error {
	h.mu.Lock()
	_, known := h.mu.validated[info.ID]
	h.mu.Unlock()
	if known {
		return nil
	}
	if h.superseded(ctx, info) {
		h.Logger.Warn("region continues without this node; its copy is dropped", "region", info.ID, "cell", Name(info))
		if err := h.deleteRegion(info); err != nil {
			return err
		}
		return fmt.Errorf("%w: %w", errSuperseded, ErrNotHere)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.validated[info.ID] = struct{}{}
	return nil
}

func (h *Host) validateCatalogCopy(ctx context.Context, c *catalog) error {
	if h.superseded(ctx, catalogOf(c.group.Configuration())) {
		return errSuperseded
	}
	return nil
}

// superseded asks the other members whether their group continues without the copy here.
func (h *Host) superseded(ctx context.Context, info nodemsg.Region) bool {
	if len(info.Members) < 2 {
		return false
	}
	own, err := h.Replicas.Position(info.ID)
	if err != nil {
		return false // there is no copy, or it cannot be opened
	}
	ctx, cancel := context.WithTimeout(ctx, validateTime)
	defer cancel()
	var crew sync.WaitGroup
	newer := make(chan struct{}, len(info.Members))
	for _, m := range info.Members {
		if m.Peer == h.Self.Peer || h.detector.Suspected(m.Peer) {
			continue
		}
		crew.Go(func() {
			statuses, _, err := h.askStatuses(ctx, m.Peer, nodemsg.StatusRequest{Regions: []uint64{info.ID}, Log: true})
			switch {
			case err != nil:
				h.detector.Suspect(m.Peer)
			case h.replaces(statuses[0], own):
				newer <- struct{}{}
			}
		})
	}
	crew.Wait()
	return len(newer) > 0
}

// replaces reports whether a copy on another node belongs to a group that continues without the one here. That group was
// recovered more often or has a later configuration, and does not contain this replica. (A replica that has just joined and has
// no configuration yet does not count.) Otherwise two replicas that were replaced while away could form a majority of the
// configuration that they remember. Groups that were recovered equally often may or may not be the same.
func (h *Host) replaces(there nodemsg.RegionStatus, own replica.Position) bool {
	if there.State == nodemsg.StateNone || own.Members.Index == 0 {
		return false
	}
	mine := own.Members.Recovered
	later := there.Recovered > mine || there.Recovered == mine && mine == 0 && there.Epoch > epochOf(own.Members)
	return later && !slices.ContainsFunc(there.Members, func(c nodemsg.MemberStatus) bool {
		return c.Replica.ID == own.Replica && c.Replica.Peer == h.Self.Peer
	})
}

// checkSuperseded checks a peer's message that a region was recovered without this node, and drops the copy if that is true.
func (h *Host) checkSuperseded(ctx context.Context, peer string, id uint64) error {
	info, err := h.memberRegion(id)
	if errors.Is(err, ErrNotHere) {
		return nil // there is nothing to be dropped
	}
	if err != nil {
		return err
	}
	statuses, _, err := h.askStatuses(ctx, peer, nodemsg.StatusRequest{Regions: []uint64{id}, Log: true})
	if err != nil {
		return err
	}
	own, err := h.Replicas.Position(id)
	if err != nil {
		return err
	}
	if !h.replaces(statuses[0], own) {
		return nil // this copy is of the same group, or of a later one
	}
	if !hasMember(info, peer) {
		return fmt.Errorf("%s is not a member of region %d", peer, id)
	}
	h.Logger.Warn("region was recovered without this node; its copy is dropped", "region", id, "cell", Name(info))
	if c := h.root(); id == world.CatalogID && c != nil {
		c.inbox.Put(func() { c.removed = true })
		return waitFor(ctx, c.done)
	}
	if l := h.loop(id); l != nil {
		l.inbox.Put(func() { l.removed = true })
		return waitFor(ctx, l.done)
	}
	if id == world.CatalogID {
		return h.deleteCatalog()
	}
	h.release(id)
	return h.deleteRegion(info)
}

func waitFor(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// memberRegion returns a region of which this node is a member, possibly the catalog, or ErrNotHere.
func (h *Host) memberRegion(id uint64) (nodemsg.Region, error) {
	if id == world.CatalogID {
		return h.catalogRegion()
	}
	return h.stored(id)
}

// notifyEvicted notifies the former members of recovered regions, as they come back, that their copies are superseded.
func (h *Host) notifyEvicted(ctx context.Context) {
	h.mu.Lock()
	all := make([]nodemsg.Region, 0, len(h.mu.evicted))
	for _, before := range h.mu.evicted {
		all = append(all, before)
	}
	h.mu.Unlock()
	if len(all) == 0 {
		return
	}
	peers := make(failuredetector.Watched)
	for _, before := range all {
		for _, m := range before.Members {
			peers.Add(m.Peer, h.detector.Every)
		}
	}
	h.detector.Refresh(ctx, peers)
	for _, before := range all {
		left := before
		left.Members = nil
		for _, m := range before.Members {
			if _, lives := h.detector.Alive(m.Peer); lives {
				_, err := h.questions.Ask(ctx, m.Peer, nodemsg.Question{Superseded: &nodemsg.Release{Region: before.ID}})
				if err == nil {
					continue
				}
				h.Logger.Debug("former member not notified", "region", before.ID, "peer", m.Peer, "error", err)
			}
			left.Members = append(left.Members, m)
		}
		if len(left.Members) == len(before.Members) {
			continue
		}
		if err := h.keepEvicted(left); err != nil {
			h.Logger.Warn("store former members", "region", before.ID, "error", err)
		}
	}
}

// keepEvicted stores the former members of a recovered region; with none it deletes the entry.
func (h *Host) keepEvicted(before nodemsg.Region) error {
	write := kv.Write{Table: recoveredTable, Key: regionKey(before.ID)}
	if len(before.Members) > 0 {
		before.Members = slices.Clone(before.Members)
		for i := range before.Members {
			if before.Members[i].Game == "" { // only the peers matter, but a row must be valid
				before.Members[i].Game = h.Self.Game
			}
		}
		var err error
		if write.Value, err = nodemsg.EncodeRegion(before); err != nil {
			return fmt.Errorf("store former members of region %d: %w", before.ID, err)
		}
	}
	if err := h.Storage.Commit([]kv.Write{write}); err != nil {
		return fmt.Errorf("store former members of region %d: %w", before.ID, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.evicted[before.ID] = before; len(before.Members) == 0 {
		delete(h.mu.evicted, before.ID)
	}
	return nil
}

func (h *Host) loadEvicted() error {
	h.mu.evicted = make(map[uint64]nodemsg.Region)
	err := h.Storage.Scan(recoveredTable, nil, func(_, value []byte) error {
		before, err := nodemsg.DecodeRegion(value)
		h.mu.evicted[before.ID] = before
		return err
	})
	if err != nil {
		return fmt.Errorf("list recovered regions: %w", err)
	}
	return nil
}
