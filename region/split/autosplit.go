package split

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/region/placement"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// This file splits regions that have too much load, and merges halves that have become quiet. It measures the regions
// that this node leads once a second, decides by their load (load.go), and acts by the Splitter (docs/adr/0032).

const (
	// sampleEvery is how often the regions that this node leads are measured.
	sampleEvery = time.Second
	// maxChanges bounds the splits and merges that one node has under way: each writes land, and lets edits wait.
	maxChanges = 2
	// changeTime bounds one of them.
	changeTime = 15 * time.Second
	// firstPause is the pause after a failure. It is twice as long each time, up to lastPause.
	firstPause = 10 * time.Second
	lastPause  = 10 * time.Minute
	// minAsk and maxAsk bound how often a quiet region asks what its sibling does, which costs a question to the
	// catalog and some to members: a tenth of MergeAfter.
	minAsk, maxAsk = 5 * time.Second, 20 * time.Second
)

// AutoSplitOptions are what an AutoSplit needs.
type AutoSplitOptions struct {
	integrity.Node
	*Loads
	Splitter   *Splitter
	Supervisor *placement.Supervisor
	Facts      *integrity.Facts
	Led        func() []*actor.Land // the loaded regions that this node leads
	// AskStatuses asks a node, possibly this one, for the status of regions.
	AskStatuses integrity.AskStatuses
	Registerer  prometheus.Registerer
}

// Loads is how much load the regions have that this node leads, and what AutoSplit makes of it. Any goroutine may call
// its methods.
type Loads struct {
	mu struct {
		sync.Mutex
		limits  Limits
		watches map[uint64]*watched // the regions that this node leads
		changes int                 // splits and merges that are under way
	}
}

// NewLoads returns the loads of no regions.
func NewLoads(limits Limits) *Loads {
	l := &Loads{}
	l.mu.limits = limits
	l.mu.watches = make(map[uint64]*watched)
	return l
}

// AutoSplit splits and merges regions while Run runs.
type AutoSplit struct {
	AutoSplitOptions
	metrics *metrics
	asked   map[*actor.Land]chan actor.LoadSample // regions that have not answered yet; owned by Run's goroutine
}

// watched is a region that this node leads.
type watched struct {
	*Watch
	changing bool          // it is being split or merged, or its sibling is being asked
	pause    time.Duration // after the last failure; 0 if there was none
	failed   error         // the last failure, as long as there is something to be done
	until    time.Time     // nothing is done before
}

// NewAutoSplit returns one that has done nothing yet.
func NewAutoSplit(o AutoSplitOptions) *AutoSplit {
	return &AutoSplit{AutoSplitOptions: o, metrics: newMetrics(o.Registerer)}
}

// SetLimits changes the limits.
func (l *Loads) SetLimits(limits Limits) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.limits = limits
}

// StayAwake reports whether a region that nobody uses stays awake, because it may soon be merged.
func (l *Loads) StayAwake(id uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.mu.watches[id]
	return w != nil && (w.changing || w.StayAwake(l.mu.limits))
}

// Run measures and acts until ctx ends.
func (l *AutoSplit) Run(ctx context.Context) {
	every := time.NewTicker(sampleEvery)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		l.round(ctx)
	}
}

// round measures all regions, and starts what is to be done.
func (l *AutoSplit) round(ctx context.Context) {
	lands := l.Led()
	asked := make(map[*actor.Land]chan actor.LoadSample, len(lands))
	for _, land := range lands {
		if asked[land] = l.asked[land]; asked[land] == nil {
			asked[land] = make(chan actor.LoadSample, 1)
			land.SampleLoad(asked[land])
		}
	}
	l.asked = asked
	waiting, cancel := context.WithTimeout(ctx, sampleEvery/2) // one that is busy for longer does not hold up the others
	defer cancel()
	led := make(map[uint64]bool, len(lands))
	depths := [grid.MaxLabel + 1]int{}
	for _, land := range lands {
		s, answered := receive(waiting, asked[land], land)
		if answered {
			delete(asked, land)
		}
		if s.Usable {
			depths[land.Cell().Label.Len()]++
			l.consider(land, s)
		}
		led[land.ID()] = s.Usable || !answered
	}
	l.metrics.observe(depths)
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, w := range l.mu.watches {
		if !led[id] && !w.changing {
			delete(l.mu.watches, id)
		}
	}
}

// receive waits for the sample of a region, unless the region ends or ctx does before.
func receive(ctx context.Context, answer <-chan actor.LoadSample, land *actor.Land) (s actor.LoadSample, ok bool) {
	select {
	case s = <-answer: // also when ctx has ended: others were waited for
		return s, true
	default:
	}
	select {
	case s = <-answer:
		return s, true
	case <-land.Done():
	case <-ctx.Done():
	}
	return s, false
}

// consider adds a sample of a region, and starts what is to be done.
func (l *AutoSplit) consider(land *actor.Land, s actor.LoadSample) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.mu.watches[land.ID()]
	if w == nil {
		w = &watched{Watch: NewWatch(land.Cell())}
		l.mu.watches[land.ID()] = w
	}
	w.Add(now, s, actor.TickEvery, l.mu.limits)
	kind, splits := w.Split(l.mu.limits)
	if !splits && !w.MayMerge(l.mu.limits) {
		w.failed = nil
		return
	}
	if w.changing || now.Before(w.until) || l.Supervisor.Leaves() {
		return
	}
	if splits && !l.begin() {
		return
	}
	w.changing = true
	limits := l.mu.limits
	started := l.Tasks.Start(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, changeTime)
		defer cancel()
		if splits {
			defer l.end()
			l.done(w, l.split(ctx, land, kind))
		} else {
			l.done(w, l.merge(ctx, land, w, limits))
		}
	})
	if !started { // the node stops
		w.changing = false
	}
}

// begin reports whether a split or merge may begin, and counts it. The lock is held.
func (l *AutoSplit) begin() bool {
	if l.mu.changes >= maxChanges {
		return false
	}
	l.mu.changes++
	return true
}

func (l *AutoSplit) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.changes--
}

// errNotYet is returned if a region is not merged now for a reason that is no failure.
var errNotYet = errors.New("not yet")

// done ends a change, and decides when the next one may begin.
func (l *AutoSplit) done(w *watched, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.changing = false
	switch {
	case errors.Is(err, errNotYet):
		w.until = time.Now().Add(max(minAsk, min(l.mu.limits.MergeAfter/10, maxAsk)))
	case err != nil:
		w.failed = err
		w.pause = min(max(firstPause, 2*w.pause), lastPause)
		w.until = time.Now().Add(w.pause)
	default:
		w.pause, w.failed = 0, nil
	}
}

func (l *AutoSplit) split(ctx context.Context, land *actor.Land, kind LoadKind) error {
	if !l.Supervisor.BeginChange(land.ID()) { // its members are being changed, or too many others'
		return errNotYet
	}
	defer l.Supervisor.EndChange(land.ID())
	err := l.ready(land)
	if err == nil {
		err = l.Splitter.SplitHere(ctx, land.ID())
		l.Splitter.Metrics.CountSplit(kind.String(), err)
	}
	if err != nil {
		l.Logger.Warn("region has too much load, and was not split", "region", land.ID(), "cell", land.Cell().String(), "trigger", kind.String(), "error", err)
		return err
	}
	l.Logger.Info("region split because of its load", "region", land.ID(), "cell", land.Cell().String(), "trigger", kind.String())
	return nil
}

// ready returns an error unless all members of the region are up and have nearly all of its log, and it has not failed
// lately.
func (l *AutoSplit) ready(land *actor.Land) error {
	s := land.Raft().Status()
	for _, m := range s.Members {
		about, _ := l.Detector.About(m.Peer)
		switch {
		case l.Facts.FailedLately(land.ID()), slices.Contains(about.Failed, land.ID()):
			return errors.New("it has failed lately")
		case m.Learner, m.Peer != l.Self.Peer && (!m.Active || m.Snapshotting || m.Match+actor.NearlyAll < s.Last):
			return errors.New("its member " + m.Peer + " is down, or has not caught up")
		case l.Detector.Leaving(m.Peer):
			return errors.New("its member " + m.Peer + " is about to stop")
		}
	}
	return nil
}

func (l *AutoSplit) merge(ctx context.Context, land *actor.Land, w *watched, limits Limits) error {
	if err := l.ready(land); err != nil {
		return errNotYet
	}
	sibling, err := l.sibling(ctx, land)
	if err != nil {
		l.Logger.Debug("sibling of a quiet region not known", "region", land.ID(), "cell", land.Cell().String(), "error", err)
		return errNotYet
	}
	l.mu.Lock()
	merges := w.Merge(limits, sibling) && l.begin()
	l.mu.Unlock()
	if !merges {
		return errNotYet
	}
	defer l.end()
	cell := land.Cell().Parent()
	if err := l.parentReady(ctx, cell); err != nil {
		l.Logger.Debug("quiet halves not merged yet", "cell", cell.String(), "error", err)
		return errNotYet
	}
	err = l.Splitter.MergeBecause(ctx, cell, "quiet")
	if err != nil {
		l.Logger.Warn("halves are quiet, and were not merged", "cell", cell.String(), "error", err)
		return err
	}
	l.Logger.Info("quiet halves merged", "cell", cell.String())
	return nil
}

// parentReady returns an error unless all members of the region that is to have the land again are up.
func (l *AutoSplit) parentReady(ctx context.Context, cell grid.Cell) error {
	parent, err := l.Directory.Exactly(ctx, cell)
	if err != nil {
		return err
	}
	for _, m := range parent.Members {
		statuses, _, err := l.AskStatuses(ctx, m.Peer, nodemsg.StatusRequest{Regions: []uint64{parent.ID}})
		if err != nil {
			return fmt.Errorf("member %s of the region before the split: %w", m.Peer, err)
		}
		if s := statuses[0].State; s == nodemsg.StateQuarantined || s == nodemsg.StateFailed {
			return fmt.Errorf("the region before the split is quarantined, or fails, on %s", m.Peer)
		}
	}
	return nil
}

// sibling asks for the load of the other half. It returns an error if that is split, or some of its members do not
// answer or are not ready for a merge.
func (l *AutoSplit) sibling(ctx context.Context, land *actor.Land) (Sibling, error) {
	other, upper := land.Cell().Parent().Children()
	if other == land.Cell() {
		other = upper
	}
	info, err := l.Directory.Exactly(ctx, other)
	if err != nil {
		return Sibling{}, err
	}
	if info.Split != 0 {
		return Sibling{}, errors.New("it is split itself")
	}
	found := Sibling{Asleep: true}
	for _, m := range info.Members {
		statuses, _, err := l.AskStatuses(ctx, m.Peer, nodemsg.StatusRequest{Regions: []uint64{info.ID}, Stored: true})
		if err != nil {
			return Sibling{}, err
		}
		switch s := statuses[0]; s.State {
		case nodemsg.StateQuarantined, nodemsg.StateFailed:
			return Sibling{}, errors.New("it is quarantined, or fails")
		case nodemsg.StateOpen:
			found.Asleep = false
			if s.Leader != m.Peer {
				continue
			}
			for _, other := range s.Members {
				if other.Silent || other.Replica.Learner || other.Behind > actor.NearlyAll {
					return Sibling{}, errors.New("a member of it is down, or has not caught up")
				}
			}
			found.Pressure, found.QuietFor = float64(s.Load)/1000, time.Duration(s.Quiet)*time.Second
		case nodemsg.StateClosed:
			if found.Asleep {
				found.Pressure = max(found.Pressure, float64(s.Load)/1000)
			}
		case nodemsg.StateNone:
		}
	}
	return found, nil
}
