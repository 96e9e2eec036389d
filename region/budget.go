package region

import (
	"fmt"
	"time"
)

const (
	// budgetWindow is how long the ticks of a region are watched before they are judged. A crowd that arrives, or
	// a garbage collection, is over in less.
	budgetWindow = 10 * time.Second
	// leastTicks is how many ticks of a window must be there to judge it.
	leastTicks = 5
)

// budget judges whether a region needs more than its share: more than the length of a tick in more than half of
// its ticks over budgetWindow. Its neighbours pay for it then, for a tick that takes longer than a tick has a
// core for itself. Owned by the loop.
type budget struct {
	cpu   func(work func()) time.Duration // how long a piece of work keeps a core busy
	spent time.Duration                   // on inputs and commits since the last tick
	hot   bool                            // the last tick was over the budget by the wall clock
	since time.Time                       // of the window; zero if there is none
	ticks int
	over  int
}

// do runs a piece of work between two ticks.
func (b *budget) do(work func()) { b.spent += b.measure(work) }

// measure takes the time of a piece of work: by the wall clock, which costs nothing, and while that finds ticks too
// long by the thread's CPU time. On a machine that is overloaded as a whole every region looks slow to the wall clock.
func (b *budget) measure(work func()) time.Duration {
	if b.hot {
		return b.cpu(work)
	}
	start := time.Now()
	work()
	return time.Since(start)
}

// tick runs a tick of a region that is in use, and gives how long it took by the wall clock. Blown says that the
// region has used up its budget for a whole window.
func (b *budget) tick(work func(), now time.Time) (took time.Duration, blown error) {
	if b.since.IsZero() {
		*b = budget{cpu: b.cpu, hot: b.hot, since: now}
	}
	start := time.Now()
	spent := b.spent + b.measure(work)
	took = time.Since(start)
	measured := b.hot
	b.hot = took+b.spent > TickEvery
	b.spent = 0
	b.ticks++
	if measured && spent > TickEvery {
		b.over++
	}
	if now.Sub(b.since) < budgetWindow {
		return took, nil
	}
	if b.ticks >= leastTicks && 2*b.over > b.ticks {
		blown = fmt.Errorf("%d of %d ticks took longer than %v each", b.over, b.ticks, TickEvery)
	}
	b.since = time.Time{}
	return took, blown
}

// rest forgets the window: a region that is at rest, or led elsewhere, is not judged.
func (b *budget) rest() {
	if !b.since.IsZero() || b.spent > 0 {
		*b = budget{cpu: b.cpu}
	}
}
