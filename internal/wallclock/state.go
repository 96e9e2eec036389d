package wallclock

import (
	"slices"
	"time"
)

const (
	// apart is how far two clocks that are right may be apart.
	apart = 2 * time.Second
	// harmless is how far a clock may be corrected without losing the right to delete: nothing is kept for so short a
	// time.
	harmless = time.Minute
	// evenly is how long the machine's clock must go evenly before it counts again, and how long a node must be alone
	// before that alone counts.
	evenly = 10 * time.Minute
	// settling is how long a clock must run before it may delete, unless other nodes confirm it.
	settling = 24 * time.Hour
)

// Reading is what another node has said.
type Reading struct {
	origin time.Time     // what time it was there when this node's run began
	since  time.Duration // since when in this node's run that is so, or before; when it was said, if the clock there is about to change
}

func (r Reading) settled(gone time.Duration) bool { return gone-r.since >= settling }

// state is the state of a Clock. It reads no clock itself: gone is how long the run has lasted.
type state struct {
	origin  time.Time     // when the run began
	since   time.Duration // since when that is so; before the run if most others confirm it
	machine time.Time     // when the run began by the machine's clock, as it is now
	even    time.Duration // since when the machine's clock has gone evenly
	heard   time.Duration // when others answered last
}

func newState(machine, stored time.Time) state {
	s := state{origin: machine, machine: machine, heard: -evenly}
	if stored.After(machine) {
		s.origin = stored
	}
	return s
}

func (s *state) settled(gone time.Duration) bool { return gone-s.since >= settling }

// vote returns what this node says by itself.
func (s *state) vote(gone time.Duration) Reading {
	if gone-s.even < evenly || s.machine.Sub(s.origin).Abs() <= apart {
		return Reading{s.origin, s.since}
	}
	return Reading{s.machine, gone}
}

func (s *state) consider(gone time.Duration, machine time.Time, others []Reading) (corrected time.Duration) {
	origin := machine.Add(-gone)
	if origin.Sub(s.machine).Abs() > apart {
		s.even = gone
	}
	s.machine = origin
	if len(others) > 0 {
		s.heard = gone
	}
	if len(others) > 0 || gone-s.heard >= evenly { // otherwise the others may come back
		corrected = median(gone, append(slices.Clone(others), s.vote(gone))).Sub(s.origin)
	}
	if corrected.Abs() <= apart {
		corrected = 0
	}
	s.origin = s.origin.Add(corrected)
	if corrected.Abs() > harmless {
		s.since = gone
	}
	confirmed := 0
	for _, r := range others {
		if r.settled(gone) && r.origin.Sub(s.origin).Abs() <= harmless {
			confirmed++
		}
	}
	if confirmed > 1 && 2*confirmed > len(others) { // not one node's word
		s.since = min(s.since, gone-settling)
	}
	return corrected
}

// together is how far apart two clocks may have begun without one being the older one: times are told in seconds.
const together = 5 * time.Second

// median returns the median of the votes: of the settled ones if these are half of all. Of two in the middle the older
// one counts.
func median(gone time.Duration, votes []Reading) time.Time {
	settled := slices.Clone(votes)
	settled = slices.DeleteFunc(settled, func(r Reading) bool { return !r.settled(gone) })
	if 2*len(settled) >= len(votes) {
		votes = settled
	}
	slices.SortFunc(votes, func(a, b Reading) int { return a.origin.Compare(b.origin) })
	low, high := votes[(len(votes)-1)/2], votes[len(votes)/2]
	if high.since < low.since-together {
		return high.origin
	}
	return low.origin
}
