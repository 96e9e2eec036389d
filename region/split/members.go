package split

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file asks the members of a region that was split what has become of it. Whoever is misled about that deletes a
// half with all that was built in it, or has it change while its land is being merged. So one member's word is not
// enough (docs/adr/0077).

const (
	// confirmTries is how often the members are asked, and confirmPause the time between: the other members apply a
	// merge a little later than the leader.
	confirmTries = 4
	confirmPause = 150 * time.Millisecond
	pollTime     = 2 * time.Second // bounds one round
)

// statement is what a member says of its copy of a region.
type statement struct {
	split, merged, attempt uint64
	learner                bool // as the catalog lists it: it may have nothing yet
}

// statements are what the members of a region say.
type statements struct {
	own     *statement  // of the copy on this node; nil if there is none
	said    []statement // of the members that the catalog lists
	members int         // that the catalog lists
}

// anybody reports whether any copy is said to be something.
func (s statements) anybody(says func(statement) bool) bool {
	return s.own != nil && says(*s.own) || slices.ContainsFunc(s.said, says)
}

// most reports whether most members say something.
func (s statements) most(says func(statement) bool) bool {
	n := 0
	for _, one := range s.said {
		if says(one) {
			n++
		}
	}
	return 2*n > s.members
}

// confirm reports whether something is true that remains true once it is. Then the copy here is enough, and a member
// that is behind does no harm.
func (s statements) confirm(says func(statement) bool) bool {
	return s.own != nil && says(*s.own) || s.most(says)
}

// poll asks the members of a region that the catalog lists, until it knows enough, or all have answered.
func (s *Splitter) poll(ctx context.Context, listed nodemsg.Region, enough func(statements) bool) statements {
	ctx, cancel := context.WithTimeout(ctx, pollTime)
	defer cancel()
	all := statements{members: len(listed.Members)}
	if info, attempt := s.copyHere(ctx, listed.ID); info.ID != 0 {
		all.own = &statement{split: info.Split, merged: info.Merged, attempt: attempt}
		if i := slices.IndexFunc(listed.Members, func(m nodemsg.Member) bool { return m.Peer == s.Self.Peer }); i >= 0 {
			all.own.learner = listed.Members[i].Learner
			all.said = append(all.said, *all.own)
		}
	}
	if enough(all) {
		return all
	}
	var asking sync.WaitGroup
	var mu sync.Mutex
	for _, m := range listed.Members {
		if m.Peer == s.Self.Peer {
			continue
		}
		asking.Go(func() {
			q := nodemsg.StructureRequest{Region: listed.ID, Copy: true}
			answer, err := s.Questions.Ask(ctx, m.Peer, nodemsg.Question{Structure: &q})
			mu.Lock()
			defer mu.Unlock()
			if info := answer.Region; err == nil && info != nil && info.ID == listed.ID {
				all.said = append(all.said, statement{info.Split, info.Merged, answer.Attempt, m.Learner})
			}
			if enough(all) {
				cancel()
			}
		})
	}
	asking.Wait()
	return all
}

// await polls the members of a region until one of several things is confirmed, and returns which; -1 if none is, after
// some tries, or at once if nobody says any of them.
func (s *Splitter) await(ctx context.Context, listed nodemsg.Region, things ...func(statement) bool) int {
	for try := range confirmTries {
		if try > 0 {
			select {
			case <-ctx.Done():
				return -1
			case <-time.After(confirmPause):
			}
		}
		all := s.poll(ctx, listed, func(all statements) bool { return slices.ContainsFunc(things, all.confirm) })
		if i := slices.IndexFunc(things, all.confirm); i >= 0 {
			return i
		}
		if !slices.ContainsFunc(things, all.anybody) {
			break
		}
	}
	return -1
}

// undone reports, of a member, whether a merge has undone the split at an index. Its halves are no more then, and never
// come back.
func undone(split uint64) func(statement) bool {
	return func(of statement) bool { return of.merged > split }
}

// copyHere returns a region as the copy on this node has it, and its attempt to merge. The id of the region is 0 if
// there is none.
func (s *Splitter) copyHere(ctx context.Context, id uint64) (nodemsg.Region, uint64) {
	info := nodemsg.Region{Members: []nodemsg.Member{s.Self}}
	var structure world.Structure
	var err error
	if l := s.Regions.Loaded(id); l != nil {
		info.Cell = l.Cell()
		structure, err = l.StructureHere(ctx)
	} else if has, failed := s.Replicas.Has(id); has && failed == nil {
		var stored nodemsg.Region
		stored, err = s.Registry.Region(id)
		info.Cell = stored.Cell
		if err == nil {
			structure, err = world.StructureIn(s.Storage.Get, id)
		}
	} else {
		return nodemsg.Region{}, 0
	}
	if err != nil {
		s.Logger.Debug("structure of a region not read", "region", id, "error", err)
		return nodemsg.Region{}, 0
	}
	info.ID, info.Split, info.Merged = id, structure.Split, structure.Merged
	return info, structure.Attempt
}

// confirmLeader returns an error unless most members of a half say that a node leads it. Routes may be lies, and
// whoever is taken for the leader hands over the land that the merged region has then.
func (s *Splitter) confirmLeader(ctx context.Context, half nodemsg.Region, leader string) error {
	listed, err := s.Directory.ByID(ctx, half.ID)
	if errors.Is(err, directory.ErrNotFounded) { // not yet: it has the members with which it began
		listed, err = half, nil
	}
	if err != nil {
		return err
	}
	for try := range confirmTries {
		if try > 0 {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(confirmPause):
			}
		}
		if s.ledBy(ctx, listed, leader) {
			return nil
		}
	}
	return fmt.Errorf("most members of %v do not say that %s leads it: %w", half.Cell, leader, actor.ErrNotHere)
}

// ledBy reports whether most members of a region say that a node leads it.
func (s *Splitter) ledBy(ctx context.Context, listed nodemsg.Region, leader string) bool {
	ctx, cancel := context.WithTimeout(ctx, pollTime)
	defer cancel()
	var asking sync.WaitGroup
	var votes atomic.Int32
	most := func() bool { return 2*int(votes.Load()) > len(listed.Members) }
	for _, m := range listed.Members {
		asking.Go(func() {
			said, _, err := s.AskStatuses(ctx, m.Peer, nodemsg.StatusRequest{Regions: []uint64{listed.ID}})
			if err == nil && said[0].Leader == leader {
				votes.Add(1)
			}
			if most() {
				cancel()
			}
		})
	}
	asking.Wait()
	return most()
}
