package region

import (
	"sync"
	"time"
)

// vigil gives a link up on which nothing is heard for too long: for silence if an edit was sent lately, or if nothing has
// come yet that was waited for, which is the word on a seat; else for calmSilence.
// On the region's side it only tells how often to say that the region lives.
type vigil struct {
	late func() // called, in a goroutine of its own, if neither begin nor end is for too long

	mu struct {
		sync.Mutex
		seated bool        // what was waited for first has come
		last   time.Time   // an edit passed; zero if none ever did
		timer  *time.Timer // runs while something is waited for; nil before the first time
		due    time.Time   // when the timer rings
	}
}

// begin waits anew.
func (v *vigil) begin(now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	patience := calmSilence
	if !v.mu.seated || v.lately(now, eagerFor) {
		patience = silence
	}
	v.mu.due = now.Add(patience)
	if v.mu.timer == nil {
		v.mu.timer = time.AfterFunc(patience, v.late)
		return
	}
	v.mu.timer.Reset(patience)
}

// end has nothing waited for: a frame has come, or the link is of no use any more.
func (v *vigil) end() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.mu.seated = true
	v.mu.timer.Stop()
}

// edited notes that an edit passes. Whoever waits does so for silence at most from now on; edits that follow do not make it
// longer.
func (v *vigil) edited(now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.mu.last = now
	due := now.Add(silence)
	if v.mu.timer == nil || !due.Before(v.mu.due) {
		return
	}
	if v.mu.timer.Stop() {
		v.mu.due = due
		v.mu.timer.Reset(silence)
	}
}

// pause is how long the region may say nothing before it says that it lives.
func (v *vigil) pause(now time.Time) time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.lately(now, 2*eagerFor) {
		return aliveEvery
	}
	return calmEvery
}

// lately tells whether an edit has passed within the time. The lock is held.
func (v *vigil) lately(now time.Time, within time.Duration) bool {
	return !v.mu.last.IsZero() && now.Sub(v.mu.last) < within
}
