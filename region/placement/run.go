package placement

import (
	"context"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/background"
	"github.com/voxelpopuli/voxeld/region/directory"
)

// slowPoll is the interval in which Run looks whether this node's disk has become slow, while it leads any group.
const slowPoll = 100 * time.Millisecond

// Run makes the members of the groups that this node leads follow their keys, until the node is about to stop. It hands
// them over as soon as this node's disk is slow: each of their edits waits for it.
func (sv *Supervisor) Run(ctx context.Context) {
	every, poll := time.NewTicker(directory.RoundEvery), time.NewTicker(slowPoll)
	defer every.Stop()
	defer poll.Stop()
	for round, slow := 0, false; ; {
		select {
		case <-sv.leaving:
			return
		case <-poll.C:
			was := slow
			if slow = sv.Slow(); slow && !was {
				sv.reconcileAll(sv.Regions.Led())
			}
			continue
		case <-every.C:
		}
		if sv.superviseOnce(ctx) {
			poll.Reset(slowPoll)
		} else {
			poll.Stop()
		}
		sv.NotifyEvicted(ctx)
		if round%rowsEvery == rowsEvery-1 && sv.shouldCheckClosed(round) {
			if err := sv.checkClosed(ctx); err != nil {
				sv.Logger.Warn("closed regions not checked", "error", err)
			}
			sv.Detector.Forget()
			sv.forgetDeleted()
		}
		sv.wakeMisplaced(ctx, round)
		round++
	}
}

// superviseOnce updates the state of the known nodes, and then reconciles every group that is led here. It reports
// whether there is one.
func (sv *Supervisor) superviseOnce(ctx context.Context) (leads bool) {
	groups := sv.Regions.Led()
	peers := make(directory.Watched)
	for _, peer := range sv.Records.NearestKnown(grid.CatalogKey, Neighbours) {
		peers.Add(peer, sv.Detector.StrangerEvery)
	}
	sv.Watch(peers)
	lag := uint64(0)
	for _, w := range groups {
		key, _ := sv.target(w)
		for _, peer := range sv.Records.NearestKnown(key, directory.Candidates) {
			peers.Add(peer, sv.Detector.StrangerEvery)
		}
		status := w.Raft.Status()
		sv.ledFor(w.ID, status.Term)
		for _, m := range status.Members {
			peers.Add(m.Peer, sv.Detector.Every)
			if m.Active && !m.Learner && m.Match < status.Last {
				lag = max(lag, status.Last-m.Match)
			}
		}
	}
	sv.metrics.lag.Set(float64(lag))
	sv.metrics.led.Set(float64(len(groups)))
	delete(peers, sv.Self)
	sv.Detector.Refresh(ctx, peers)
	sv.reconcileAll(groups)
	return len(sv.Regions.Led()) > 0 // it may have begun to lead one since
}

// reconcileAll starts a task for each group, unless it has one.
func (sv *Supervisor) reconcileAll(groups []Group) {
	for _, w := range groups {
		if !sv.BeginChange(w.ID) {
			continue
		}
		started := sv.Tasks.Start(func(ctx context.Context) {
			defer sv.EndChange(w.ID)
			ctx, cancel := context.WithTimeout(ctx, background.AttemptTime)
			defer cancel()
			sv.reconcile(ctx, w)
		})
		if !started {
			sv.EndChange(w.ID)
		}
	}
}
