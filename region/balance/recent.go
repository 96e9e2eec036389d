package balance

import (
	"math"
	"time"
)

// Smoothing is the time constant of the average of a load: a burst is over sooner.
const Smoothing = 6 * time.Second

// Recent are the moves that are not in the loads of nodes yet, since these are averages, and reported now and then. The zero value has none.
type Recent struct{ moved []movedLoad }

// movedLoad is the load of a region that has been moved.
type movedLoad struct {
	from, to string
	load     float64
	at       time.Time
}

// Add counts a region's load for its new leader from now on.
func (r *Recent) Add(from, to string, load float64, now time.Time) {
	kept := r.moved[:0]
	for _, each := range r.moved {
		if now.Sub(each.at) < 4*Settled {
			kept = append(kept, each)
		}
	}
	r.moved = append(kept, movedLoad{from, to, load, now})
}

// Adjust returns a node's load with the part of these moves that was not in it when it was reported.
func (r *Recent) Adjust(n Node, peer string, reportedAt time.Time) Node {
	for _, each := range r.moved {
		missing := each.load * math.Exp(-max(0, reportedAt.Sub(each.at).Seconds())/Smoothing.Seconds())
		switch peer {
		case each.from:
			n.Busy -= missing
		case each.to:
			n.Busy += missing
		}
	}
	n.Busy = max(0, n.Busy)
	return n
}
