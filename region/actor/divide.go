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

// Errors of ProposeDivision.
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

// divider divides a land. It belongs to the region's goroutine.
type divider struct {
	land    *Land
	awaited []chan<- error // of those who wait until the region is divided
}

// begin has the children begin on this node.
func (d *divider) begin(c replica.Committed) {
	l := d.land
	l.report() // what was applied before
	division := Division{Region: l.info, Children: l.contents.land.Children(c.Index), Led: l.leading}
	division.Region.Division = c.Index
	for i, child := range division.Children {
		division.Forks[i] = replica.Fork{
			Group: child.ID, Index: c.Index, Term: c.Term, Members: l.members, Recovered: ConfigurationOf(l.info.Epoch).Recovered,
		}
	}
	l.paused = true
	l.Divide(division, func(err error) {
		l.Enqueue(func() {
			if err != nil {
				l.fail(err)
				return
			}
			d.finish(c.Index)
			l.resume()
		})
	})
}

// finish gives up the land, which the children have now, and sends the gateways to them.
func (d *divider) finish(index uint64) {
	l := d.land
	l.group.ReportApplied(index, l.contents.land.Divide(index))
	l.applied, l.reported = index, index
	l.edits.clear() // the gateways send them to the children
	clear(l.edits.bases)
	l.inspection.current = nil
	d.setDivision(index)
	l.Changed(l.info)
	for _, answer := range d.awaited {
		answer <- nil
	}
	d.awaited = nil
	l.Logger.Info("region divided", "region", l.info.ID, "cell", l.info.Cell.String())
}

// setDivision records the log index of the division, if there is one, and sends the gateways to the children.
func (d *divider) setDivision(index uint64) {
	d.land.info.Division, d.land.hub.division = index, index
	if index != 0 {
		d.land.hub.dismissAll(dividedReason)
	}
}

// propose proposes a division. The answer comes when this node has applied it, or if it cannot be proposed.
func (d *divider) propose(answer chan<- error) {
	l := d.land
	err := error(nil)
	switch {
	case !l.leading:
		err = ErrNotHere
	case l.info.Division != 0:
		err = ErrDivided
	case l.info.Cell.Label.Len() == grid.MaxLabel:
		err = ErrOneChunk
	default:
		err = l.group.Propose(world.EncodeDivision())
	}
	if err != nil {
		answer <- err
		return
	}
	d.awaited = append(d.awaited, answer)
}

// ProposeDivision divides a region, which this node must lead, and waits until this node has applied that. Any goroutine may call it.
func ProposeDivision(ctx context.Context, l *Land) error {
	answer := make(chan error, 1)
	err, failed := Await(ctx, l.Actor, answer, func() { l.divider.propose(answer) })
	return cmp.Or(failed, err)
}
