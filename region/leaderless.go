package region

import (
	"context"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/world"
)

// This file drops copies of groups that have removed this node while it could not be reached. The members send such a copy nothing, and refuse what it sends: a
// voter never has a leader again, and a learner goes on to believe in the last one.

const (
	leaderlessEvery = 5 * time.Second
	// checkedEvery is the number of rounds between two checks of a group: most of them have only lost their majority.
	checkedEvery = 12
	// maxChecked bounds how many groups are checked in one round: each costs a question to its members.
	maxChecked = 8
)

// checkLeaderless checks the open groups that have no leader, or in which this node is a learner, until ctx ends: when one is found for the second time, and
// then once a minute.
func (h *Host) checkLeaderless(ctx context.Context) {
	ticker := time.NewTicker(leaderlessEvery)
	defer ticker.Stop()
	rounds := make(map[uint64]int) // by group: in how many rounds in succession it was found
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
			if err := h.supersession.Check(ctx, h.supersession.Judge.Quiet(), id); err != nil {
				h.Logger.Debug("copy without a leader kept", "region", id, "error", err)
			}
		}
	}
}

// leaderless lists the open groups that have no leader, or in which this node is a learner.
func leaderless(r *regions) (ids []uint64) {
	unled := func(g *replica.Group) bool {
		learner := func(m replica.Member) bool { return m.Peer == r.Self.Peer && m.Learner }
		return g.Status().Leader == "" || slices.ContainsFunc(g.Configuration().Members, learner)
	}
	if c := r.Catalog(); c != nil && unled(c.Raft()) {
		ids = append(ids, world.CatalogID)
	}
	for _, l := range r.lands() {
		if unled(l.Raft()) {
			ids = append(ids, l.ID())
		}
	}
	return ids
}
