package placement

import (
	"context"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/background"
	"github.com/voxelpopuli/voxeld/region/directory"
	"github.com/voxelpopuli/voxeld/region/failuredetector"
)

// Run makes the members of the groups that this node leads follow their keys, until the node is about to stop.
func (sv *Supervisor) Run(ctx context.Context) {
	every := time.NewTicker(failuredetector.RoundEvery)
	defer every.Stop()
	for round := 0; ; round++ {
		select {
		case <-sv.leaving:
			return
		case <-every.C:
		}
		sv.superviseOnce(ctx)
		sv.NotifyEvicted(ctx)
		if round%rowsEvery == rowsEvery-1 && sv.shouldCheckClosed(round) {
			if err := sv.checkClosed(ctx); err != nil {
				sv.Logger.Warn("closed regions not checked", "error", err)
			}
			sv.Detector.Forget()
		}
		sv.wakeMisplaced(ctx, round)
	}
}

// superviseOnce updates the state of the known nodes, and then reconciles every group that is led here.
func (sv *Supervisor) superviseOnce(ctx context.Context) {
	groups := sv.Regions.Led()
	peers := make(failuredetector.Watched)
	for _, peer := range sv.Records.NearestKnown(grid.CatalogKey, Neighbours) {
		peers.Add(peer, sv.Detector.StrangerEvery)
	}
	sv.Watch(peers)
	lag := uint64(0)
	for _, w := range groups {
		for _, peer := range sv.Records.NearestKnown(w.Key, directory.Candidates) {
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
