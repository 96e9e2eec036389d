package placement

import (
	"maps"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/replica"
)

// This file remembers which nodes cannot take a copy of a group, for example because their disks are full: another node
// is to get it.

const (
	// patience is how long a learner may refuse to join before another node is chosen.
	patience = time.Minute
	// avoidedFor is how long that learner is not chosen again.
	avoidedFor = 30 * time.Minute
)

// invitation is of a learner to a group.
type invitation struct {
	group uint64
	peer  string
}

// refusal is a learner's, to join a group.
type refusal struct {
	since   time.Time
	avoided bool // another node was chosen: since is when
}

// noteRefusal notes that a learner has refused to join a group. It returns for how long it has done so.
func (sv *Supervisor) noteRefusal(group uint64, peer string) time.Duration {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	maps.DeleteFunc(sv.mu.refusals, func(_ invitation, r refusal) bool { return time.Since(r.since) > avoidedFor })
	of := invitation{group, peer}
	r, known := sv.mu.refusals[of]
	if !known || r.avoided {
		r = refusal{since: time.Now()}
		sv.mu.refusals[of] = r
	}
	return time.Since(r.since)
}

// passOver has a learner avoided if another node can take its place, and reports whether one can.
func (sv *Supervisor) passOver(w Group, learner string) bool {
	status := w.Raft.Status()
	size, _ := sv.nearestOf(w, status)
	status.Members = slices.DeleteFunc(slices.Clone(status.Members), func(m replica.Progress) bool { return m.Peer == learner })
	of := invitation{w.ID, learner}
	sv.mu.Lock()
	sv.mu.refusals[of] = refusal{time.Now(), true}
	sv.mu.Unlock()
	if wanted, nearest := sv.nearestOf(w, status); wanted >= size && len(nearest) >= size {
		return true
	}
	sv.forgetRefusal(w.ID, learner)
	return false
}

// avoids reports whether a node must not be chosen for a group.
func (sv *Supervisor) avoids(group uint64, peer string) bool {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	r := sv.mu.refusals[invitation{group, peer}]
	return r.avoided && time.Since(r.since) <= avoidedFor
}

// forgetRefusal forgets that a learner has refused to join a group.
func (sv *Supervisor) forgetRefusal(group uint64, peer string) {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	delete(sv.mu.refusals, invitation{group, peer})
}
