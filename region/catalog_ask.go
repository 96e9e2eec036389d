package region

import (
	"context"
	"errors"
	"fmt"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/world"
)

// This file is the catalog's side that faces those who ask it. They may be any goroutines.

func (c *catalog) refusal() error { return fmt.Errorf("the catalog's storage failed: %w", c.failure) }

// ask has the catalog's goroutine give an answer, at once or later. Answer has room for it.
func ask[A any](ctx context.Context, c *catalog, answer <-chan A, question func()) (A, error) {
	var none A
	if !c.inbox.put(question) {
		return none, errCatalogElsewhere // the node is stopping, or the catalog has failed here
	}
	select {
	case a := <-answer:
		return a, nil
	case <-c.done:
		return none, errCatalogElsewhere
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// locate gives the founded region that covers the chunk; errNotFounded says that there is none.
func (c *catalog) locate(ctx context.Context, pos grid.ChunkPos) (wire.Region, error) {
	return c.lookUp(ctx, func() (wire.Region, bool) { return c.state.Locate(pos) })
}

// find gives the founded region of the id; errNotFounded says that there is none.
func (c *catalog) find(ctx context.Context, id uint64) (wire.Region, error) {
	return c.lookUp(ctx, func() (wire.Region, bool) { return c.state.Find(id) })
}

// lookUp has the catalog's goroutine look something up in the state, if this node may speak for it.
func (c *catalog) lookUp(ctx context.Context, look func() (wire.Region, bool)) (wire.Region, error) {
	answer := make(chan founded, 1)
	a, err := ask(ctx, c, answer, func() {
		if !c.serves() {
			answer <- founded{err: errCatalogElsewhere}
			return
		}
		region, ok := look()
		if !ok {
			answer <- founded{err: errNotFounded}
			return
		}
		answer <- founded{region: region}
	})
	if err != nil {
		return wire.Region{}, fmt.Errorf("ask the catalog: %w", err)
	}
	return a.region, a.err
}

// found founds a cell; if it is founded already, the answer tells how. Everybody who asks for a cell
// gets the same region.
func (c *catalog) found(ctx context.Context, found wire.Found) (wire.Region, error) {
	entry, err := world.EncodeFound(found)
	if err != nil {
		return wire.Region{}, err
	}
	return c.change(ctx, found.Cell, firstEpoch, entry)
}

// moved takes in that a region's members have changed. The answer is what is known of it then.
func (c *catalog) moved(ctx context.Context, moved wire.Region) (wire.Region, error) {
	entry, err := world.EncodeMoved(moved)
	if err != nil {
		return wire.Region{}, err
	}
	return c.change(ctx, moved.Cell, moved.Epoch, entry)
}

// change has an entry about a cell committed, unless the cell's region is of that epoch already.
func (c *catalog) change(ctx context.Context, cell grid.Cell, epoch uint64, entry []byte) (wire.Region, error) {
	ctx, cancel := context.WithTimeout(ctx, foundTime)
	defer cancel()
	answer := make(chan founded, 1)
	a, err := ask(ctx, c, answer, func() { c.propose(cell, epoch, entry, answer) })
	if err != nil {
		return wire.Region{}, fmt.Errorf("change cell %v: %w", cell, err)
	}
	return a.region, a.err
}

// propose proposes the entry unless it would change nothing, or an entry about the cell is under way;
// answer gets the region.
func (c *catalog) propose(cell grid.Cell, epoch uint64, entry []byte, answer chan<- founded) {
	if !c.serves() {
		answer <- founded{err: errCatalogElsewhere}
		return
	}
	area := cell.Area()
	if region, there := c.state.Locate(grid.ChunkPos{X: area.MinX, Z: area.MinZ}); there && region.Epoch >= epoch {
		answer <- founded{region: region}
		return
	}
	if c.failure != nil {
		answer <- founded{err: c.refusal()}
		return
	}
	f := c.asked[cell]
	if f == nil {
		// While nobody leads, it waits: proposeAgain proposes it.
		if err := c.group.Propose(entry); err != nil && !errors.Is(err, replica.ErrNotLeader) {
			answer <- founded{err: fmt.Errorf("change cell %v: %w", cell, err)}
			return
		}
		f = &founding{entry: entry}
		c.asked[cell] = f
	}
	f.whom = append(f.whom, answer)
}

// where gives the catalog's own region: who leads it, as far as this member knows.
func (c *catalog) where(ctx context.Context) (wire.Region, error) {
	answer := make(chan wire.Region, 1)
	return ask(ctx, c, answer, func() { c.deliver(); answer <- c.root })
}
