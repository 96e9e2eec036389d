// Package division divides regions: the children of a region that is divided begin on this node, and are elected (docs/adr/0031).
//
// Only package region imports it.
package division

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/kv"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

const (
	// electEvery is how often the node that led the parent stands for election in a child, and electTime for how long. The other
	// members take part when they have applied the division, too.
	electEvery = 50 * time.Millisecond
	electTime  = 5 * time.Second
	// storeAgain is the pause after storage has refused the children. The parent applies nothing meanwhile.
	storeAgain = 500 * time.Millisecond
)

// Divider divides regions on one node.
type Divider struct {
	integrity.Node
	// Follow opens a link to the region of a chunk, wherever it is led.
	Follow func(ctx context.Context, pos grid.ChunkPos) (transport.Link, nodemsg.Region, error)
}

// Divide divides the region of a cell between the halves of the cell, wherever it is led.
func (d *Divider) Divide(ctx context.Context, cell grid.Cell) error {
	area := cell.Area()
	link, info, err := d.Follow(ctx, grid.ChunkPos{X: area.MinX, Z: area.MinZ}) // so that the leader is known
	if err != nil {
		return err
	}
	link.Close() //nolint:errcheck // it was opened only to find the leader
	switch n := info.Cell.Label.Len(); {
	case n > cell.Label.Len():
		return fmt.Errorf("divide %v: %w: its parts are regions of their own, such as %v", cell, actor.ErrDivided, info.Cell)
	case n < cell.Label.Len():
		return fmt.Errorf("divide %v: it is part of the region %v: divide that first", cell, info.Cell)
	case info.Leader == d.Self.Peer:
		return d.DivideHere(ctx, info.ID)
	}
	_, err = d.Questions.Ask(ctx, info.Leader, nodemsg.Question{Divide: &nodemsg.Release{Region: info.ID}})
	return err
}

// DivideHere divides a region that this node leads. All members must be up, and know divisions: an older version would ignore the
// entry, and go on with the whole land.
func (d *Divider) DivideHere(ctx context.Context, id uint64) error {
	l := d.Regions.Loaded(id)
	if l == nil || l.Raft() == nil {
		return fmt.Errorf("divide region %d: %w", id, actor.ErrNotHere)
	}
	for _, peer := range l.Raft().Members() {
		if peer == d.Self.Peer {
			continue
		}
		switch answer, err := d.Questions.Description(ctx, peer); {
		case err != nil:
			return fmt.Errorf("divide %v: its member %s must be up: %w", l.Cell(), peer, err)
		case answer.Version < nodemsg.VersionDivisions:
			return fmt.Errorf("divide %v: its member %s runs an older version of voxeld: upgrade it first", l.Cell(), peer)
		}
	}
	if err := actor.ProposeDivision(ctx, l); err != nil {
		return fmt.Errorf("divide %v: %w", l.Cell(), err)
	}
	return nil
}

// Begin has the children of a division begin on this node, durably, and then calls done. If this node leads the parent, it stands for
// election in both children.
func (d *Divider) Begin(division actor.Division, done func(error)) {
	d.Tasks.Start(func(ctx context.Context) {
		err := d.begin(ctx, division)
		if ctx.Err() != nil {
			return // the parent ends, too, and applies the entry again at the next start
		}
		done(err)
		if err != nil || !division.Led {
			return
		}
		for _, child := range world.ChildrenOf(division.Region) {
			d.Tasks.Start(func(ctx context.Context) {
				if err := d.elect(ctx, child); err != nil {
					d.Logger.Warn("child of a divided region not led here", "region", child.ID, "cell", child.Cell.String(), "error", err)
				}
			})
		}
	})
}

func (d *Divider) begin(ctx context.Context, division actor.Division) error {
	for i, info := range world.ChildrenOf(division.Region) {
		row, err := nodemsg.EncodeRegion(info)
		if err != nil {
			return fmt.Errorf("divide region %d: %w", division.Region.ID, err)
		}
		rows := append(division.Children[i].Rows, kv.Write{Table: directory.Table, Key: directory.Key(info.ID), Value: row})
		for {
			err := d.Replicas.Fork(division.Forks[i], rows...)
			if err == nil {
				break
			}
			if !errors.Is(err, replica.ErrStorage) {
				return fmt.Errorf("divide region %d: %w", division.Region.ID, err)
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(storeAgain):
			}
		}
		if err := d.Registry.Reload(info.ID); err != nil {
			return err
		}
	}
	return nil
}

// elect opens a child and stands for election until the child has a leader.
func (d *Divider) elect(ctx context.Context, child nodemsg.Region) error {
	ctx, cancel := context.WithTimeout(ctx, electTime)
	defer cancel()
	for {
		l, err := d.Regions.Open(ctx, child.ID, child.Cell)
		if err == nil {
			if l.Raft().Status().Leader != "" {
				return nil
			}
			l.Raft().Campaign()
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(electEvery):
		}
	}
}

// Awaited returns the parent of a region that this node is to join, if this node is a member of the parent and has not applied its
// division yet. It must do that first: a replica that joins without the land counts for the child's majority, and if all members
// joined so, the land would be lost.
func (d *Divider) Awaited(cell grid.Cell) (parent nodemsg.Region, awaited bool, err error) {
	if cell.Label.Len() <= grid.FoundingLabel {
		return nodemsg.Region{}, false, nil
	}
	all, err := d.Registry.All()
	for _, info := range all {
		if info.Cell != cell.Parent() {
			continue
		}
		has, failed := d.Replicas.Has(info.ID)
		if failed != nil || !has {
			return nodemsg.Region{}, false, failed
		}
		divided, failed := world.DivisionIn(d.Storage.Get, info.ID)
		return info, divided == 0, failed
	}
	return nodemsg.Region{}, false, err
}
