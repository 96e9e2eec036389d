package region

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/voxelpopuli/voxeld/internal/background"
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
func (o *opener) openCatalog(ctx context.Context) (*actor.Catalog, error) {
	if err := o.facts.Err(world.CatalogID); err != nil {
		return nil, fmt.Errorf("open catalog: %w", err)
	}
	g, err := o.Replicas.Open(ctx, replica.Founding{Group: world.CatalogID, Members: []string{o.Self.Peer}, Tables: actor.CatalogTables})
	if err != nil {
		return nil, fmt.Errorf("open catalog: %w", err)
	}
	return o.newCatalog(g)
}

func (o *opener) newCatalog(g *replica.Group) (*actor.Catalog, error) {
	return actor.NewCatalog(o.actorOptions(o.publisher.CatalogChanged), catalogRows(o.Storage, o.options.world), g)
}

// catalogRows returns how an actor reads the stored rows of the catalog.
func catalogRows(storage integrity.Storage, worldID string) actor.CatalogOptions {
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
	}
}

// openCatalogAgain opens the catalog, unless that is open, and starts it.
func (o *opener) openCatalogAgain(ctx context.Context) error {
	if o.Catalog() != nil {
		return nil
	}
	c, err := o.openCatalog(ctx)
	if err != nil {
		return err
	}
	return o.startCatalog(c)
}

// startCatalog starts a catalog that is open.
func (o *opener) startCatalog(c *actor.Catalog) error {
	o.setCatalog(c)
	if !o.Tasks.Start(func(ctx context.Context) { o.runCatalog(ctx, c) }) {
		stopped, cancel := context.WithCancel(context.Background())
		cancel()
		c.Run(stopped) // closes the group
		o.dropCatalog(c)
		c.Finish()
		return background.ErrStopping
	}
	return nil
}

// runCatalog keeps the catalog running until ctx ends or this node is no longer a member: it is isolated like a region
// if it fails, opened again, and quarantined if it fails again.
func (o *opener) runCatalog(ctx context.Context, c *actor.Catalog) {
	if err := o.executor.AdmitCatalog(ctx); err != nil {
		o.Logger.Warn("copy of the catalog dropped", "error", err)
		c.Remove(false)
	}
	for c != nil {
		ended := c.Run(ctx)
		if ended.Fault != nil {
			ended = o.isolate(ctx, catalogGroup(c), ended)
		}
		if ended.Fault == nil && !ended.Removed && !ended.Reopen {
			c.Finish()
			return // the node is stopping
		}
		o.dropCatalog(c)
		o.actors.CatalogGone()
		if ended.Removed {
			if err := o.Delete(nodemsg.Region{ID: world.CatalogID}); err != nil {
				o.Logger.Error("rows of the catalog stay on disk although this node is no longer a member", "error", err)
			}
			c.Finish()
			return
		}
		if ended.Then != nil {
			ended.Then()
		}
		c.Finish()
		c = o.reopenCatalogWhenDue(ctx)
	}
}

// reopenCatalogWhenDue opens the catalog again after a failure, when its pause is over or it is released. It returns
// nil if there is nothing left to open.
func (o *opener) reopenCatalogWhenDue(ctx context.Context) *actor.Catalog {
	for pause := copies.FirstPause; ; pause = min(2*pause, copies.MaxPause) {
		for {
			quarantined, until := o.facts.Quarantined(world.CatalogID), o.facts.Until(world.CatalogID)
			if !quarantined && !time.Now().Before(until) {
				break
			}
			wait := time.After(time.Until(until))
			if quarantined {
				wait = nil
			}
			select {
			case <-wait:
			case <-o.reopen:
			case <-ctx.Done():
				return nil
			}
		}
		if o.Catalog() != nil || o.facts.Err(world.CatalogID) != nil {
			return nil // it was joined meanwhile, or is to be replaced
		}
		c, err := o.openCatalog(ctx)
		if err == nil {
			o.setCatalog(c)
			o.facts.Opened(world.CatalogID)
			o.Logger.Info("catalog opened again")
			return c
		}
		if ctx.Err() != nil || errors.Is(err, replica.ErrOpen) || errors.Is(err, replica.ErrTombstone) {
			return nil
		}
		o.executor.NotOpened(nodemsg.Region{ID: world.CatalogID}, err)
		o.facts.Postpone(world.CatalogID, pause)
	}
}
