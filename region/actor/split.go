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

// This file splits a region between the halves of its cell (docs/adr/0031). When the entry is applied, nothing more is, until the
// children have begun on this node's disk. Then the region gives up its land, and its gateways are sent to the children.

// Errors of ProposeSplit.
var (
	ErrSplit    = errors.New("the region is split")
	ErrOneChunk = errors.New("the region is a single chunk, and cannot be split")
)

const splitReason = "the region was split"

// Split is a region's split as one of its members applies it.
type Split struct {
	Region   nodemsg.Region // with Split set
	Children [2]world.Child
	Forks    [2]replica.Fork
	Led      bool // this node leads the region
}

// splitter splits a land. It belongs to the region's goroutine.
type splitter struct {
	land    *Land
	awaited []chan<- error // of those who wait until the region is split
}

// begin has the children begin on this node.
func (s *splitter) begin(c replica.Committed) {
	l := s.land
	l.report() // what was applied before
	split := Split{Region: l.info, Children: l.contents.land.Children(c.Index), Led: l.leading}
	split.Region.Split = c.Index
	for i, child := range split.Children {
		split.Forks[i] = replica.Fork{
			Group: child.ID, Index: c.Index, Term: c.Term, Members: l.members, Recovered: ConfigurationOf(l.info.Epoch).Recovered,
		}
	}
	l.paused = true
	l.Split(split, func(err error) {
		l.Enqueue(func() {
			if err != nil {
				l.fail(err)
				return
			}
			s.finish(c.Index)
			l.resume()
		})
	})
}

// finish gives up the land, which the children have now, and sends the gateways to them.
func (s *splitter) finish(index uint64) {
	l := s.land
	l.group.ReportApplied(index, l.contents.land.Split(index))
	l.applied, l.reported = index, index
	l.edits.clear() // the gateways send them to the children
	clear(l.edits.bases)
	l.inspection.current = nil
	s.setSplit(index)
	l.Changed(l.info)
	for _, answer := range s.awaited {
		answer <- nil
	}
	s.awaited = nil
	l.Logger.Info("region split", "region", l.info.ID, "cell", l.info.Cell.String())
}

// setSplit records the log index of the split, if there is one, and sends the gateways to the children.
func (s *splitter) setSplit(index uint64) {
	s.land.info.Split, s.land.hub.split = index, index
	if index != 0 {
		s.land.hub.dismissAll(splitReason)
	}
}

// propose proposes a split. The answer comes when this node has applied it, or if it cannot be proposed.
func (s *splitter) propose(answer chan<- error) {
	l := s.land
	err := error(nil)
	switch {
	case !l.leading:
		err = ErrNotHere
	case l.info.Split != 0:
		err = ErrSplit
	case l.info.Cell.Label.Len() == grid.MaxLabel:
		err = ErrOneChunk
	default:
		err = l.group.Propose(world.EncodeSplit())
	}
	if err != nil {
		answer <- err
		return
	}
	s.awaited = append(s.awaited, answer)
}

// ProposeSplit splits a region, which this node must lead, and waits until this node has applied that. Any goroutine may call it.
func ProposeSplit(ctx context.Context, l *Land) error {
	answer := make(chan error, 1)
	err, failed := Await(ctx, l.Actor, answer, func() { l.splitter.propose(answer) })
	return cmp.Or(failed, err)
}
