package region

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/copies"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
	"github.com/voxelpopuli/voxeld/world/acts"
)

// openCatalog opens the catalog on a node that is a member of it.
func (r *regions) openCatalog(ctx context.Context) (*actor.Catalog, error) {
	if err := r.facts.Err(world.CatalogID); err != nil {
		return nil, fmt.Errorf("open catalog: %w", err)
	}
	g, err := r.Replicas.Open(ctx, replica.Founding{Group: world.CatalogID, Members: []string{r.Self.Peer}, Tables: actor.CatalogTables})
	if err != nil {
		return nil, fmt.Errorf("open catalog: %w", err)
	}
	return r.newCatalog(g)
}

func (r *regions) newCatalog(g *replica.Group) (*actor.Catalog, error) {
	return actor.NewCatalog(r.options(r.publisher.CatalogChanged), CatalogRows(r.Storage, r.world, r.probeCatalog), g)
}

// CatalogRows returns how an actor reads the stored rows of the catalog.
func CatalogRows(storage integrity.Storage, worldID string, probe func(entry []byte)) actor.CatalogOptions {
	return actor.CatalogOptions{
		Row: func(key string) []byte {
			value, err := storage.Get(world.CatalogTable, []byte(key))
			if err != nil {
				panic(&actor.Fault{Kind: actor.Broken, Cause: fmt.Errorf("read the catalog: %w", err)})
			}
			return value
		},
		Rows: func(from []byte, visit func(key, value []byte) error) (err error) {
			if caught := actor.Catch(func() { err = kv.ScanFrom(storage, world.CatalogTable, nil, from, visit) }); caught != nil {
				return caught
			}
			return err
		},
		ActRow: func(number uint64) []byte {
			value, err := storage.Get(acts.Table, acts.Key(number))
			if err != nil {
				panic(&actor.Fault{Kind: actor.Broken, Cause: fmt.Errorf("read an act: %w", err)})
			}
			return value
		},
		ActRows: func(visit func(key, value []byte) error) error { return storage.Scan(acts.Table, nil, visit) },
		Stored:  func() (uint64, error) { return replica.AppliedIn(storage.Get, world.CatalogID) },
		Signed:  func(a nodemsg.Act) bool { return policy.Signed(worldID, a) },
		Probe:   probe,
	}
}

// runCatalog keeps the catalog running until ctx ends or this node is no longer a member: it is isolated like a region
// if it fails, opened again, and quarantined if it fails again.
func (r *regions) runCatalog(ctx context.Context, c *actor.Catalog) {
	if err := r.executor.AdmitCatalog(ctx); err != nil {
		r.Logger.Warn("copy of the catalog dropped", "error", err)
		c.Remove(false)
	}
	for c != nil {
		ended := c.Run(ctx)
		if ended.Fault != nil {
			ended = r.isolate(ctx, r.catalogGroup(c), ended)
		}
		if ended.Fault == nil && !ended.Removed && !ended.Reopen {
			c.Finish()
			return // the node is stopping
		}
		r.dropCatalog(c)
		r.actors.CatalogGone()
		if ended.Removed {
			if err := r.deleteCatalog(); err != nil {
				r.Logger.Error("rows of the catalog stay on disk although this node is no longer a member", "error", err)
			}
			c.Finish()
			return
		}
		if ended.Then != nil {
			ended.Then()
		}
		c.Finish()
		c = r.reopenCatalogWhenDue(ctx)
	}
}

// reopenCatalogWhenDue opens the catalog again after a failure, when its pause is over or it is released. It returns
// nil if there is nothing left to open.
func (r *regions) reopenCatalogWhenDue(ctx context.Context) *actor.Catalog {
	for pause := copies.FirstPause; ; pause = min(2*pause, copies.MaxPause) {
		for {
			quarantined, until := r.facts.Quarantined(world.CatalogID), r.facts.Until(world.CatalogID)
			if !quarantined && !time.Now().Before(until) {
				break
			}
			wait := time.After(time.Until(until))
			if quarantined {
				wait = nil
			}
			select {
			case <-wait:
			case <-r.reopen:
			case <-ctx.Done():
				return nil
			}
		}
		if r.Catalog() != nil || r.facts.Err(world.CatalogID) != nil {
			return nil // it was joined meanwhile, or is to be replaced
		}
		c, err := r.openCatalog(ctx)
		if err == nil {
			r.setCatalog(c)
			r.facts.Opened(world.CatalogID)
			r.Logger.Info("catalog opened again")
			return c
		}
		if ctx.Err() != nil || errors.Is(err, replica.ErrOpen) || errors.Is(err, replica.ErrTombstone) {
			return nil
		}
		r.executor.NotOpened(nodemsg.Region{ID: world.CatalogID}, err)
		r.facts.Postpone(world.CatalogID, pause)
	}
}
