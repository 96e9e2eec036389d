package placement

import (
	"maps"
	"time"
)

// This file remembers which nodes cannot take a copy of a group, for example because their disks are full: another node is to get it.

const (
	// patience is how long a learner may refuse to join before another node is chosen.
	patience = time.Minute
	// avoidedFor is how long that learner is not chosen again.
	avoidedFor = 5 * time.Minute
)

// invitation is of a learner to a group.
type invitation struct {
	group uint64
	peer  string
}

// refusal is a learner's refusal to join a group.
type refusal struct {
	since   time.Time
	avoided bool // another node was chosen: since is when
}

// refused notes that a learner has refused to join a group. It returns since how long it has.
func (sv *Supervisor) refused(group uint64, peer string) time.Duration {
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

// avoid notes that another node is to be chosen.
func (sv *Supervisor) avoid(group uint64, peer string) {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	sv.mu.refusals[invitation{group, peer}] = refusal{time.Now(), true}
}

// avoids reports whether a node must not be chosen for a group.
func (sv *Supervisor) avoids(group uint64, peer string) bool {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	r := sv.mu.refusals[invitation{group, peer}]
	return r.avoided && time.Since(r.since) <= avoidedFor
}

// accepted notes that a learner has joined a group.
func (sv *Supervisor) accepted(group uint64, peer string) {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	delete(sv.mu.refusals, invitation{group, peer})
}
