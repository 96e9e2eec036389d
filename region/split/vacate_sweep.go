package split

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file deletes copies of regions that were given up while this node was away, or behind.

const (
	// Each copy of empty land is looked up in the catalog once a day: so many in a round, and at least leastSwept.
	sweepRounds = int(24 * time.Hour / lookEvery)
	leastSwept  = 16
)

// sweep looks after the copies of regions that have ended, or may have. Those that have ended according to the copy
// here are opened, so that they are removed from the catalog and deleted. Of the others those are looked up that have
// no leader, and some more in each round. It begins with another one each time, as it may not come to the last ones.
func (l *Vacater) sweep(ctx context.Context, regions []nodemsg.Region) {
	regions = slices.DeleteFunc(slices.Clone(regions), func(info nodemsg.Region) bool { return info.Cell.Label.Len() != grid.FoundingLabel })
	n := min(len(regions), max(leastSwept, len(regions)/sweepRounds+1))
	first := l.swept
	if l.swept += n; l.swept >= len(regions) {
		l.swept = 0
	}
	for i := range regions {
		if ctx.Err() != nil {
			return
		}
		info := regions[(first+i)%len(regions)]
		structure, err := world.StructureIn(l.Storage.Get, info.ID)
		land := l.Regions.Loaded(info.ID)
		switch {
		case err != nil:
		case structure.Vacated != 0 && land == nil:
			err = l.reopen(ctx, info)
		case structure.Vacated == 0 && (i < n || land != nil && land.Raft() != nil && land.Raft().Status().Leader == ""):
			err = l.sweepStale(ctx, info)
		}
		if err != nil {
			l.Logger.Debug("copy of a region that may have been given up kept", "region", info.ID, "cell", info.Cell.String(), "error", err)
		}
		if errors.Is(err, errCatalog) {
			return
		}
	}
}

// reopen goes on with a region that was given up, as the closed copy here says: Resolve does the rest if it is still
// listed.
func (l *Vacater) reopen(ctx context.Context, info nodemsg.Region) error {
	ctx, cancel := context.WithTimeout(ctx, resolveTime)
	defer cancel()
	listed, err := l.inCatalog(ctx, info.ID)
	switch {
	case err != nil:
		return err
	case !listed:
		return l.Delete(info)
	case l.Unusable(info.ID):
		return nil
	}
	_, err = l.Lead(ctx, info.ID)
	return err
}

// sweepStale deletes the copy of an empty region if it was given up, although the copy does not have that. The catalog
// must not list the region, and most of its other members must have given it up: whatever was acknowledged there, one
// of them would have.
func (l *Vacater) sweepStale(ctx context.Context, info nodemsg.Region) error {
	if empty, err := world.EmptyIn(l.Storage.Keys, info.ID); err != nil || !empty {
		return err
	}
	if listed, err := l.inCatalog(ctx, info.ID); err != nil || listed {
		return err
	}
	if !l.vacated(ctx, info) {
		return errors.New("the catalog does not list it, but too few of its members say that it was given up")
	}
	l.Logger.Info("copy of a region deleted that was given up", "region", info.ID, "cell", info.Cell.String())
	if land := l.Regions.Loaded(info.ID); land != nil {
		land.Remove(false)
		return nil
	}
	return l.Delete(info)
}

// vacated reports whether most voters of a region, or all but this node, say that it was given up, or have removed
// their copies, and nobody has another copy.
func (l *Vacater) vacated(ctx context.Context, info nodemsg.Region) bool {
	members := info.Members
	if own, err := l.Replicas.Position(info.ID); err == nil && len(own.Members.Members) > 0 {
		members = nil
		for _, m := range own.Members.Members {
			members = append(members, nodemsg.Member{Peer: m.Peer, Learner: m.Learner})
		}
	}
	want := make(map[string][]uint64)
	for _, m := range members {
		if m.Peer != l.Self.Peer {
			want[m.Peer] = []uint64{info.ID}
		}
	}
	said := integrity.PollStatuses(ctx, l.AskStatuses, want, true)
	voters, gone, others := 0, 0, 0
	for _, m := range members {
		if !m.Learner {
			voters++
		}
		switch s, answered := said.Of(m.Peer, info.ID); {
		case !answered:
		case s.State == nodemsg.StateNone && !s.Forgotten: // it has never had one
		case s.State != nodemsg.StateNone && (s.Structure == nil || s.Structure.Vacated == 0):
			others++
		case !m.Learner:
			gone++
		}
	}
	return others == 0 && gone > 0 && (2*gone > voters || gone == voters-1)
}
