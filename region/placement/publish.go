package placement

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/internal/background"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const (
	// republishEvery is how often a leader renews its records, which the DHT keeps for 48 hours.
	republishEvery = 6 * time.Hour
	// republishRetry is the pause after an attempt that failed for some of them.
	republishRetry = time.Minute
)

// PublisherOptions are what a Publisher needs. All fields are required.
type PublisherOptions struct {
	Self         string
	Registry     *directory.Registry
	Directory    *directory.Directory
	Records      directory.Records
	Supervisor   *Supervisor
	LedElsewhere func(id uint64)
	Tasks        *background.Tasks
	Stored       func(id uint64) (bool, error) // whether this node has a copy of the region
	Catalog      func() *actor.Catalog         // the catalog if this node is a member of it, else nil
	Logger       *slog.Logger
}

// Publisher stores and publishes what this node knows of the regions that it leads. Any goroutine may use it.
type Publisher struct {
	PublisherOptions

	mu struct {
		sync.Mutex
		changes map[uint64]nodemsg.Region // newest change of each region that is being published, by id
	}
}

// NewPublisher returns a publisher.
func NewPublisher(o PublisherOptions) *Publisher {
	p := &Publisher{PublisherOptions: o}
	p.mu.changes = make(map[uint64]nodemsg.Region)
	return p
}

// Changed stores what this node now knows of a region that it is a member of. If this node leads it, the network and
// the neighbours are informed. Updates of one region are published in order, and only the newest one.
func (p *Publisher) Changed(info nodemsg.Region) {
	p.mu.Lock()
	_, under := p.mu.changes[info.ID]
	p.mu.changes[info.ID] = info
	p.mu.Unlock()
	if info.Leader != p.Self {
		p.LedElsewhere(info.ID)
	}
	if !under {
		p.Tasks.Start(func(ctx context.Context) { p.publishChanges(ctx, info.ID) })
	}
}

func (p *Publisher) publishChanges(ctx context.Context, id uint64) {
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

func (p *Publisher) publishChange(ctx context.Context, info nodemsg.Region) {
	if stored, err := p.Stored(info.ID); err == nil && !stored {
		return // the region was deleted here meanwhile, and so was its row
	}
	if err := p.Registry.Put(info); err != nil {
		p.Logger.Warn("region not stored", "cell", info.Cell.String(), "error", err)
	}
	if info.Leader != p.Self {
		p.Directory.AddHint(info)
		return
	}
	p.Directory.CacheOwn(info)
	var introduced sync.WaitGroup
	defer introduced.Wait()
	introduced.Go(func() { p.Directory.Introduce(ctx, info) }) // the neighbours need not wait for the catalog and the DHT
	if err := p.Supervisor.Announce(ctx, info); err != nil {
		p.Logger.Debug("region's members not announced", "cell", info.Cell.String(), "error", err) // tried again
	}
	if err := p.Records.PutRegion(ctx, info); err != nil {
		p.Logger.Warn("region not published", "cell", info.Cell.String(), "error", err)
	}
}

// Republish renews the records of all regions that this node leads: at the start, when the network may have lost them,
// and every republishEvery.
func (p *Publisher) Republish(ctx context.Context) {
	for {
		pause := republishEvery
		if err := p.publish(ctx); err != nil && ctx.Err() == nil {
			p.Logger.Warn("records not renewed", "error", err)
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
func (p *Publisher) publish(ctx context.Context) error {
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
	if c := p.Catalog(); c != nil {
		if root, err := c.Info(ctx); err == nil && root.Leader == p.Self {
			note(p.Records.PutCatalog(ctx, root))
		}
	}
	var led []nodemsg.Region
	all, err := p.Registry.All()
	if err != nil {
		return errors.Join(first, err)
	}
	for _, info := range all {
		if info.Leader == p.Self {
			led = append(led, info)
		}
	}
	for _, info := range led {
		note(p.Records.PutRegion(ctx, info))
	}
	if first != nil {
		return fmt.Errorf("publish %d of %d records: %w", failed, len(led)+1, first)
	}
	return nil
}

// CatalogChanged publishes that this node leads the catalog.
func (p *Publisher) CatalogChanged(root nodemsg.Region) {
	if root.Leader != p.Self {
		return
	}
	p.Directory.CacheCatalog(root)
	p.Tasks.Start(func(ctx context.Context) {
		if err := p.Records.PutCatalog(ctx, root); err != nil {
			p.Logger.Warn("catalog not published", "error", err)
		}
	})
}
