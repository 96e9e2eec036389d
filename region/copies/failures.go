package copies

import (
	"slices"
	"time"
)

const (
	// failureWindow is how long a failure counts.
	failureWindow = 10 * time.Minute
	// FirstPause is how long a copy that failed stays closed; it doubles up to MaxPause.
	FirstPause = time.Second
	// MaxPause is the longest pause.
	MaxPause = time.Minute
	// mostFailures and mostRefusals are how many failures need an operator. Refusals are those of a disk that does not
	// take writes: one that is nearly full must not close land for longer than necessary.
	mostFailures, mostRefusals = 2, 6
	// MostReplaced bounds how often a copy is replaced within ReplacedWithin. If it is damaged once more, the file is
	// broken in a way that rewriting does not repair.
	MostReplaced = 3
	// ReplacedWithin is the time of MostReplaced.
	ReplacedWithin = 24 * time.Hour
)

// Failures are the failures of a copy on its node. The zero value is none.
type Failures struct {
	lately     []failure // within failureWindow, the oldest first; at most mostFailures + mostRefusals
	until      time.Time // the copy is not opened before
	repeatedly bool      // it stays closed until an operator releases it
}

type failure struct {
	at      time.Time
	refused bool
}

// Add adds a failure. Refused means that the disk did not take writes.
func (f *Failures) Add(at time.Time, refused bool) {
	f.forget(at)
	f.lately = append(f.lately, failure{at, refused})
	n := 0
	for _, each := range f.lately {
		if each.refused == refused {
			n++
		}
	}
	most := mostFailures
	if refused {
		most = mostRefusals
	}
	f.repeatedly = f.repeatedly || n >= most
	f.until = at.Add(min(FirstPause<<min(len(f.lately)-1, 10), MaxPause))
	if f.repeatedly {
		f.lately = f.lately[len(f.lately)-1:]
	}
}

func (f *Failures) forget(now time.Time) {
	f.lately = slices.DeleteFunc(f.lately, func(old failure) bool { return now.Sub(old.at) > failureWindow })
}

// Postpone has the copy closed for a pause.
func (f *Failures) Postpone(until time.Time) { f.until = until }

// Lately reports whether the copy has failed lately.
func (f *Failures) Lately(now time.Time) bool {
	f.forget(now)
	return len(f.lately) > 0
}

// Until returns when the copy may be opened again, unless that takes an operator.
func (f *Failures) Until() time.Time { return f.until }

// State returns what failed, as a fact.
func (f *Failures) State(now time.Time) Failed {
	switch {
	case f.repeatedly:
		return Repeatedly
	case now.Before(f.until):
		return Pausing
	}
	return Works
}
