package directory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

const (
	// catalogRounds is how often all known members of the catalog are asked, and catalogPause the time between: together longer
	// than an election takes.
	catalogRounds = 8
	catalogPause  = 300 * time.Millisecond
)

// consult asks the catalog's leader: with here, if this node is the leader. The known members are asked in turn, and again while
// there is no leader.
func (d *Directory) consult(ctx context.Context, q nodemsg.Question, here func(*actor.Catalog) (nodemsg.Region, error)) (nodemsg.Region, error) {
	var failed error
	for range catalogRounds {
		if c := d.Catalog(); c != nil {
			region, err := here(c)
			if !errors.Is(err, actor.ErrNotHere) {
				return region, err
			}
			if root, err := c.Info(ctx); err == nil && root.Leader != "" && len(root.Members) > 0 {
				d.CacheCatalog(root)
			}
		}
		region, again, err := d.consultRound(ctx, q)
		if !again {
			return region, err
		}
		failed = err
		select {
		case <-ctx.Done():
			return nodemsg.Region{}, ctx.Err()
		case <-time.After(catalogPause):
		}
	}
	return nodemsg.Region{}, failed
}

// consultRound asks each known member once. Again reports that none of them leads, or answers.
func (d *Directory) consultRound(ctx context.Context, q nodemsg.Question) (region nodemsg.Region, again bool, err error) {
	d.mu.Lock()
	at := d.mu.catalog
	d.mu.Unlock()
	tried := map[string]bool{d.Self.Peer: true}
	for _, source := range []func() (nodemsg.Region, error){
		func() (nodemsg.Region, error) { return at, nil },
		func() (nodemsg.Region, error) {
			ctx, cancel := context.WithTimeout(ctx, transport.AskTimeout)
			defer cancel()
			return d.Records.Catalog(ctx)
		},
	} {
		if at, err = source(); err != nil {
			return nodemsg.Region{}, ctx.Err() == nil && d.Catalog() != nil, fmt.Errorf("find the catalog: %w", err)
		}
		for next := d.Detector.First(at, tried); next != ""; next = d.Detector.First(at, tried) {
			tried[next] = true
			answer, asked := d.askCatalog(ctx, next, q)
			switch {
			case asked == nil && answer.Region != nil && answer.Region.ID == world.CatalogID: // it is led elsewhere
				if answer.Region.Leader != "" && !tried[answer.Region.Leader] {
					at = *answer.Region
				}
				err = actor.ErrNotHere
			case asked == nil && answer.Region == nil:
				return nodemsg.Region{}, false, ErrNotFounded
			case asked == nil:
				at.Leader = next
				d.CacheCatalog(at)
				return *answer.Region, false, nil
			case answer.Error != "":
				return nodemsg.Region{}, false, asked
			default:
				d.Detector.Suspect(next)
				err = fmt.Errorf("ask the catalog on %s: %w", next, asked)
			}
			if ctx.Err() != nil {
				return nodemsg.Region{}, false, err
			}
		}
	}
	if err == nil {
		err = actor.ErrNotHere
	}
	return nodemsg.Region{}, true, err
}

// askCatalog asks a member of the catalog. A change takes a commit; a lookup is answered at once.
func (d *Directory) askCatalog(ctx context.Context, peer string, q nodemsg.Question) (nodemsg.Answer, error) {
	if q.Authority != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, lookTime)
		defer cancel()
	}
	return d.Questions.Ask(ctx, peer, q)
}

// CacheCatalog stores where the catalog is.
func (d *Directory) CacheCatalog(root nodemsg.Region) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.catalog = root
}

// CatalogLeader returns the peer that leads the catalog, as this node last knew, or as the DHT has it if this node never knew; ""
// if unknown. That peer may be down.
func (d *Directory) CatalogLeader(ctx context.Context) string {
	c := d.Catalog()
	if c != nil {
		if root, err := c.Info(ctx); err == nil && root.Leader != "" {
			return root.Leader
		}
	}
	d.mu.Lock()
	at := d.mu.catalog
	d.mu.Unlock()
	moved := c == nil && at.Leader == d.Self.Peer // this node led it, and no longer holds it
	if at.ID != 0 && !moved {
		return at.Leader
	}
	at, err := d.Records.Catalog(ctx)
	if err != nil {
		return ""
	}
	d.CacheCatalog(at)
	return at.Leader
}

// CatalogMembers returns the catalog's region as this node last knew it, or as the DHT has it.
func (d *Directory) CatalogMembers(ctx context.Context) (nodemsg.Region, error) {
	d.mu.Lock()
	at := d.mu.catalog
	d.mu.Unlock()
	if at.ID != 0 {
		return at, nil
	}
	return d.Records.Catalog(ctx)
}

// FromCatalog asks the catalog. It returns ErrNotFounded if there is no such region.
func (d *Directory) FromCatalog(ctx context.Context, pos grid.ChunkPos) (nodemsg.Region, error) {
	info, err := d.consult(ctx, nodemsg.Question{Authority: &nodemsg.Locate{Chunk: pos}},
		func(c *actor.Catalog) (nodemsg.Region, error) { return c.Locate(ctx, pos) })
	if err != nil {
		return nodemsg.Region{}, err
	}
	if !covers(info, pos) {
		return nodemsg.Region{}, fmt.Errorf("the catalog's reply does not match the question about chunk %v", pos)
	}
	return info, nil
}

// Exactly asks the catalog for the region of a cell, split or not. It returns ErrNotFounded if there is none.
func (d *Directory) Exactly(ctx context.Context, cell grid.Cell) (nodemsg.Region, error) {
	area := cell.Area()
	at := nodemsg.Locate{Chunk: grid.ChunkPos{X: area.MinX, Z: area.MinZ}, Label: cell.Label.Len()}
	info, err := d.consult(ctx, nodemsg.Question{Authority: &at}, func(c *actor.Catalog) (nodemsg.Region, error) { return c.At(ctx, cell) })
	if err != nil {
		return nodemsg.Region{}, err
	}
	return checkCell(info, cell)
}

// ByID asks the catalog for a region by its id. It returns ErrNotFounded if there is none.
func (d *Directory) ByID(ctx context.Context, id uint64) (nodemsg.Region, error) {
	info, err := d.consult(ctx, nodemsg.Question{Authority: &nodemsg.Locate{ID: id}},
		func(c *actor.Catalog) (nodemsg.Region, error) { return c.Find(ctx, id) })
	if err == nil && info.ID != id {
		err = fmt.Errorf("the catalog's reply does not match the question about region %d", id)
	}
	return info, err
}

// ReportMoved reports a region's members to the catalog and returns the region as the catalog then has it.
func (d *Directory) ReportMoved(ctx context.Context, info nodemsg.Region) (nodemsg.Region, error) {
	known, err := d.consult(ctx, nodemsg.Question{Moved: &info},
		func(c *actor.Catalog) (nodemsg.Region, error) { return c.Moved(ctx, info) })
	if err != nil {
		return nodemsg.Region{}, err
	}
	return checkCell(known, info.Cell)
}

// checkCell returns the region of the catalog's answer after checking that it is about the cell.
func checkCell(info nodemsg.Region, cell grid.Cell) (nodemsg.Region, error) {
	if info.Cell != cell || info.Leader == "" {
		return nodemsg.Region{}, fmt.Errorf("the catalog's reply does not match the question about cell %v", cell)
	}
	return info, nil
}

// covers reports whether a hint is about a region around the chunk, split or not, and names a leader.
func covers(info nodemsg.Region, pos grid.ChunkPos) bool {
	return info.Cell.Label.Len() >= grid.FoundingLabel && info.Cell.Contains(pos) && info.Leader != ""
}
