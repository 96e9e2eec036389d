package region

import (
	"context"
	"errors"
	"fmt"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file holds the methods of the catalog that other goroutines call to query and change it.

func (c *catalog) refusal() error { return fmt.Errorf("the catalog's storage failed: %w", c.failure) }

// ask runs question in the catalog's goroutine and waits for the answer, which may come later. The answer channel has room for
// it.
func ask[A any](ctx context.Context, c *catalog, answer <-chan A, question func()) (A, error) {
	var none A
	if !c.inbox.Put(question) {
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

// locate returns the founded region that covers the chunk, or errNotFounded.
func (c *catalog) locate(ctx context.Context, pos grid.ChunkPos) (nodemsg.Region, error) {
	return c.lookUp(ctx, func() (nodemsg.Region, bool) { return c.state.Locate(pos) })
}

// find returns the founded region with the id, or errNotFounded.
func (c *catalog) find(ctx context.Context, id uint64) (nodemsg.Region, error) {
	return c.lookUp(ctx, func() (nodemsg.Region, bool) { return c.state.Find(id) })
}

// lookUp runs look on the state in the catalog's goroutine, if this node may answer for the catalog.
func (c *catalog) lookUp(ctx context.Context, look func() (nodemsg.Region, bool)) (nodemsg.Region, error) {
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
		return nodemsg.Region{}, fmt.Errorf("ask the catalog: %w", err)
	}
	return a.region, a.err
}

// found founds a cell. If the cell is founded already, it returns the existing region. All callers for a cell get the same
// region.
func (c *catalog) found(ctx context.Context, found nodemsg.Found) (nodemsg.Region, error) {
	entry, err := world.EncodeFound(found)
	if err != nil {
		return nodemsg.Region{}, err
	}
	return c.change(ctx, found.Cell, firstEpoch, entry)
}

// moved records a change of a region's members and returns the region as the catalog then has it.
func (c *catalog) moved(ctx context.Context, moved nodemsg.Region) (nodemsg.Region, error) {
	entry, err := world.EncodeMoved(moved)
	if err != nil {
		return nodemsg.Region{}, err
	}
	return c.change(ctx, moved.Cell, moved.Epoch, entry)
}

// change commits an entry about a cell, unless the cell's region is of that epoch already.
func (c *catalog) change(ctx context.Context, cell grid.Cell, epoch uint64, entry []byte) (nodemsg.Region, error) {
	ctx, cancel := context.WithTimeout(ctx, foundTime)
	defer cancel()
	answer := make(chan founded, 1)
	a, err := ask(ctx, c, answer, func() { c.propose(cell, epoch, entry, answer) })
	if err != nil {
		return nodemsg.Region{}, fmt.Errorf("change cell %v: %w", cell, err)
	}
	return a.region, a.err
}

// propose proposes the entry, unless it would change nothing or an entry about the cell is pending. The region is sent to answer.
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

// where returns the catalog's own region, with the leader that this member knows of.
func (c *catalog) where(ctx context.Context) (nodemsg.Region, error) {
	answer := make(chan nodemsg.Region, 1)
	return ask(ctx, c, answer, func() { c.deliver(); answer <- c.root })
}
