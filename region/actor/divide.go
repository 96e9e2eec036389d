package actor

import (
	"cmp"
	"context"
	"errors"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file divides a region between the halves of its cell (docs/adr/0031). When the entry is applied, nothing more is, until the
// children have begun on this node's disk. Then the region gives up its land, and its gateways are sent to the children.

// Errors of Land.ProposeDivision.
var (
	ErrDivided  = errors.New("the region is divided")
	ErrOneChunk = errors.New("the region is a single chunk, and cannot be divided")
)

const dividedReason = "the region was divided"

// Division is a region's division as one of its members applies it.
type Division struct {
	Region   nodemsg.Region // with Division set
	Children [2]world.Child
	Forks    [2]replica.Fork
	Led      bool // this node leads the region
}

// beginDivision has the children begin on this node.
func (l *Land) beginDivision(c replica.Committed) {
	l.report() // what was applied before
	d := Division{Region: l.info, Children: l.contents.land.Children(c.Index), Led: l.leading}
	d.Region.Division = c.Index
	for i, child := range d.Children {
		d.Forks[i] = replica.Fork{
			Group: child.ID, Index: c.Index, Term: c.Term, Members: l.members, Recovered: ConfigurationOf(l.info.Epoch).Recovered,
		}
	}
	l.paused = true
	l.Divide(d, func(err error) {
		l.Enqueue(func() {
			if err != nil {
				l.fail(err)
				return
			}
			l.divided(c.Index)
			l.resume()
		})
	})
}

// divided gives up the land, which the children have now.
func (l *Land) divided(index uint64) {
	l.group.ReportApplied(index, l.contents.land.Divide(index))
	l.applied, l.reported = index, index
	l.info.Division = index
	l.inspection.current = nil
	l.edits.clear() // the gateways send them to the children
	clear(l.edits.bases)
	l.hub.division = index
	l.hub.dismissAll(dividedReason)
	l.Changed(l.info)
	for _, answer := range l.divisionAwaited {
		answer <- nil
	}
	l.divisionAwaited = nil
	l.Logger.Info("region divided", "region", l.info.ID, "cell", l.info.Cell.String())
}

// ProposeDivision divides the region, which this node must lead, and waits until this node has applied that. Any goroutine may call it.
func (l *Land) ProposeDivision(ctx context.Context) error {
	answer := make(chan error, 1)
	err, failed := Await(ctx, l.Actor, answer, func() {
		switch {
		case !l.leading:
			answer <- ErrNotHere
		case l.info.Division != 0:
			answer <- ErrDivided
		case l.info.Cell.Label.Len() == grid.MaxLabel:
			answer <- ErrOneChunk
		default:
			if err := l.group.Propose(world.EncodeDivision()); err != nil {
				answer <- err
				return
			}
			l.divisionAwaited = append(l.divisionAwaited, answer)
		}
	})
	return cmp.Or(failed, err)
}
