package region

import (
	"slices"
	"sync"
	"time"
)

// This file counts the failures of regions and says when it is enough: pure but for the lock.

const (
	// strikeWindow is how long a failure is remembered.
	strikeWindow = 10 * time.Minute
	// firstPause is how long a region that has failed stays closed on its node; it doubles up to longestPause.
	firstPause   = time.Second
	longestPause = time.Minute
	// strikesLed is how many failures of leaders, on whatever members, quarantine the region on all of them.
	strikesLed = 2
	// strikesHere is how many failures on this node quarantine the region here, and strikesStorage how many
	// if storage refused its writes: a disk that is nearly full must not shut land away for longer than that.
	strikesHere    = 2
	strikesStorage = 6
)

// strike is one failure of a region.
type strike struct {
	at   time.Time
	peer string // on which node
	kind faultKind
	led  bool // that node led the region
}

// ledger is what this node knows of the failures of one region.
type ledger struct {
	strikes []strike        // of the last strikeWindow, oldest first
	until   time.Time       // the region is not opened here before
	why     string          // of the last failure
	shut    bool            // it is quarantined
	since   time.Time       // if it is
	by      string          // on whose word
	shutBy  map[string]bool // other members that have quarantined it
	closed  string          // why it could not be opened when that was tried last; empty if it could
	told    time.Time       // when it was last said that it cannot be opened
	ward    *loop           // shows the quarantined land; nil while nobody wants to see it
}

// add takes a strike in and tells what follows from it: that the region is quarantined on this node, and that it
// must be on all members.
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

// ledgers are those of all regions that have failed. Any goroutine may use it.
type ledgers struct {
	mu struct {
		sync.Mutex
		regions map[uint64]*ledger
	}
}

// with gives the region's ledger to f, a new one if there is none.
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

// look gives a copy of the region's ledger, the zero value if it never failed.
func (b *ledgers) look(id uint64) ledger {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.mu.regions[id]
	if r == nil {
		return ledger{}
	}
	copied := *r
	copied.strikes, copied.shutBy = slices.Clone(r.strikes), nil // they change
	return copied
}

// quarantined tells whether the region is shut away here.
func (b *ledgers) quarantined(id uint64) bool { return b.look(id).shut }

// count gives how many regions are shut away here.
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

// struckPeers are the nodes on which the region has failed lately.
func (b *ledgers) struckPeers(id uint64) map[string]bool {
	peers := make(map[string]bool)
	for _, s := range b.look(id).strikes {
		if time.Since(s.at) < strikeWindow {
			peers[s.peer] = true
		}
	}
	return peers
}

// opened notes that a region could be opened.
func (b *ledgers) opened(id uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.mu.regions[id]; r != nil {
		r.closed = ""
	}
}
