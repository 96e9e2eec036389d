package directory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

const (
	// catalogRounds is how often the catalog's leader is looked for, and catalogPause the time between: together longer
	// than an election takes.
	catalogRounds = 8
	catalogPause  = 300 * time.Millisecond
)

// consult asks the catalog's leader about a region: with here, if this node is the leader. It is asked again while
// there is no leader.
func consult(ctx context.Context, d *Directory, q nodemsg.Question, here func(*actor.Catalog) (nodemsg.Region, error)) (nodemsg.Region, error) {
	answer, err := d.Consult(ctx, q, func(c *actor.Catalog) (nodemsg.Answer, error) {
		region, err := here(c)
		return nodemsg.Answer{Region: &region}, err
	})
	switch {
	case err != nil:
		return nodemsg.Region{}, err
	case answer.Region == nil:
		return nodemsg.Region{}, ErrNotFounded
	}
	region := *answer.Region
	if region.Leader == "" && len(region.Members) > 0 { // whoever reported it knew none
		region.Leader = region.Members[0].Peer
	}
	return region, nil
}

// Consult asks the catalog's leader: with here, if this node is the leader. It is asked again while there is no leader.
func (d *Directory) Consult(ctx context.Context, q nodemsg.Question, here func(*actor.Catalog) (nodemsg.Answer, error)) (nodemsg.Answer, error) {
	var failed error
	for range catalogRounds {
		if c := d.Catalog(); c != nil {
			answer, err := here(c)
			if !errors.Is(err, actor.ErrNotHere) {
				return answer, err
			}
			if root, err := c.Info(ctx); err == nil && root.Leader != "" && len(root.Members) > 0 {
				d.CacheCatalog(root)
			}
		}
		answer, again, err := d.consultLeader(ctx, q)
		if !again {
			return answer, err
		}
		failed = err
		select {
		case <-ctx.Done():
			return nodemsg.Answer{}, ctx.Err()
		case <-time.After(catalogPause):
		}
	}
	return nodemsg.Answer{}, failed
}

// consultLeader asks the leader that this node knows, and if it does not lead any more, the one that is found. Again
// reports that there is none, or that it does not answer.
func (d *Directory) consultLeader(ctx context.Context, q nodemsg.Question) (answer nodemsg.Answer, again bool, err error) {
	d.mu.Lock()
	known := d.mu.catalog.Leader
	d.mu.Unlock()
	if asked := known != "" && known != d.Self.Peer && !d.Detector.Suspected(known); !asked {
		known = ""
	} else if answer, again, err = d.askLeader(ctx, known, q); !again {
		return answer, false, err
	}
	at, finding := d.FindCatalog(ctx)
	switch {
	case finding != nil:
		return answer, ctx.Err() == nil && (errors.Is(finding, errNoLeader) || d.Catalog() != nil), finding
	case at.Leader == d.Self.Peer:
		return answer, true, actor.ErrNotHere
	case at.Leader == known:
		return answer, true, err
	}
	return d.askLeader(ctx, at.Leader, q)
}

// askLeader asks the node that should lead the catalog. Again reports that it does not, or does not answer.
func (d *Directory) askLeader(ctx context.Context, leader string, q nodemsg.Question) (answer nodemsg.Answer, again bool, err error) {
	asking := ctx
	if q.Authority != nil || q.Acts != nil { // a change takes a commit; a lookup is answered at once
		var cancel context.CancelFunc
		asking, cancel = context.WithTimeout(ctx, lookTime)
		defer cancel()
	}
	answer, err = d.Questions.Ask(asking, leader, q)
	switch {
	case err == nil && answer.Region != nil && answer.Region.ID == world.CatalogID: // it is led elsewhere
		return nodemsg.Answer{}, true, actor.ErrNotHere
	case err == nil || answer.Error != "":
		return answer, false, err
	}
	if ctx.Err() == nil {
		d.Detector.Suspect(leader)
	}
	return nodemsg.Answer{}, ctx.Err() == nil, fmt.Errorf("ask the catalog on %s: %w", leader, err)
}

// CatalogLeader returns the peer that leads the catalog, as this node last knew, or as it is found if this node never
// knew; "" if unknown. That peer may be down.
func (d *Directory) CatalogLeader(ctx context.Context) string {
	if c := d.Catalog(); c != nil {
		if root, err := c.Info(ctx); err == nil && root.Leader != "" {
			return root.Leader
		}
	}
	at, err := d.CatalogMembers(ctx)
	if err != nil {
		return ""
	}
	return at.Leader
}

// CatalogMembers returns the catalog's region as this node knows it, else as NewestCatalog does.
func (d *Directory) CatalogMembers(ctx context.Context) (nodemsg.Region, error) {
	d.mu.Lock()
	at := d.mu.catalog
	d.mu.Unlock()
	if moved := at.Leader == d.Self.Peer && d.Catalog() == nil; at.Leader != "" && !moved { // this node led it, and no longer holds it
		return at, nil
	}
	return d.NewestCatalog(ctx)
}

// NewestCatalog returns the catalog's region as its members say now. If they agree on no leader, it is what the DHT
// has, which may be old, or a lie.
func (d *Directory) NewestCatalog(ctx context.Context) (nodemsg.Region, error) {
	at, err := d.FindCatalog(ctx)
	if errors.Is(err, errNoLeader) {
		return d.Records.Catalog(ctx)
	}
	return at, err
}

// FromCatalog asks the catalog. It returns ErrNotFounded if there is no such region.
func (d *Directory) FromCatalog(ctx context.Context, pos grid.ChunkPos) (nodemsg.Region, error) {
	info, err := consult(ctx, d, nodemsg.Question{Authority: &nodemsg.Locate{Chunk: pos}},
		func(c *actor.Catalog) (nodemsg.Region, error) { return c.Locate(ctx, pos) })
	if err != nil {
		return nodemsg.Region{}, err
	}
	if !covers(info, pos) {
		return nodemsg.Region{}, fmt.Errorf("the catalog's reply does not match the question about chunk %v", pos)
	}
	return d.listed.put(info), nil
}

// Exactly asks the catalog for the region of a cell, split or not. It returns ErrNotFounded if there is none.
func (d *Directory) Exactly(ctx context.Context, cell grid.Cell) (nodemsg.Region, error) {
	area := cell.Area()
	at := nodemsg.Locate{Chunk: grid.ChunkPos{X: area.MinX, Z: area.MinZ}, Label: cell.Label.Len()}
	info, err := consult(ctx, d, nodemsg.Question{Authority: &at}, func(c *actor.Catalog) (nodemsg.Region, error) { return c.At(ctx, cell) })
	if err == nil {
		info, err = checkCell(info, cell)
	}
	if err != nil {
		return nodemsg.Region{}, err
	}
	return d.listed.put(info), nil
}

// ByID asks the catalog for a region by its id. It returns ErrNotFounded if there is none.
func (d *Directory) ByID(ctx context.Context, id uint64) (nodemsg.Region, error) {
	info, err := consult(ctx, d, nodemsg.Question{Authority: &nodemsg.Locate{ID: id}},
		func(c *actor.Catalog) (nodemsg.Region, error) { return c.Find(ctx, id) })
	if err == nil && info.ID != id {
		err = fmt.Errorf("the catalog's reply does not match the question about region %d", id)
	}
	return info, err
}

// ReportMoved reports a region's members to the catalog and returns the region as the catalog then has it.
func (d *Directory) ReportMoved(ctx context.Context, info nodemsg.Region) (nodemsg.Region, error) {
	known, err := consult(ctx, d, nodemsg.Question{Moved: &info},
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
