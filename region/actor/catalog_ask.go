package actor

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file holds the methods by which others query and change the catalog.

// Locate returns the founded region that covers the chunk, or ErrNotFounded.
func (c *Catalog) Locate(ctx context.Context, pos grid.ChunkPos) (nodemsg.Region, error) {
	return c.lookUp(ctx, func(c *catalog) (nodemsg.Region, bool) { return c.state.Locate(pos) })
}

// At returns the region of exactly this cell, split or not, or ErrNotFounded.
func (c *Catalog) At(ctx context.Context, cell grid.Cell) (nodemsg.Region, error) {
	return c.lookUp(ctx, func(c *catalog) (nodemsg.Region, bool) { return c.state.At(cell) })
}

// Find returns the founded region with the id, or ErrNotFounded. It fails while the stored rows are being listed.
func (c *Catalog) Find(ctx context.Context, id uint64) (nodemsg.Region, error) {
	whole := true
	region, err := c.lookUp(ctx, func(c *catalog) (nodemsg.Region, bool) { whole = c.whole; return c.state.Find(id) })
	if errors.Is(err, ErrNotFounded) && !whole {
		err = errListing
	}
	return region, err
}

// lookUp looks something up, if this node may answer for the catalog.
func (c *Catalog) lookUp(ctx context.Context, look func(*catalog) (nodemsg.Region, bool)) (nodemsg.Region, error) {
	a, err := Ask(ctx, c.Actor, c.enqueue, func(c *catalog) founded {
		if !c.serves() {
			return founded{err: errCatalogElsewhere}
		}
		region, ok := look(c)
		if !ok {
			return founded{err: ErrNotFounded}
		}
		return founded{region: region}
	})
	if err != nil {
		return nodemsg.Region{}, fmt.Errorf("ask the catalog: %w", err)
	}
	return a.region, a.err
}

// Found founds a cell. If the cell is founded already, it returns the existing region. All callers for a cell get the
// same region.
func (c *Catalog) Found(ctx context.Context, found nodemsg.Found) (nodemsg.Region, error) {
	entry, err := world.EncodeFound(found)
	if err != nil {
		return nodemsg.Region{}, err
	}
	return c.change(ctx, nodemsg.Region{Cell: found.Cell, Epoch: FirstEpoch}, entry)
}

// Moved records a change of a region's members and returns the region as the catalog then has it.
func (c *Catalog) Moved(ctx context.Context, moved nodemsg.Region) (nodemsg.Region, error) {
	entry, err := world.EncodeMoved(moved)
	if err != nil {
		return nodemsg.Region{}, err
	}
	return c.change(ctx, moved, entry)
}

// Vacated removes a region that was given up, and returns it as it was, or ErrNotFounded if it is not listed any more.
func (c *Catalog) Vacated(ctx context.Context, vacated nodemsg.Vacated) (nodemsg.Region, error) {
	entry, err := world.EncodeVacated(vacated)
	if err != nil {
		return nodemsg.Region{}, err
	}
	end := nodemsg.Region{ID: vacated.Region, Cell: vacated.Cell, Epoch: math.MaxUint64} // newer than whatever is listed
	was, err := c.change(ctx, end, entry)
	if err == nil && was.ID != vacated.Region {
		err = ErrNotFounded
	}
	return was, err
}

// change commits an entry that makes a cell's region what it should be, unless it is that already.
func (c *Catalog) change(ctx context.Context, to nodemsg.Region, entry []byte) (nodemsg.Region, error) {
	ctx, cancel := context.WithTimeout(ctx, foundTime)
	defer cancel()
	answer := make(chan founded, 1)
	a, err := await(ctx, c.Actor, answer, c.enqueue(func(c *catalog) { c.propose(to, entry, answer) }))
	if err != nil {
		return nodemsg.Region{}, fmt.Errorf("change cell %v: %w", to.Cell, err)
	}
	return a.region, a.err
}

// propose proposes the entry, unless it would change nothing or an entry about the cell is pending. The region is sent
// to answer.
func (c *catalog) propose(to nodemsg.Region, entry []byte, answer chan<- founded) {
	if !c.serves() {
		answer <- founded{err: errCatalogElsewhere}
		return
	}
	cell := to.Cell
	region, there := c.state.At(cell)
	if to.ID != 0 && region.ID != to.ID {
		answer <- founded{err: fmt.Errorf("region %d is not listed: %w", to.ID, ErrNotFounded)}
		return
	}
	if there && !to.Newer(region) {
		answer <- founded{region: region}
		return
	}
	if c.failure != nil || c.stalled != nil {
		answer <- founded{err: c.refusal()}
		return
	}
	f := c.asked[cell]
	if f == nil {
		if len(c.asked) >= maxAsked {
			answer <- founded{err: errManyAsked}
			return
		}
		// Without a leader it stays pending until proposeAgain proposes it.
		if err := c.group.Propose(entry); err != nil && !errors.Is(err, replica.ErrNotLeader) {
			answer <- founded{err: fmt.Errorf("change cell %v: %w", cell, err)}
			return
		}
		f = &founding{entry: entry}
		c.asked[cell] = f
	}
	f.waiters = append(f.waiters, answer)
}

// Page lists founded regions with ids above after, as this member knows them. It fails while the stored rows are being
// listed.
func (c *Catalog) Page(ctx context.Context, after uint64) ([]nodemsg.Region, error) {
	type page struct {
		regions []nodemsg.Region
		err     error
	}
	answer := make(chan page, 1)
	p, err := await(ctx, c.Actor, answer, c.enqueue(func(c *catalog) {
		switch {
		case c.fault != nil:
		case !c.whole:
			answer <- page{err: errListing}
		default:
			answer <- page{regions: c.state.Page(after, nodemsg.RegionsPage)}
		}
	}))
	return p.regions, errors.Join(p.err, err)
}

// Within lists a page of the regions that have land in the area, with ids above after, as this member knows them.
func (c *Catalog) Within(ctx context.Context, area grid.Area, after uint64) ([]nodemsg.Region, error) {
	answer := make(chan []nodemsg.Region, 1)
	return await(ctx, c.Actor, answer, c.enqueue(func(c *catalog) {
		if c.fault == nil {
			answer <- c.state.Within(area, after, nodemsg.MaxRangeRoutes)
		}
	}))
}
