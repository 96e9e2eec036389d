package region

import (
	"slices"
	"sync"
	"time"
)

// This file counts the failures of regions and decides when a region is quarantined. It has no effects besides its lock.

const (
	// failureWindow is how long a failure counts.
	strikeWindow = 10 * time.Minute
	// firstPause is how long a failed region stays closed on its node; it doubles up to longestPause.
	firstPause   = time.Second
	longestPause = time.Minute
	// maxLedFailures is how many failures of leaders, on any members, quarantine the region on all of them.
	strikesLed = 2
	// maxLocalFailures is how many failures on this node quarantine the region here. maxStorageFailures applies if storage
	// refused the writes: a disk that is nearly full must not close land for longer than necessary.
	strikesHere    = 2
	strikesStorage = 6
)

// failure is one failure of a region.
type strike struct {
	at   time.Time
	peer string // the node on which it failed
	kind faultKind
	led  bool // that node led the region
}

// failureRecord is what this node knows of the failures of one region.
type ledger struct {
	strikes []strike        // within failureWindow, oldest first
	until   time.Time       // the region is not opened here before
	why     string          // of the last failure
	shut    bool            // it is quarantined
	since   time.Time       // if it is
	by      string          // the peer that reported it
	shutBy  map[string]bool // other members that have quarantined it
	closed  string          // why the last attempt to open it failed; empty if it succeeded
	told    time.Time       // when it was last logged that it cannot be opened
	ward    *loop           // shows the quarantined land; nil if no gateway watches it
}

// add records a failure. It reports whether the region is now quarantined on this node, and whether it must be on all members.
func (r *ledger) add(s strike, self string) (here, everywhere bool) {
	r.strikes = slices.DeleteFunc(r.strikes, func(old strike) bool { return s.at.Sub(old.at) > strikeWindow })
	r.strikes = append(r.strikes, s)
	led, own, storage := 0, 0, 0
	for _, each := range r.strikes {
		if each.led && each.kind != refused {
			led++
		}
		switch {
		case each.peer != self:
		case each.kind == refused:
			storage++
		default:
			own++
		}
	}
	if s.peer == self {
		r.until = s.at.Add(min(firstPause<<min(own+storage-1, 10), longestPause))
	}
	everywhere = led >= strikesLed
	return everywhere || s.peer == self && (own >= strikesHere || storage >= strikesStorage), everywhere
}

// failureRecords holds the records of all regions that have failed. Any goroutine may use it.
type ledgers struct {
	mu struct {
		sync.Mutex
		regions map[uint64]*ledger
	}
}

// with calls f with the region's record, which is created if necessary.
func (b *ledgers) with(id uint64, f func(*ledger)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.regions == nil {
		b.mu.regions = make(map[uint64]*ledger)
	}
	r := b.mu.regions[id]
	if r == nil {
		r = &ledger{}
		b.mu.regions[id] = r
	}
	f(r)
}

// look returns a copy of the region's record, or the zero value if the region never failed.
func (b *ledgers) look(id uint64) ledger {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.mu.regions[id]
	if r == nil {
		return ledger{}
	}
	copied := *r
	copied.strikes, copied.shutBy = slices.Clone(r.strikes), nil // the originals change
	return copied
}

// quarantined reports whether the region is quarantined here.
func (b *ledgers) quarantined(id uint64) bool { return b.look(id).shut }

// count returns how many regions are quarantined here.
func (b *ledgers) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, r := range b.mu.regions {
		if r.shut {
			n++
		}
	}
	return n
}

// failedPeers returns the nodes on which the region has failed lately.
func (b *ledgers) struckPeers(id uint64) map[string]bool {
	peers := make(map[string]bool)
	for _, s := range b.look(id).strikes {
		if time.Since(s.at) < strikeWindow {
			peers[s.peer] = true
		}
	}
	return peers
}

// opened records that a region could be opened.
func (b *ledgers) opened(id uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.mu.regions[id]; r != nil {
		r.closed = ""
	}
}
