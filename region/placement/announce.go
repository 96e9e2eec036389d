package placement

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/internal/background"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// announcements are the regions led here, as the catalog has them. Any goroutine may use them.
type announcements struct {
	directory *directory.Directory
	tasks     *background.Tasks
	logger    *slog.Logger

	mu struct {
		sync.Mutex
		of       map[uint64]announcement
		renewing int // repeated reports that are under way
	}
}

func newAnnouncements(d *directory.Directory, t *background.Tasks, l *slog.Logger) *announcements {
	a := &announcements{directory: d, tasks: t, logger: l}
	a.mu.of = make(map[uint64]announcement)
	return a
}

// announcement is a region as the catalog had it at a time.
type announcement struct {
	region nodemsg.Region
	at     time.Time
}

const (
	// announcedFor is how long the catalog is taken to have what was reported to it. If it was recovered from an old
	// copy since, it lacks that.
	announcedFor = 10 * time.Minute
	// maxRenewing is how many regions are reported again at the same time.
	maxRenewing = 8
)

// Announce reports the region's members to the catalog, unless it has them. It does not wait for the catalog to hear of
// them again.
func (a *announcements) Announce(ctx context.Context, info nodemsg.Region) error {
	founded := info.Epoch == actor.FirstEpoch && info.Split == 0 && info.Merged == 0
	if founded || info.ID == world.CatalogID {
		return nil
	}
	if !a.has(info) {
		return a.report(ctx, info)
	}
	if a.renew(info.ID) {
		a.tasks.Start(func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, background.AttemptTime)
			defer cancel()
			defer a.renewed()
			if err := a.report(ctx, info); err != nil {
				a.logger.Debug("region's members not announced again", "cell", info.Cell.String(), "error", err)
			}
		})
	}
	return nil
}

// has reports whether the catalog had the region as it is.
func (a *announcements) has(info nodemsg.Region) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	had, ok := a.mu.of[info.ID]
	return ok && !info.Newer(had.region)
}

// renew reports whether the region is to be reported again now. If so, it counts as reported, and renewed is called
// later.
func (a *announcements) renew(id uint64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	had := a.mu.of[id]
	if time.Since(had.at) <= announcedFor || a.mu.renewing >= maxRenewing {
		return false
	}
	a.mu.renewing++
	a.mu.of[id] = announcement{had.region, time.Now()}
	return true
}

// renewed ends what a renew that returned true began.
func (a *announcements) renewed() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.renewing--
}

func (a *announcements) report(ctx context.Context, info nodemsg.Region) error {
	known, err := a.directory.ReportMoved(ctx, info)
	if err != nil {
		return fmt.Errorf("report to the catalog: %w", err)
	}
	if info.Newer(known) {
		return fmt.Errorf("the catalog did not accept epoch %d and split %d of region %d", info.Epoch, info.Split, info.ID)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.of[info.ID] = announcement{known, time.Now()}
	return nil
}

// known lists the regions that were announced.
func (a *announcements) known() []uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Keys(a.mu.of))
}

// forget forgets a region that was deleted here.
func (a *announcements) forget(id uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.mu.of, id)
}
