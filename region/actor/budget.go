package actor

import (
	"fmt"
	"time"

	"github.com/voxelpopuli/voxeld/motion"
)

const (
	// budgetWindow is how long a region's ticks are observed before they are judged. A burst of arrivals or a garbage
	// collection is over sooner.
	budgetWindow = 10 * time.Second
	// minTicks is the number of ticks that a window needs to be judged.
	minTicks = 5
)

// budget detects a region that uses more than its share: more than the length of a tick in more than half of its ticks
// over budgetWindow. Such a region keeps a whole core busy at the expense of its neighbours.
type budget struct {
	cpu   func(work func()) time.Duration // measures how long a piece of work keeps a core busy
	spent time.Duration                   // on input and commits since the last tick
	hot   bool                            // by wall clock, the last tick was over the budget
	since time.Time                       // start of the window; zero if there is none
	ticks int
	over  int
	used  usage // since take
}

// usage is how long a region kept a core busy, and in how many ticks.
type usage struct {
	busy  time.Duration
	ticks int
}

// newBudget returns a budget. CPU measures how long a piece of work keeps a core busy, such as ThreadTime.
func newBudget(cpu func(work func()) time.Duration) budget { return budget{cpu: cpu} }

// run runs and measures a piece of work between two ticks.
func (b *budget) run(work func()) { b.spent += b.measure(work) }

// take returns what was used in ticks since the last call, with what was done between them.
func (b *budget) take() usage {
	used := b.used
	b.used = usage{}
	return used
}

// measure runs a piece of work and returns how long it took. It uses the wall clock, which is cheap. While that shows
// ticks over a quarter of the budget, it uses the thread's CPU time instead: on an overloaded machine, every region
// looks slow by the wall clock.
func (b *budget) measure(work func()) time.Duration {
	if b.hot {
		return b.cpu(work)
	}
	start := time.Now()
	work()
	return time.Since(start)
}

// tick runs one tick of a region that is in use. It returns how long the tick took by the wall clock, and an error if
// the region was over its budget for a whole window.
func (b *budget) tick(work func(), now time.Time) (took time.Duration, blown error) {
	if b.since.IsZero() {
		*b = budget{cpu: b.cpu, hot: b.hot, since: now, spent: b.spent, used: b.used}
	}
	start := time.Now()
	spent := b.spent + b.measure(work)
	took = time.Since(start)
	measured := b.hot
	b.hot = took+b.spent > motion.TickEvery/4
	b.spent = 0
	b.used.busy += spent
	b.used.ticks++
	b.ticks++
	if measured && spent > motion.TickEvery {
		b.over++
	}
	if now.Sub(b.since) < budgetWindow {
		return took, nil
	}
	if b.ticks >= minTicks && 2*b.over > b.ticks {
		blown = fmt.Errorf("%d of %d ticks took longer than %v each", b.over, b.ticks, motion.TickEvery)
	}
	b.since = time.Time{}
	return took, blown
}

// rest discards the window: a region that is idle, or led elsewhere, is not judged.
func (b *budget) rest() {
	if !b.since.IsZero() || b.spent > 0 {
		*b = budget{cpu: b.cpu, used: b.used}
	}
}
