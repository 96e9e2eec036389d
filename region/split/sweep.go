package split

import (
	"context"
	"errors"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file deletes copies of regions that were merged while this node was away, or behind.

const (
	// sweepEvery is how often a node looks for copies of merged regions among those that it stores.
	sweepEvery = 5 * time.Minute
	// watchEvery is how often it looks whether open regions have a leader: one that was merged has none, and gateways
	// that try it wait for one. A region is swept when it is found without a leader for the second time, and then ever
	// more rarely, since most such regions have only lost their majority.
	watchEvery = time.Second
	// maxSwept bounds how many of them are swept in one round: each costs questions to the catalog.
	maxSwept = 8
)

// Run deletes copies of merged regions until ctx ends.
func (s *Splitter) Run(ctx context.Context) {
	all, open := time.NewTicker(sweepEvery), time.NewTicker(watchEvery)
	defer all.Stop()
	defer open.Stop()
	leaderless := make(map[uint64]int)
	for {
		select {
		case <-ctx.Done():
			return
		case <-all.C:
			regions, err := s.Registry.All()
			if err != nil {
				s.Logger.Warn("merged regions not looked for", "error", err)
			}
			s.sweepAll(ctx, regions)
		case <-open.C:
			var due []nodemsg.Region
			due, leaderless = s.leaderless(leaderless)
			s.sweepAll(ctx, due)
		}
	}
}

// leaderless returns open regions without a leader that are to be swept now, and in how many rounds in succession each
// region was found without one.
func (s *Splitter) leaderless(before map[uint64]int) (due []nodemsg.Region, rounds map[uint64]int) {
	rounds = make(map[uint64]int)
	for _, l := range s.Lands() {
		if l.Cell().Label.Len() <= grid.FoundingLabel || l.Raft().Status().Leader != "" {
			continue
		}
		n := before[l.ID()] + 1
		rounds[l.ID()] = n
		if n == 1 || n&(n-1) != 0 {
			continue
		}
		if len(due) == maxSwept {
			rounds[l.ID()] = n - 1 // it is due in the next round
			continue
		}
		due = append(due, nodemsg.Region{ID: l.ID(), Cell: l.Cell()})
	}
	return due, rounds
}

func (s *Splitter) sweepAll(ctx context.Context, regions []nodemsg.Region) {
	for _, info := range regions {
		if err := s.sweep(ctx, info); err != nil {
			s.Logger.Debug("region that may have been merged kept", "region", info.ID, "cell", info.Cell.String(), "error", err)
		}
	}
}

// sweep deletes the copy of a region here if the region was merged.
func (s *Splitter) sweep(ctx context.Context, info nodemsg.Region) error {
	if info.Cell.Label.Len() <= grid.FoundingLabel {
		return nil
	}
	if _, err := s.Directory.ByID(ctx, info.ID); !errors.Is(err, directory.ErrNotFounded) {
		return err // the catalog lists it
	}
	ctx, cancel := context.WithTimeout(ctx, mergeTime)
	defer cancel()
	if merged, err := s.merged(ctx, info); err != nil || !merged {
		return err
	}
	s.Logger.Info("copy of a merged region deleted", "region", info.ID, "cell", info.Cell.String())
	if l := s.Regions.Loaded(info.ID); l != nil {
		l.EndMerged(nil)
		return nil
	}
	return s.Delete(info)
}

// merged reports whether a region that is stored here was merged.
func (s *Splitter) merged(ctx context.Context, info nodemsg.Region) (bool, error) {
	structure, err := world.StructureIn(s.Storage.Get, info.ID)
	if err != nil {
		return false, err
	}
	listed, err := s.Directory.Exactly(ctx, info.Cell.Parent())
	switch {
	case err == nil && listed.ID == structure.Parent:
		_, err = s.askStructure(ctx, listed, 0)
		return err == nil && s.await(ctx, listed, undone(structure.ParentSplit)) == 0, err
	case err != nil && !errors.Is(err, directory.ErrNotFounded):
		return false, err
	}
	id, cell, empty := structure.Parent, info.Cell.Parent(), structure.Parent == 0
	if empty { // it has never received its land
		id, cell = info.ID, info.Cell
	}
	live, err := s.live(ctx, id, cell, empty)
	return !live, err
}

// DeleteMerged deletes the copies here of the halves of a region whose split at the index was undone. It returns at
// once; what it cannot delete is swept later.
func (s *Splitter) DeleteMerged(parent nodemsg.Region, split uint64) {
	s.Tasks.Start(func(context.Context) {
		lower, upper := parent.Cell.Children()
		for half, cell := range [2]grid.Cell{lower, upper} {
			id := world.ChildID(parent.ID, split, half)
			if err := s.deleteMerged(parent, nodemsg.Region{ID: id, Cell: cell}); err != nil {
				s.Logger.Debug("copy of a merged region kept", "region", id, "cell", cell.String(), "error", err)
			}
		}
	})
}

func (s *Splitter) deleteMerged(parent, child nodemsg.Region) error {
	if l := s.Regions.Loaded(child.ID); l != nil {
		if to := s.Regions.Loaded(parent.ID); to != nil {
			l.PassAvatars(to)
		}
		l.EndMerged(&parent)
		return nil
	}
	stored, err := s.Registry.Region(child.ID)
	if errors.Is(err, actor.ErrNotHere) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.Delete(stored)
}
