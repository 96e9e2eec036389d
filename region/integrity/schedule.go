package integrity

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file schedules scrubs: one at a time on each node. Every region that the node leads is scrubbed once in
// ScrubberOptions.Every. Closed regions are scrubbed less often, since all their members have to wake them.

const (
	// scrubLook is how often the schedule is checked for a region that is due.
	scrubLook = 5 * time.Second
	// closedFactor is the factor between the scrub periods of closed and open regions.
	closedFactor = 24
	// closedLook is how often the closed regions are listed, which reads them from disk.
	closedLook = 5 * time.Minute
)

// schedule holds when each region is due. It belongs to the goroutine of Run.
type schedule struct {
	every time.Duration
	due   map[uint64]time.Time
	drawn func() float64 // in [0, 1)
}

func newSchedule(every time.Duration) *schedule {
	return &schedule{every: every, due: make(map[uint64]time.Time), drawn: rand.Float64}
}

// next returns the region that has been due longest. A new region is due at a random time of the next period, so that
// regions loaded together are not scrubbed together. A scrubbed region is due again after a period and up to a tenth
// more.
func (s *schedule) next(now time.Time, open, closed []nodemsg.Region) (nodemsg.Region, bool) {
	seen := make(map[uint64]bool)
	var first nodemsg.Region
	for i, list := range [][]nodemsg.Region{open, closed} {
		period := s.every
		if i == 1 {
			period *= closedFactor
		}
		for _, info := range list {
			if seen[info.ID] {
				continue // it was closed when the closed ones were listed
			}
			seen[info.ID] = true
			at, known := s.due[info.ID]
			if !known {
				at = now.Add(time.Duration(s.drawn() * float64(period)))
				s.due[info.ID] = at
			}
			if i == 0 && at.Sub(now) > s.every+s.every/10 { // it was closed when that was set
				at = now.Add(time.Duration(s.drawn() * float64(period)))
				s.due[info.ID] = at
			}
			if !at.After(now) && (first.ID == 0 || at.Before(s.due[first.ID])) {
				first = info
			}
		}
	}
	for id := range s.due {
		if !seen[id] {
			delete(s.due, id)
		}
	}
	return first, first.ID != 0
}

// done records that the region was scrubbed, or that a scrub was tried.
func (s *schedule) done(now time.Time, id uint64, closed bool) {
	period := s.every
	if closed {
		period *= closedFactor
	}
	s.due[id] = now.Add(period + time.Duration(s.drawn()*float64(period)/10))
}

// Run scrubs the regions that are due until ctx ends.
func (sc *Scrubber) Run(ctx context.Context) {
	plan := newSchedule(sc.Every)
	var closed []nodemsg.Region
	var listed time.Time
	look := time.NewTicker(min(scrubLook, max(sc.Every/4, time.Millisecond)))
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		if time.Since(listed) > min(closedLook, sc.Every) {
			closed, listed = sc.closedRegions(), time.Now()
		}
		var led []nodemsg.Region
		for _, l := range sc.Led() {
			led = append(led, nodemsg.Region{ID: l.ID(), Cell: l.Cell()})
		}
		info, due := plan.next(time.Now(), led, closed)
		if !due {
			continue
		}
		l := sc.Regions.Loaded(info.ID)
		wasClosed := l == nil
		if wasClosed {
			sc.scrubClosed(ctx, info)
		} else {
			sc.scrub(ctx, l)
		}
		plan.done(time.Now(), info.ID, wasClosed)
	}
}

// closedRegions lists the closed regions that this node is responsible for.
func (sc *Scrubber) closedRegions() []nodemsg.Region {
	infos, err := sc.Registry.All()
	if err != nil {
		sc.Logger.Warn("regions to scrub not listed", "error", err)
	}
	return slices.DeleteFunc(infos, func(info nodemsg.Region) bool {
		return sc.Regions.Loaded(info.ID) != nil || !sc.Supervisor.Responsible(info) || sc.Facts.Closed(info.ID)
	})
}
