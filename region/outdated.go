package region

import (
	"context"
	"fmt"

	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/background"
	"github.com/voxelpopuli/voxeld/world"
)

// This file keeps replicas out whose node was put back to an earlier state (docs/adr/0024).

// admit reports whether raft messages of the peer count here. The two nodes show each other first that their data is not older than
// what the other one has seen of them.
func (h *Host) admit(ctx context.Context, peer string) bool {
	if h.Incarnations == nil {
		return true
	}
	if err := h.Incarnations.Exchange(ctx, peer); err != nil {
		h.Logger.Debug("raft messages refused", "peer", peer, "error", err)
		return false
	}
	return true
}

// markOutdated marks the replicas that must not be used because the node was put back, when it starts and whenever it turns out later.
func (h *Host) markOutdated() error {
	if h.Incarnations == nil {
		return nil
	}
	h.Incarnations.OnOutdated(h.abandon)
	return h.reseeder.MarkOutdated(h.Incarnations.Outdated())
}

// replaced records that the replica of a group that must not be used is gone.
func (h *Host) replaced(group uint64) error {
	if h.Incarnations == nil {
		return nil
	}
	return h.Incarnations.Replaced(group)
}

// reopenCatalog opens the catalog again, whose copy is used after all.
func (h *Host) reopenCatalog(ctx context.Context) error {
	if h.regions.Catalog() != nil {
		return nil
	}
	c, err := h.regions.openCatalog(ctx)
	if err != nil {
		return err
	}
	h.regions.setCatalog(c)
	if !h.tasks.Start(func(ctx context.Context) { h.regions.runCatalog(ctx, c) }) {
		return background.ErrStopping
	}
	return nil
}

// abandon closes replicas that must not be used any more.
func (h *Host) abandon(ctx context.Context, replicas map[uint64]uint64) error {
	if err := h.reseeder.MarkOutdated(replicas); err != nil {
		return err
	}
	var open []*actor.Actor
	for id := range replicas {
		if l := h.regions.Loaded(id); l != nil {
			open = append(open, l.Actor)
		}
	}
	if c := h.regions.Catalog(); c != nil && replicas[world.CatalogID] != 0 {
		open = append(open, c.Actor)
	}
	for _, a := range open {
		a.Close("the data of this node was put back to an earlier state")
	}
	for _, a := range open {
		select {
		case <-a.Done():
		case <-ctx.Done():
			return fmt.Errorf("close region %d: %w", a.ID(), ctx.Err())
		}
	}
	return nil
}
