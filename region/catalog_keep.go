package region

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file keeps the catalog running on its members: it is isolated like a region if it fails, opened again, and quarantined if
// it fails again.

// runCatalog runs the catalog until ctx ends or this node is no longer a member.
func (h *Host) runCatalog(ctx context.Context, c *catalog) {
	if err := h.validateCatalogCopy(ctx, c); err != nil {
		h.Logger.Warn("copy of the catalog dropped", "error", err)
		c.removed = true
	}
	for c != nil {
		caught := catchFault(func() { c.run(ctx) })
		if caught == nil {
			caught = c.fault
		}
		if caught != nil {
			h.isolateCatalog(ctx, c, caught)
		}
		if caught == nil && !c.removed && !c.quarantined && c.afterEnd == nil {
			return // the node is stopping
		}
		h.mu.Lock()
		if h.mu.catalog == c { // a later replica of it may have joined since c ended
			h.mu.catalog = nil
		}
		h.mu.Unlock()
		h.metrics.catalog.Set(0)
		if c.removed {
			if err := h.deleteCatalog(); err != nil {
				h.Logger.Error("rows of the catalog stay on disk although this node is no longer a member", "error", err)
			}
			return
		}
		if c.afterEnd != nil {
			c.afterEnd()
		}
		c = h.reopenCatalogWhenDue(ctx)
	}
}

// isolateCatalog is isolate for the catalog.
func (h *Host) isolateCatalog(ctx context.Context, c *catalog, f *fault) {
	h.metrics.isolated.WithLabelValues(f.kind.String()).Inc()
	h.Logger.Error("catalog fenced", "reason", f.kind.String(), "error", f, "stack", string(f.stack))
	c.inbox.Close()
	w := h.catalogGroup(c)
	if heir := h.successor(w); c.leading && heir != "" {
		ctx, cancel := context.WithTimeout(ctx, handOffTime)
		defer cancel()
		err := c.group.Transfer(heir)
		if err == nil {
			err = h.awaitGroup(ctx, func() bool { return !c.group.Status().Self })
		}
		if err != nil {
			h.Logger.Warn("leadership of the catalog not handed over", "peer", heir, "error", err)
		}
	}
	info := catalogOf(c.group.Configuration())
	if err := c.group.Close(); err != nil {
		h.Logger.Error("close catalog", "error", err)
	}
	h.recordFailure(info, f, c.leading)
}

// reopenCatalogWhenDue opens the catalog again after a failure, when its pause is over or it is released. It returns nil if there
// is nothing left to open.
func (h *Host) reopenCatalogWhenDue(ctx context.Context) *catalog {
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		r := h.failures.look(world.CatalogID)
		for r.quarantined || time.Now().Before(r.until) {
			wait := time.After(max(0, time.Until(r.until)))
			if r.quarantined {
				wait = nil
			}
			select {
			case <-wait:
			case <-h.reopenCatalog:
			case <-ctx.Done():
				return nil
			}
			r = h.failures.look(world.CatalogID)
		}
		if h.root() != nil {
			return nil // it was joined meanwhile
		}
		c, err := h.openCatalog(ctx)
		if err == nil {
			h.mu.Lock()
			h.mu.catalog = c
			h.mu.Unlock()
			h.failures.opened(world.CatalogID)
			h.Logger.Info("catalog opened again")
			return c
		}
		if ctx.Err() != nil || errors.Is(err, replica.ErrOpen) || errors.Is(err, replica.ErrTombstone) {
			return nil
		}
		h.notOpened(nodemsg.Region{ID: world.CatalogID}, err)
		h.failures.with(world.CatalogID, func(r *failureRecord) { r.until = time.Now().Add(pause) })
	}
}

// catalogOf returns the catalog's region for a configuration of its group. Only the peers are filled in.
func catalogOf(conf replica.Configured) nodemsg.Region {
	info := nodemsg.Region{ID: world.CatalogID, Epoch: epochOf(conf)}
	for _, m := range conf.Members {
		info.Members = append(info.Members, nodemsg.Member{Peer: m.Peer, Replica: m.ID, Learner: m.Learner})
	}
	return info
}

// catalogRegion returns the catalog's members as this node knows them, or ErrNotHere if it is not a member.
func (h *Host) catalogRegion() (nodemsg.Region, error) {
	if c := h.root(); c != nil {
		return catalogOf(c.group.Configuration()), nil
	}
	p, err := h.Replicas.Position(world.CatalogID)
	switch {
	case errors.Is(err, replica.ErrNotOpen), errors.Is(err, replica.ErrTombstone):
		return nodemsg.Region{}, ErrNotHere
	case err != nil:
		return nodemsg.Region{}, fmt.Errorf("look up the catalog: %w", err)
	}
	return catalogOf(p.Members), nil
}
