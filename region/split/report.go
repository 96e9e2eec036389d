package split

import (
	"errors"
	"fmt"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// This file reports, to operators and other nodes, how much load regions have, and what is to become of them.

// keepsFailing is the pause from which on splits of a region count as failing again and again: the third failure's.
// Merges do not: quiet halves do no harm.
const keepsFailing = 4 * firstPause

// Division is how much load a region has, and whether it is to be split or merged because of that.
type Division struct {
	Load float64 // the largest share of a limit; above 1 it is too much
	Kind string  // of load, that Load is of: "tick", "players", "edits" or "stored"; empty if there is hardly any
	Next string  // what is to become of the region, for people; empty if it stays as it is
}

// Division returns how much load a region has that this node leads. Ok is false for any other region.
func (l *Loads) Division(id uint64) (d Division, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.mu.watches[id]
	if w == nil {
		return d, false
	}
	limits := l.mu.limits
	kind, load := w.Highest(limits)
	if d.Load = load; load >= .005 {
		d.Kind = kind.String()
	}
	_, splits := w.Split(limits)
	half := limits.MergeAfter > 0 && w.Cell().Label.Len() > grid.FoundingLabel
	switch {
	case w.failed != nil:
		d.Next = fmt.Sprintf("%s; again in %v", w.failed, max(0, time.Until(w.until)).Round(time.Second))
	case w.changing:
	case splits:
		d.Next = "split pending"
	case w.Settled() && w.Cell().Label.Len() == grid.MaxLabel:
		d.Next = "cannot be split: one chunk"
	case w.Settled():
		d.Next = "not split: nearly all load is in one chunk"
	case load > 1: // perhaps not for long
	case half && w.MayMerge(limits):
		d.Next = "merge pending: the other half is not quiet yet"
	case half && w.QuietFor() > 0:
		d.Next = fmt.Sprintf("merge in %v", (limits.MergeAfter - w.QuietFor()).Round(time.Second))
	case half:
		d.Next = "merge when below 33 %"
	}
	return d, true
}

// Fill fills in how much load a region has that is open here.
func (l *Loads) Fill(s *nodemsg.RegionStatus) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w := l.mu.watches[s.Region]; w != nil {
		s.Load = uint64(w.Pressure(l.mu.limits) * 1000)
		s.Quiet = uint64(w.QuietFor() / time.Second)
		if _, splits := w.Split(l.mu.limits); splits && w.failed != nil && w.pause >= keepsFailing {
			s.Undivided = wire.ErrorText(w.failed)
		}
	}
}

// errEnough ends a count.
var errEnough = errors.New("more than the limit")

// FillStored fills in how much load what is stored of a closed region is.
func (l *Loads) FillStored(s *nodemsg.RegionStatus, storage directory.Storage) error {
	l.mu.Lock()
	limit := l.mu.limits.Load[Stored]
	l.mu.Unlock()
	if s.State != nodemsg.StateClosed || limit <= 0 {
		return nil
	}
	n := 0.0
	err := storage.Keys(world.LandTable, world.EditPrefix(s.Region), func([]byte) error {
		if n++; n > limit {
			return errEnough
		}
		return nil
	})
	s.Load = uint64(1000 * n / limit)
	if err != nil && !errors.Is(err, errEnough) {
		return fmt.Errorf("count edits of region %d: %w", s.Region, err)
	}
	return nil
}
