package region

import (
	"context"
	"time"

	"github.com/voxelpopuli/voxeld/world"
)

// This file drops copies of groups that have removed this node while it could not be reached. Such a copy never has a leader again: the members send it
// nothing, and refuse what it sends.

const (
	leaderlessEvery = 5 * time.Second
	// checkedEvery is in how many rounds a group is checked once: most of them have only lost their majority.
	checkedEvery = 12
	// maxChecked bounds how many groups are checked in one round: each costs a question to its members.
	maxChecked = 8
)

// checkLeaderless checks the open groups that have no leader, until ctx ends: when one is found for the second time, and then once a minute.
func (h *Host) checkLeaderless(ctx context.Context) {
	ticker := time.NewTicker(leaderlessEvery)
	defer ticker.Stop()
	rounds := make(map[uint64]int) // by group: in how many rounds in succession it had no leader
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		before, checked := rounds, 0
		rounds = make(map[uint64]int)
		for _, id := range leaderless(h.regions) {
			n := before[id] + 1
			rounds[id] = n
			if n%checkedEvery != 2 {
				continue
			}
			if checked++; checked > maxChecked {
				rounds[id] = n - 1 // it is checked in the next round
				continue
			}
			if err := h.supersession.Check(ctx, id); err != nil {
				h.Logger.Debug("copy without a leader kept", "region", id, "error", err)
			}
		}
	}
}

// leaderless lists the open groups that have no leader.
func leaderless(r *regions) (ids []uint64) {
	if c := r.Catalog(); c != nil && c.Raft().Status().Leader == "" {
		ids = append(ids, world.CatalogID)
	}
	for _, l := range r.lands() {
		if l.Raft().Status().Leader == "" {
			ids = append(ids, l.ID())
		}
	}
	return ids
}
