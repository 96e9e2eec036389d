package integrity

import (
	"slices"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/fault"
)

// This file counts the failures of regions and decides when a region is quarantined. It has no effects besides its lock.

const (
	// failureWindow is how long a failure counts.
	failureWindow = 10 * time.Minute
	// FirstPause is how long a failed region stays closed on its node; it doubles up to MaxPause.
	FirstPause = time.Second
	// MaxPause is the longest pause.
	MaxPause = time.Minute
	// maxFailedLeaders is how many members, failed as leaders, quarantine the region on all of them. One alone may be wrong, or lie.
	maxFailedLeaders = 2
	// maxLocalFailures is how many failures on this node quarantine the region here. maxStorageFailures applies if storage
	// refused the writes: a disk that is nearly full must not close land for longer than necessary.
	maxLocalFailures   = 2
	maxStorageFailures = 6
	// maxAlike is how many failures of one kind are kept of one node: more than any count needs.
	maxAlike = 8
)

// failure is one failure of a region.
type failure struct {
	at   time.Time
	peer string // the node on which it failed
	kind fault.Kind
	led  bool // that node led the region
}

// failureRecord is what this node knows of the failures of one region.
type failureRecord struct {
	failures      []failure            // within failureWindow, oldest first; at most maxAlike that are alike
	until         time.Time            // the region is not opened here before
	why           string               // of the last failure
	quarantined   bool                 // it is quarantined
	since         time.Time            // if it is
	by            string               // the peer that reported it
	quarantinedBy map[string]time.Time // other members that have quarantined it, and when they said so
	openError     string               // why the last attempt to open it failed; empty if it succeeded
	logged        time.Time            // when it was last logged that it cannot be opened
	readOnly      *actor.Land          // shows the quarantined land; nil if no gateway watches it
}

// add records a failure. It reports whether the region is now quarantined on this node, and whether it must be on all members.
func (r *failureRecord) add(s failure, self string) (here, everywhere bool) {
	r.failures = slices.DeleteFunc(r.failures, func(old failure) bool { return s.at.Sub(old.at) > failureWindow })
	alike := func(old failure) bool {
		return old.peer == s.peer && old.led == s.led && (old.kind == fault.Refused) == (s.kind == fault.Refused)
	}
	if same := slices.DeleteFunc(slices.Clone(r.failures), func(old failure) bool { return !alike(old) }); len(same) == maxAlike {
		i := slices.IndexFunc(r.failures, alike)
		r.failures = slices.Delete(r.failures, i, i+1)
	}
	r.failures = append(r.failures, s)
	own, storage := 0, 0
	leaders := make(map[string]bool)
	for _, each := range r.failures {
		if each.led && each.kind != fault.Refused {
			leaders[each.peer] = true
		}
		switch {
		case each.peer != self:
		case each.kind == fault.Refused:
			storage++
		default:
			own++
		}
	}
	if s.peer == self {
		r.until = s.at.Add(min(FirstPause<<min(own+storage-1, 10), MaxPause))
	}
	everywhere = len(leaders) >= maxFailedLeaders
	return everywhere || s.peer == self && (own >= maxLocalFailures || storage >= maxStorageFailures), everywhere
}

// Failures holds the records of all regions that have failed. Any goroutine may use it.
type Failures struct {
	mu struct {
		sync.Mutex
		regions map[uint64]*failureRecord
	}
}

// with calls f with the region's record, which is created if necessary.
func (b *Failures) with(id uint64, f func(*failureRecord)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.regions == nil {
		b.mu.regions = make(map[uint64]*failureRecord)
	}
	r := b.mu.regions[id]
	if r == nil {
		r = &failureRecord{}
		b.mu.regions[id] = r
	}
	f(r)
}

// look returns a copy of the region's record, or the zero value if the region never failed.
func (b *Failures) look(id uint64) failureRecord {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.mu.regions[id]
	if r == nil {
		return failureRecord{}
	}
	copied := *r
	copied.failures, copied.quarantinedBy = slices.Clone(r.failures), nil // the originals change
	return copied
}

// Quarantined reports whether the region is quarantined here.
func (b *Failures) Quarantined(id uint64) bool { return b.look(id).quarantined }

// AllQuarantined lists the regions that are quarantined here, by ascending id.
func (b *Failures) AllQuarantined() []uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	var ids []uint64
	for id, r := range b.mu.regions {
		if r.quarantined {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// FailedPeers returns the nodes on which the region has failed lately.
func (b *Failures) FailedPeers(id uint64) map[string]bool {
	peers := make(map[string]bool)
	for _, s := range b.look(id).failures {
		if time.Since(s.at) < failureWindow {
			peers[s.peer] = true
		}
	}
	return peers
}

// Opened records that a region could be opened.
func (b *Failures) Opened(id uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.mu.regions[id]; r != nil {
		r.openError = ""
	}
}

// Paused reports whether the region is quarantined here, and until when it is not opened here.
func (b *Failures) Paused(id uint64) (quarantined bool, until time.Time) {
	r := b.look(id)
	return r.quarantined, r.until
}

// Postpone records that the region is not opened here during the pause.
func (b *Failures) Postpone(id uint64, pause time.Duration) {
	b.with(id, func(r *failureRecord) { r.until = time.Now().Add(pause) })
}

// Status returns what an operator wants to know: whether the region is quarantined or cannot be opened, and why. Failed is set if the
// last attempt to open it failed, or it failed so lately that it is not opened yet.
func (b *Failures) Status(id uint64) (quarantined, failed bool, why string) {
	r := b.look(id)
	switch {
	case r.quarantined:
		return true, false, r.why
	case r.openError != "":
		return false, true, r.openError
	case time.Now().Before(r.until):
		return false, true, r.why
	}
	return false, false, ""
}
