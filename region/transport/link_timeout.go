package transport

import (
	"sync"
	"time"
)

const (
	// aliveEvery is how often the region's node sends a frame when it has nothing else to send, and silenceTimeout is
	// how long no frame may arrive before the link is given up. Both apply while a player has edited lately, and until
	// the subscription is accepted.
	aliveEvery     = 250 * time.Millisecond
	silenceTimeout = 1200 * time.Millisecond
	// calmEvery and calmTimeout are the same for links without recent edits. Most links are such, since players see
	// further than they reach. The first edit must be answered within silenceTimeout, so calmEvery is well below that.
	calmEvery   = 750 * time.Millisecond
	calmTimeout = 3 * time.Second
	// eagerFor is how long after an edit a gateway uses the short intervals. The region uses them for twice as long,
	// because it receives the edit later.
	eagerFor = 5 * time.Second
)

// linkTimeout closes a link on which no frame arrives for too long. The limit is silenceTimeout if an edit was sent
// lately or the subscription is not accepted yet, otherwise calmTimeout. On the region's side it only determines how
// often to send a frame.
type linkTimeout struct {
	onExpiry func() // called, in its own goroutine, if neither begin nor end is called for too long

	mu struct {
		sync.Mutex
		accepted bool        // the subscription is accepted
		last     time.Time   // time of the last edit; zero if there was none
		timer    *time.Timer // runs while a frame is awaited; nil before the first time
		due      time.Time   // when the timer fires
	}
}

// begin starts to wait for a frame.
func (v *linkTimeout) begin(now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	patience := calmTimeout
	if !v.mu.accepted || v.lately(now, eagerFor) {
		patience = silenceTimeout
	}
	v.mu.due = now.Add(patience)
	if v.mu.timer == nil {
		v.mu.timer = time.AfterFunc(patience, v.onExpiry)
		return
	}
	v.mu.timer.Reset(patience)
}

// end stops waiting: a frame has arrived, or the link is of no use any more.
func (v *linkTimeout) end() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.mu.accepted = true
	v.mu.timer.Stop()
}

// edited records an edit. A current wait lasts at most silenceTimeout from now on; further edits do not extend it.
func (v *linkTimeout) edited(now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.mu.last = now
	due := now.Add(silenceTimeout)
	if v.mu.timer == nil || !due.Before(v.mu.due) {
		return
	}
	if v.mu.timer.Stop() {
		v.mu.due = due
		v.mu.timer.Reset(silenceTimeout)
	}
}

// pause returns how long the region may send nothing before it sends an empty frame.
func (v *linkTimeout) pause(now time.Time) time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.lately(now, 2*eagerFor) {
		return aliveEvery
	}
	return calmEvery
}

// lately reports whether an edit was recorded within the time. The caller holds the lock.
func (v *linkTimeout) lately(now time.Time, within time.Duration) bool {
	return !v.mu.last.IsZero() && now.Sub(v.mu.last) < within
}
