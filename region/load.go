package region

import (
	"context"
	"errors"
	"fmt"

	"github.com/voxelpopuli/voxeld/region/background"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file opens the regions that this node is a member of, and starts their loops.

// loaded returns the region's loop and starts it if the region is not loaded.
func (h *Host) loaded(ctx context.Context, hello nodemsg.Hello) (*loop, error) {
	l := h.loop(hello.Region)
	if l == nil {
		var err error
		l, err = h.loading.Do(ctx, h.tasks, helloKey(hello), func(ctx context.Context) (*loop, error) {
			if l := h.loop(hello.Region); l != nil {
				return l, nil // loaded since we looked
			}
			if h.failures.quarantined(hello.Region) {
				return h.openReadOnly(hello)
			}
			return h.load(ctx, hello)
		})
		if err != nil {
			return nil, err
		}
	}
	if l.info.Cell != hello.Cell {
		return nil, ErrNotHere
	}
	return l, nil
}

// loadGroup is loaded for callers that need the region's group: a quarantined region has none.
func (h *Host) loadGroup(ctx context.Context, hello nodemsg.Hello) (*loop, error) {
	l, err := h.loaded(ctx, hello)
	if err == nil && l.raft == nil {
		return nil, errQuarantined
	}
	return l, err
}

// load opens the region's group and starts its loop. A region that was never here is opened only if the catalog's log names this
// node a member (docs/adr/0004).
func (h *Host) load(ctx context.Context, hello nodemsg.Hello) (*loop, error) {
	info, err := h.membership(ctx, hello.Region)
	if err != nil {
		return nil, err
	}
	if info.Cell != hello.Cell {
		return nil, ErrNotHere
	}
	if err := h.corruptErr(info.ID); err != nil {
		h.logClosed(info, err)
		return nil, fmt.Errorf("load region %d: %w", info.ID, err)
	}
	if err := h.admit(ctx, info); err != nil {
		return nil, err
	}
	if err := h.validateCopy(ctx, info); err != nil {
		return nil, err
	}
	g, err := h.open(ctx, info)
	if err == nil {
		var l *loop
		if l, err = h.serve(info, g); err == nil {
			h.failures.opened(info.ID)
			return l, nil
		}
	}
	if isDamage(err) {
		h.markCorrupt(info, err) // this copy is replaced; it does not count as a failure of the region
	} else {
		h.notOpened(info, err)
	}
	return nil, err
}

// readLand reads the region's land from storage.
func (h *Host) readLand(info nodemsg.Region) (*world.Land, error) {
	land := world.NewLand(info.ID, info.Cell, h.Height)
	var err error
	if caught := catchFault(func() { err = h.Storage.Scan(world.LandTable, land.Prefix(), land.Load) }); caught != nil {
		err = caught
	}
	if err != nil {
		return nil, fmt.Errorf("load region %d: %w", info.ID, err)
	}
	return land, nil
}

// serve starts the loop of a region whose group is open.
func (h *Host) serve(info nodemsg.Region, g *replica.Group) (*loop, error) {
	land, err := h.readLand(info)
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	h.Logger.Debug("region loaded", "region", info.ID, "cell", info.Cell.String(), "edits", land.Edits())
	l := newLoop(h, info, g, land)
	l.raft = g
	l.applyMembers(g.Configuration())
	l.careful = len(h.failures.failedPeers(info.ID)) > 0
	h.pinned(basesOf(land.Pins()))
	h.mu.Lock()
	h.mu.loops[info.ID] = l
	h.mu.Unlock()
	h.metrics.loaded.Inc()
	if h.failures.quarantined(info.ID) { // quarantined since this began, when there was no loop to end yet
		l.closeReason = quarantinedReason
	}
	if !h.start(func(ctx context.Context) { h.runLoop(ctx, l) }) {
		l.end("the node is stopping")
		h.unloaded(l)
		return nil, background.ErrStopping
	}
	return l, nil
}

// unloaded removes a loop that has ended from the list, and only then closes done, so that callers waiting for done can load the
// region again.
func (h *Host) unloaded(l *loop) {
	h.mu.Lock()
	delete(h.mu.loops, l.info.ID)
	h.mu.Unlock()
	h.metrics.loaded.Dec()
	close(l.done)
}

// membership returns the region that makes this node a member: from the stored row, or from the catalog.
func (h *Host) membership(ctx context.Context, id uint64) (nodemsg.Region, error) {
	row, err := h.Storage.Get(regionTable, regionKey(id))
	if err != nil {
		return nodemsg.Region{}, fmt.Errorf("look up region %d: %w", id, err)
	}
	if row != nil {
		info, err := nodemsg.DecodeRegion(row)
		if err != nil {
			return nodemsg.Region{}, fmt.Errorf("read region %d: %w", id, err)
		}
		return info, nil
	}
	info, err := h.Directory.byID(ctx, id)
	if errors.Is(err, errNotFounded) {
		return nodemsg.Region{}, ErrNotHere
	}
	if err != nil {
		return nodemsg.Region{}, err
	}
	if !hasMember(info, h.Self.Peer) {
		return nodemsg.Region{}, ErrNotHere
	}
	return info, nil
}

// open opens the region's group. If it was not founded here and this node is one of its first members, it is founded. Later
// members are invited. But a first member that was away until the members had changed is neither founder nor learner, so nobody
// invites it: it joins as the replica that the catalog has.
func (h *Host) open(ctx context.Context, info nodemsg.Region) (*replica.Group, error) {
	has, err := h.Replicas.Has(info.ID)
	if err != nil {
		return nil, fmt.Errorf("find region %d: %w", info.ID, err)
	}
	if !has && info.Epoch != firstEpoch {
		return h.joinLate(ctx, info)
	}
	founding := replica.Founding{Group: info.ID, Tables: landTables(info.ID)}
	for _, m := range info.Members {
		founding.Members = append(founding.Members, m.Peer)
	}
	if !has {
		if err := h.store(info); err != nil {
			return nil, err
		}
	}
	g, err := h.Replicas.Open(ctx, founding)
	if err != nil {
		return nil, fmt.Errorf("open region %d: %w", info.ID, err)
	}
	return g, nil
}

// joinLate joins a region of which nothing is stored here, as the replica that the catalog has.
func (h *Host) joinLate(ctx context.Context, info nodemsg.Region) (*replica.Group, error) {
	join := replica.JoinInfo{Group: info.ID, Tables: landTables(info.ID)}
	for _, m := range info.Members {
		join.Members = append(join.Members, replica.Member{ID: m.Replica, Peer: m.Peer, Learner: m.Learner})
		if m.Peer == h.Self.Peer {
			join.ID = m.Replica
		}
	}
	if join.ID == 0 {
		return nil, fmt.Errorf("region %d no longer has its first members: %w", info.ID, ErrNotHere)
	}
	if err := h.store(info); err != nil {
		return nil, err
	}
	g, err := h.Replicas.Join(ctx, join)
	if err != nil {
		return nil, fmt.Errorf("join region %d: %w", info.ID, err)
	}
	return g, nil
}

// firstEpoch is the epoch of a region that still has the members it was founded with.
const firstEpoch = 1

// landTables names the rows that a snapshot of the region carries.
func landTables(id uint64) []replica.TablePrefix {
	return []replica.TablePrefix{{Table: world.LandTable, Prefix: regionKey(id)}}
}

// helloKey identifies what a gateway asks for.
func helloKey(hello nodemsg.Hello) string { return fmt.Sprintf("%d %v", hello.Region, hello.Cell) }
