package actor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
	"github.com/voxelpopuli/voxeld/world/crowd"
)

// This file splits a region between the halves of its cell, and merges them again (docs/adr/0031). When a split is
// applied, nothing more is, until the children have begun on this node's disk. Then the region gives up its land, and
// its gateways are sent to the children. Package region/split does what needs other regions.

// Errors of proposals.
var (
	ErrSplit    = errors.New("the region is split")
	ErrOneChunk = errors.New("the region is a single chunk, and cannot be split")
	// ErrOtherAttempt is returned if the merge that is under way is another one, or over.
	ErrOtherAttempt = errors.New("the merge was abandoned")
)

const (
	splitReason   = "the region was split"
	vacatedReason = "the region was given up"
)

// Split is a region's split as one of its members applies it.
type Split struct {
	Region   nodemsg.Region // with Split set
	Children [2]world.Child
	Forks    [2]replica.Fork
	Led      bool           // this node leads the region
	Crowd    []nodemsg.Body // if it does: the avatars in the region
	// Stalled is called when the children cannot be stored here for now.
	Stalled func()
}

// splitter splits and merges a land.
type splitter struct {
	land         *land
	awaited      []awaitedStep
	frozen       int // ticks since the region was frozen or given up here
	placeholders int // ticks until the avatars of ShowAvatars leave whose gateways have not come; 0: there are none
}

// awaitedStep is a caller who waits until the region's structure is what they want.
type awaitedStep struct {
	refuse func(world.Structure) error
	done   func(world.Structure) bool
	answer chan<- error
}

// begin has the children begin on this node.
func (s *splitter) begin(c replica.Committed) {
	l := s.land
	l.report() // what was applied before
	split := Split{Region: l.info, Children: l.contents.land.Children(c.Index), Led: l.leading}
	split.Region.Split = c.Index
	if l.leading {
		split.Crowd = l.bodies()
	}
	for i, child := range split.Children {
		split.Forks[i] = replica.Fork{
			Group: child.ID, Index: c.Index, Term: c.Term, Members: l.members, Recovered: ConfigurationOf(l.info.Epoch).Recovered,
		}
	}
	split.Stalled = func() {
		l.handle.enqueue(func(l *land) { // the other members may have the children
			l.hub.split = c.Index
			l.hub.dismissAll(splitReason)
		})
	}
	l.paused = true
	l.Split(split, func(err error) {
		l.handle.enqueue(func(l *land) {
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
	s.changed()
	l.Logger.Info("region split", "region", l.info.ID, "cell", l.info.Cell.String())
}

// applied handles a step of the region's structure, which was another one before, other than a split.
func (s *splitter) applied(step world.Step, before world.Structure) {
	l := s.land
	switch step {
	case world.Froze:
		s.frozen = 0
	case world.Thawed:
		l.edits.queueAgain()
	case world.Merged:
		l.Pinned(BasesOf(l.contents.land.Pins()))
		l.report()
		if l.Merged != nil {
			parent := l.info
			parent.Split, parent.Merged = 0, l.contents.land.Structure().Merged
			l.Merged(parent, before.Split)
		}
		l.Logger.Info("region merged", "region", l.info.ID, "cell", l.info.Cell.String())
	case world.Vacated:
		s.frozen = 0
		l.edits.clear() // the gateways send them to the region that is founded then
		l.report()
		l.Logger.Info("region given up: nothing was built there", "region", l.info.ID, "cell", l.info.Cell.String())
	case world.NoStep, world.Splits, world.Abandoned:
	}
	s.changed()
}

// changed takes over the structure of the land, and answers those who wait for it.
func (s *splitter) changed() {
	l := s.land
	clear(l.edits.bases)
	l.inspection.current = nil
	l.contents.land.StopDigest()
	s.takeOver()
	l.Changed(l.info)
	structure := l.contents.land.Structure()
	s.awaited = slices.DeleteFunc(s.awaited, func(a awaitedStep) bool {
		done := a.done(structure)
		if done {
			a.answer <- nil
		}
		return done
	})
	s.refuseAwaited()
}

// refuseAwaited answers those whose entries can have no effect any more, as another one came before.
func (s *splitter) refuseAwaited() {
	structure := s.land.contents.land.Structure()
	s.awaited = slices.DeleteFunc(s.awaited, func(a awaitedStep) bool {
		err := a.refuse(structure)
		if err != nil {
			a.answer <- err
		}
		return err != nil
	})
}

// takeOver takes over the structure of the land. If the region is split, the gateways are sent to the children; if it
// was given up, they look for the one that is founded then.
func (s *splitter) takeOver() {
	s.land.mods.reset()
	l, structure := s.land, s.land.contents.land.Structure()
	l.info.Split, l.info.Merged, l.hub.split = structure.Split, structure.Merged, structure.Split
	l.edits.frozen = structure.Frozen != 0 || structure.Vacated != 0
	switch {
	case structure.Split != 0:
		l.hub.dismissAll(splitReason)
	case structure.Vacated != 0:
		l.hub.dismissAll(vacatedReason)
	}
}

// lostLeadership answers those who wait: whether their entries are committed is unknown.
func (s *splitter) lostLeadership() {
	for _, a := range s.awaited {
		a.answer <- ErrNotHere
	}
	s.awaited = nil
}

// unresolvedTicks is after how many ticks a region that is frozen, or was given up, asks what has become of that, and
// then how often.
const unresolvedTicks = 20

// placeholderTicks is how long avatars wait for their gateways after a split or merge: longer than these need to come.
const placeholderTicks = 60

// placeholder is the link of avatars that wait for their gateways: none that a gateway has.
const placeholder = 0

// bodies lists the avatars in a region.
func (l *land) bodies() (all []nodemsg.Body) {
	l.contents.crowd.Count(func(at grid.ChunkPos, _ int) { all = append(all, l.contents.crowd.Inside(at)...) })
	return all
}

// ShowAvatars has a region show avatars of the one that it came from until their gateways enter them themselves.
// Otherwise everybody would vanish for a moment before the eyes of those whose gateway comes first.
func (l *Land) ShowAvatars(shown []nodemsg.Body) {
	l.enqueue(func(l *land) {
		for _, body := range shown {
			if !l.contents.crowd.Has(body.Player) {
				l.contents.crowd.Enter(crowd.Owner{Link: placeholder}, body)
			}
		}
		l.splitter.placeholders = placeholderTicks
	})
}

// PassAvatars has another region show the avatars of one that this node leads.
func (l *Land) PassAvatars(to *Land) {
	l.enqueue(func(l *land) {
		if l.leading {
			to.ShowAvatars(l.bodies())
		}
	})
}

// tick removes placeholders whose time is over, and has resolved what the region is frozen or given up for.
func (s *splitter) tick() {
	if s.placeholders > 0 {
		if s.placeholders--; s.placeholders == 0 {
			s.land.contents.crowd.LeaveAll(placeholder)
		}
	}
	if !s.land.edits.frozen {
		return
	}
	if s.frozen++; s.frozen%unresolvedTicks == 0 {
		s.land.Resolve(s.land.handle, s.land.contents.land.Structure(), s.land.leading)
	}
}

// ResolveFreeze has resolved now what a region is frozen or given up for.
func (l *Land) ResolveFreeze() {
	l.enqueue(func(l *land) {
		if l.edits.frozen {
			l.Resolve(l.handle, l.contents.land.Structure(), l.leading)
		}
	})
}

// propose proposes an entry, unless refuse returns why not, and answers when the structure is what the caller wants.
func (s *splitter) propose(entry []byte, refuse func(world.Structure) error, done func(world.Structure) bool, answer chan<- error) {
	l := s.land
	structure := l.contents.land.Structure()
	err := refuse(structure)
	switch {
	case !l.leading:
		err = ErrNotHere
	case err == nil && done(structure):
		answer <- nil
		return
	case err == nil:
		err = ledElsewhere(l.group.Propose(entry))
	}
	if err != nil {
		answer <- err
		return
	}
	s.awaited = append(s.awaited, awaitedStep{refuse, done, answer})
}

// ledElsewhere makes the group's error that it is led elsewhere an ErrNotHere.
func ledElsewhere(err error) error {
	if errors.Is(err, replica.ErrNotLeader) {
		return fmt.Errorf("%w: %w", ErrNotHere, err)
	}
	return err
}

func (l *Land) propose(ctx context.Context, entry []byte, refuse func(world.Structure) error, done func(world.Structure) bool) error {
	answer := make(chan error, 1)
	err, failed := await(ctx, l.Actor, answer, l.enqueue(func(l *land) { l.splitter.propose(entry, refuse, done, answer) }))
	return cmp.Or(failed, err)
}

// ProposeSplit splits a region, which this node must lead, and waits until this node has applied that.
func (l *Land) ProposeSplit(ctx context.Context) error {
	return l.propose(ctx, world.EncodeSplit(), func(s world.Structure) error {
		switch {
		case s.Split != 0:
			return ErrSplit
		case l.Cell().Label.Len() == grid.MaxLabel:
			return ErrOneChunk
		case s.Frozen != 0:
			return errors.New("the region is being merged")
		case s.Vacated != 0:
			return errors.New(vacatedReason)
		}
		return nil
	}, func(s world.Structure) bool { return s.Split != 0 })
}

// ErrInUse is returned if a region is watched, or something was built there.
var ErrInUse = errors.New("the region is in use")

// ProposeVacate gives up a region, which this node must lead. The error is ErrInUse if it is watched, or something was
// built there.
func (l *Land) ProposeVacate(ctx context.Context) error {
	answer := make(chan error, 1)
	err, failed := await(ctx, l.Actor, answer, l.enqueue(func(l *land) {
		if l.hub.len() > 0 || !l.edits.empty() {
			answer <- ErrInUse
			return
		}
		l.splitter.propose(world.EncodeVacate(), func(s world.Structure) error {
			if s.Vacated == 0 && !l.contents.land.Empty() {
				return ErrInUse
			}
			return nil
		}, func(s world.Structure) bool { return s.Vacated != 0 }, answer)
	}))
	return cmp.Or(failed, err)
}

// Freeze freezes a child, which this node must lead, for an attempt of its parent, and returns its land for
// world.EncodeMerge. Passed is the number of the last rollback that is complete there, or does not concern it.
func (l *Land) Freeze(ctx context.Context, attempt uint64, passed int64) ([]byte, error) {
	err := l.propose(ctx, world.EncodeFreeze(attempt), func(s world.Structure) error {
		switch {
		case s.Split != 0:
			return ErrSplit
		case s.Frozen > attempt+1:
			return ErrOtherAttempt
		}
		return nil
	}, func(s world.Structure) bool { return s.Frozen == attempt+1 })
	if err != nil {
		return nil, err
	}
	if _, err := l.raft.ReadIndex(ctx); err != nil { // so that it is not the state of a deposed leader
		return nil, ledElsewhere(err)
	}
	type packed struct {
		rows []byte
		err  error
	}
	got, err := Ask(ctx, l.Actor, l.enqueue, func(l *land) packed {
		l.deliver()
		if l.contents.land.Structure().Frozen != attempt+1 {
			return packed{err: ErrOtherAttempt}
		}
		arrived, all := l.marks.last(l)
		if !all {
			return packed{err: errors.New("a rollback or a claim has just been ordered there")}
		}
		rows, err := l.contents.land.PackedRows(passed, arrived)
		return packed{rows, err}
	})
	return got.rows, cmp.Or(err, got.err)
}

// ProposeThaw ends the freeze of a child by an attempt of its parent.
func (l *Land) ProposeThaw(ctx context.Context, attempt uint64) error {
	return l.propose(ctx, world.EncodeThaw(attempt), func(world.Structure) error { return nil },
		func(s world.Structure) bool { return s.Frozen != attempt+1 })
}

// ProposeMerge merges the children of a region, which this node must lead, in an attempt. Rows are what Freeze
// returned.
func (l *Land) ProposeMerge(ctx context.Context, attempt uint64, rows [2][]byte) error {
	err := l.propose(ctx, world.EncodeMerge(attempt, rows), func(s world.Structure) error {
		if s.Split == 0 || s.Attempt != attempt {
			return ErrOtherAttempt
		}
		return nil
	}, func(s world.Structure) bool { return s.Attempt != attempt })
	if err != nil {
		return err
	}
	if _, s, err := l.Structure(ctx); err != nil || s.Split != 0 {
		return cmp.Or(err, ErrOtherAttempt)
	}
	return nil
}

// ProposeAbandon ends an attempt to merge the children of a region, and all before it, unless they are over.
func (l *Land) ProposeAbandon(ctx context.Context, attempt uint64) error {
	return l.propose(ctx, world.EncodeAbandon(attempt), func(world.Structure) error { return nil },
		func(s world.Structure) bool { return s.Split == 0 || s.Attempt > attempt })
}

// Structure returns the region and its structure, with everything that was committed before. This node must lead it.
func (l *Land) Structure(ctx context.Context) (info nodemsg.Region, s world.Structure, err error) {
	if _, err := l.raft.ReadIndex(ctx); err != nil {
		return info, s, ledElsewhere(err)
	}
	type known struct {
		info      nodemsg.Region
		structure world.Structure
		err       error
	}
	got, err := Ask(ctx, l.Actor, l.enqueue, func(l *land) known {
		l.deliver()
		if !l.leading || l.paused {
			return known{err: ErrNotHere}
		}
		return known{info: l.info, structure: l.contents.land.Structure()}
	})
	return got.info, got.structure, cmp.Or(err, got.err)
}

// StructureHere returns a region's structure as the copy on this node has it, led here or not.
func (l *Land) StructureHere(ctx context.Context) (world.Structure, error) {
	return Ask(ctx, l.Actor, l.enqueue, func(l *land) world.Structure { l.deliver(); return l.contents.land.Structure() })
}

// EndMerged ends a child on this node because it was merged into the parent, to which the gateways are sent; nil if
// that is not known.
func (l *Land) EndMerged(parent *nodemsg.Region) {
	l.enqueue(func(l *land) {
		l.hub.parent = parent
		l.removed = true
	})
}

// Use reports whether a gateway watches a region, and whether nothing was ever built there, as the copy on this node
// has it.
func (l *Land) Use(ctx context.Context) (watched, empty bool, err error) {
	type use struct{ watched, empty bool }
	got, err := Ask(ctx, l.Actor, l.enqueue, func(l *land) use { l.deliver(); return use{l.hub.len() > 0, l.contents.land.Empty()} })
	return got.watched, got.empty, err
}
