package replica

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

const (
	// HungAfter is how long a commit may be under way before the disk counts as hung.
	HungAfter = time.Second
	// SlowFor is how long a disk counts as slow after a commit that took longer than HungAfter, or two in a row that
	// took longer than lateAfter. A disk that has hung once is likely to hang again, and each time the groups that are
	// led there wait for an election.
	SlowFor = 5 * time.Minute
	// lateAfter is half of HungAfter because an edit waits for up to three commits of its leader: that of the entry
	// before it, one of other groups, and its own. Each may wait for the disk twice.
	lateAfter = HungAfter / 2
	// hungLogged is how long a commit may be under way before that is logged. It is longer than HungAfter, so that a
	// disk which is only slow does not fill the log.
	hungLogged = 5 * time.Second
)

// ErrHung is the reason of Stalled while a commit takes longer than HungAfter. Nothing is known of its outcome yet.
var ErrHung = errors.New("the disk does not answer")

// diskWatch is what is known of the storage's speed, for any goroutine: the one that makes the commits is blocked while
// the disk hangs. Times are monotonic.
type diskWatch struct {
	began atomic.Pointer[time.Time] // when the commit under way began; nil if there is none
	slow  atomic.Pointer[time.Time] // when a commit ended that made the disk count as slow; nil if none did
	late  bool                      // the last commit took longer than lateAfter; owned by the goroutine that makes them
}

// begin records that a commit begins. The caller calls end when it has ended.
func (w *diskWatch) begin() (end func() time.Duration) {
	began := time.Now()
	w.began.Store(&began)
	return func() time.Duration {
		w.began.Store(nil)
		now := time.Now()
		took := now.Sub(began)
		late := took > lateAfter
		if took > HungAfter || late && w.late {
			w.slow.Store(&now)
		}
		w.late = late
		return took
	}
}

// hung returns for how long the commit under way has taken, if that is longer than HungAfter; else 0.
func (w *diskWatch) hung() time.Duration {
	if began := w.began.Load(); began != nil && time.Since(*began) > HungAfter {
		return time.Since(*began)
	}
	return 0
}

// Hung reports whether a commit has been under way for longer than HungAfter. Until it ends this node takes no part in
// its groups: it sends and receives nothing, so the other members elect leaders without it, and it does not learn of
// them. Any goroutine may call it.
func (h *Host) Hung() bool { return h.committer.watch.hung() > 0 }

// Slow reports whether the disk hangs, or was slow in the last SlowFor. Any goroutine may call it.
func (h *Host) Slow() bool {
	ended := h.committer.watch.slow.Load()
	return h.Hung() || ended != nil && time.Since(*ended) < SlowFor
}

// Stalled returns why nothing is written: storage refuses it, or does not answer (ErrHung). It is nil while storage
// works. Any goroutine may call it.
func (h *Host) Stalled() error {
	if cause := h.committer.stalled.Load(); cause != nil {
		return *cause
	}
	if hung := h.committer.watch.hung(); hung > 0 {
		return fmt.Errorf("%w: a write has been waiting for %v", ErrHung, hung.Round(time.Second))
	}
	return nil
}
