package region

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/background"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/region/placement"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const (
	// republishEvery is how often a leader renews its records, which the DHT keeps for 48 hours.
	republishEvery = 6 * time.Hour
	// republishRetry is the pause after an attempt that failed for some of them.
	republishRetry = time.Minute
)

// publisher stores and publishes what this node knows of the regions that it leads.
type publisher struct {
	self       string
	registry   *directory.Registry
	directory  *directory.Directory
	records    directory.Records
	supervisor *placement.Supervisor
	damages    *integrity.Damages
	tasks      *background.Tasks
	catalog    func() *actor.Catalog
	logger     *slog.Logger

	mu struct {
		sync.Mutex
		changes map[uint64]nodemsg.Region // newest change of each region that is being published, by id
	}
}

// changed stores what this node now knows of a region that it is a member of. If this node leads it, the network and the
// neighbours are informed. Updates of one region are published in order, and only the newest one.
func (p *publisher) changed(info nodemsg.Region) {
	p.mu.Lock()
	_, under := p.mu.changes[info.ID]
	p.mu.changes[info.ID] = info
	p.mu.Unlock()
	if info.Leader != p.self {
		p.damages.LedElsewhere(info.ID)
	}
	if !under {
		p.tasks.Start(func(ctx context.Context) { p.publishChanges(ctx, info.ID) })
	}
}

func (p *publisher) publishChanges(ctx context.Context, id uint64) {
	var done nodemsg.Region
	for {
		p.mu.Lock()
		info := p.mu.changes[id]
		if reflect.DeepEqual(info, done) || ctx.Err() != nil {
			delete(p.mu.changes, id)
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
		p.publishChange(ctx, info)
		done = info
	}
}

func (p *publisher) publishChange(ctx context.Context, info nodemsg.Region) {
	if err := p.registry.Put(info); err != nil {
		p.logger.Warn("region not stored", "cell", info.Cell.String(), "error", err)
	}
	if info.Leader != p.self {
		return
	}
	p.directory.CacheRoute(info)
	if err := p.supervisor.Announce(ctx, info); err != nil {
		p.logger.Debug("region's members not announced", "cell", info.Cell.String(), "error", err) // tried again
	}
	if err := p.records.PutRegion(ctx, info); err != nil {
		p.logger.Warn("region not published", "cell", info.Cell.String(), "error", err)
	}
	p.directory.Introduce(ctx, info)
}

// republish renews the records of all regions that this node leads: at the start, when the network may have lost them, and every
// republishEvery.
func (p *publisher) republish(ctx context.Context) {
	for {
		pause := republishEvery
		if err := p.publish(ctx); err != nil && ctx.Err() == nil {
			p.logger.Warn("records not renewed", "error", err)
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
func (p *publisher) publish(ctx context.Context) error {
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
	if c := p.catalog(); c != nil {
		if root, err := c.Info(ctx); err == nil && root.Leader == p.self {
			note(p.records.PutCatalog(ctx, root))
		}
	}
	var led []nodemsg.Region
	all, err := p.registry.All()
	if err != nil {
		return errors.Join(first, err)
	}
	for _, info := range all {
		if info.Leader == p.self {
			led = append(led, info)
		}
	}
	for _, info := range led {
		note(p.records.PutRegion(ctx, info))
	}
	if first != nil {
		return fmt.Errorf("publish %d of %d records: %w", failed, len(led)+1, first)
	}
	return nil
}

// catalogChanged publishes that this node leads the catalog.
func (p *publisher) catalogChanged(root nodemsg.Region) {
	if root.Leader != p.self {
		return
	}
	p.directory.CacheCatalog(root)
	p.tasks.Start(func(ctx context.Context) {
		if err := p.records.PutCatalog(ctx, root); err != nil {
			p.logger.Warn("catalog not published", "error", err)
		}
	})
}
