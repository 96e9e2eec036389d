package split

import (
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/actor"
)

// This file decides when a region is to be split between the halves of its cell, and when two halves are to be merged
// again. It is pure: loads go in, decisions come out; the caller measures, has a clock, and acts.

// LoadKind is a kind of load.
type LoadKind int

// The kinds of load.
const (
	Tick    LoadKind = iota // share of the tick budget that the region uses, 0 to 1 and above
	Players                 // avatars
	Edits                   // edits a second
	Stored                  // edited blocks
)

const loadKinds = int(Stored) + 1

var loadNames = [loadKinds]string{"tick", "players", "edits", "stored"}

func (k LoadKind) String() string { return loadNames[k] }

// LoadKinds lists all kinds of load.
func LoadKinds() []LoadKind { return []LoadKind{Tick, Players, Edits, Stored} }

// Load is an amount of each kind of load.
type Load [loadKinds]float64

// Limits are the loads above which a region is split. A limit of 0 is none. The zero value neither splits nor merges.
type Limits struct {
	Load       Load
	MergeAfter time.Duration // how long both halves must be quiet before they are merged; 0: they never are
}

// Enabled reports whether any load makes a region split.
func (l Limits) Enabled() bool { return l.Load != Load{} }

const (
	// Settle is how long a region must have too much load before it is split: a burst of arrivals is over sooner. It is
	// also the least time between the split of a region and that of its half.
	Settle = 3 * time.Second
	// smoothing is the time constant of the average of ticks and edits.
	smoothing = 2 * time.Second
	// leastShare is the share of the load that must end up beside the rest for a split to help.
	leastShare = 1.0 / 8
	// quietShare is the share of the limits below which two halves are quiet together.
	quietShare = 1.0 / 3
)

// Watch follows the load of one region while this node leads it.
type Watch struct {
	cell       grid.Cell
	within     time.Time // when the load was last within the limits; at least the time of the first sample
	last       time.Time // of the newest sample; zero if there is none
	load       Load
	sample     actor.LoadSample // the newest
	quietSince time.Time
}

// NewWatch returns a watch of the cell's region.
func NewWatch(cell grid.Cell) *Watch { return &Watch{cell: cell} }

// Cell returns the region's cell.
func (w *Watch) Cell() grid.Cell { return w.cell }

// Load returns the smoothed load.
func (w *Watch) Load() Load { return w.load }

// Add adds a sample. Budget is the length of a tick.
func (w *Watch) Add(now time.Time, s actor.LoadSample, budget time.Duration, limits Limits) {
	w.sample = s
	var sum actor.ChunkLoad
	for _, c := range s.Chunks {
		sum.Players += c.Players
		sum.Edits += c.Edits
		sum.Stored += c.Stored
	}
	w.load[Players], w.load[Stored] = float64(sum.Players), float64(sum.Stored)
	passed := now.Sub(w.last)
	if w.last.IsZero() {
		w.within, w.quietSince = now, now
	} else if passed > 0 {
		weight := min(1, passed.Seconds()/smoothing.Seconds())
		w.load[Edits] += weight * (float64(sum.Edits)/passed.Seconds() - w.load[Edits])
		busy := 0.0
		if s.Ticks > 0 {
			busy = s.Busy.Seconds() / (float64(s.Ticks) * budget.Seconds())
		}
		w.load[Tick] += weight * (busy - w.load[Tick])
	}
	w.last = now
	pressure := w.Pressure(limits)
	if pressure > quietShare {
		w.quietSince = now
	}
	if pressure <= 1 {
		w.within = now
	}
}

// Pressure returns the largest share of a limit that the region's load is. Above 1 it is too much.
func (w *Watch) Pressure(limits Limits) float64 {
	_, pressure := w.Highest(limits)
	return pressure
}

// Highest returns Pressure and the kind of load that it is of.
func (w *Watch) Highest(limits Limits) (highest LoadKind, pressure float64) {
	for _, kind := range LoadKinds() {
		if limit := limits.Load[kind]; limit > 0 && w.load[kind]/limit > pressure {
			highest, pressure = kind, w.load[kind]/limit
		}
	}
	return highest, pressure
}

// QuietFor returns for how long the region would have been quiet beside a sibling without load.
func (w *Watch) QuietFor() time.Duration { return w.last.Sub(w.quietSince) }

// Settled reports whether the region has had too much load for long enough to be split.
func (w *Watch) Settled() bool { return w.last.Sub(w.within) >= Settle }

// Split reports whether the region is to be split, and by which kind of load.
func (w *Watch) Split(limits Limits) (LoadKind, bool) {
	if !w.Settled() {
		return 0, false
	}
	for _, kind := range LoadKinds() {
		if limit := limits.Load[kind]; limit > 0 && w.load[kind] > limit && w.divides(kind) {
			return kind, true
		}
	}
	return 0, false
}

// divides reports whether splits divide the load: whether this one, or one of those that follow it in the half with
// most of the load, has a fair share of it on both sides. If all of it is in one chunk, no split helps.
func (w *Watch) divides(kind LoadKind) bool {
	cell, total := w.cell, w.weight(w.cell, kind)
	for cell.Label.Len() < grid.MaxLabel && total > 0 {
		lower, upper := cell.Children()
		low, high := w.weight(lower, kind), w.weight(upper, kind)
		if min(low, high) >= leastShare*total {
			return true
		}
		if cell = lower; high > low {
			cell = upper
		}
	}
	return false
}

// weight returns the load of a kind in a part of the region. What a tick costs is divided like players and edits.
func (w *Watch) weight(part grid.Cell, kind LoadKind) float64 {
	sum := 0
	for pos, c := range w.sample.Chunks {
		if !part.Contains(pos) {
			continue
		}
		switch kind {
		case Tick:
			sum += c.Players + c.Edits
		case Players:
			sum += c.Players
		case Edits:
			sum += c.Edits
		case Stored:
			sum += c.Stored
		}
	}
	return float64(sum)
}

// Sibling is what is known of the other half.
type Sibling struct {
	Asleep   bool          // it hibernates
	Pressure float64       // as Watch.Pressure; if it hibernates, that of what is stored
	QuietFor time.Duration // as Watch.QuietFor
}

// MayMerge reports whether the region may be merged with its sibling as far as its own load goes, so that it is worth
// asking for the sibling's.
func (w *Watch) MayMerge(limits Limits) bool {
	return w.quietHalf(limits) && w.QuietFor() >= limits.MergeAfter
}

// Merge reports whether the region is to be merged with its sibling. One of them decides: the lower half, or the one
// that is awake.
func (w *Watch) Merge(limits Limits, sibling Sibling) bool {
	if !w.MayMerge(limits) || w.Pressure(limits)+sibling.Pressure > quietShare {
		return false
	}
	if sibling.Asleep {
		return true
	}
	lower, _ := w.cell.Parent().Children()
	return w.cell == lower && sibling.QuietFor >= limits.MergeAfter
}

// StayAwake reports whether a region that nobody uses stays awake, because it may soon be merged. If that does not come
// about in time, or if it stores too much for that, it hibernates as it is.
func (w *Watch) StayAwake(limits Limits) bool {
	return w.quietHalf(limits) && w.QuietFor() < limits.MergeAfter+mergeSlack
}

// quietHalf reports whether the region is a half, and has little load now.
func (w *Watch) quietHalf(limits Limits) bool {
	return limits.MergeAfter > 0 && limits.Enabled() && w.cell.Label.Len() > grid.FoundingLabel && w.Pressure(limits) <= quietShare
}

// mergeSlack is how long a quiet region waits for its sibling to become quiet, too, before it hibernates.
const mergeSlack = time.Minute
