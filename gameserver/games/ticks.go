package games

import (
	"sync"
	"time"
)

// TickEvery is how often clients are shown where others are, as servers of these games do. Clients interpolate.
const TickEvery = 100 * time.Millisecond

const (
	// earlyTick is when a flush may be a tick, after the last one: the frames that are flushed come about every
	// TickEvery.
	earlyTick = TickEvery * 3 / 4
	// lateTick is when there is a tick without a flush.
	lateTick = TickEvery * 5 / 4
)

// ticks are the times of a client's ticks. The writer's flushes are ticks, so that nothing has to be woken for them.
type ticks struct {
	sync.Mutex
	late *time.Timer
	last time.Time
}

func newTicks() ticks { return ticks{late: time.NewTimer(lateTick)} }

// begin begins a tick, unless it is too early for one.
func (t *ticks) begin(now time.Time) (begun bool) {
	t.Lock()
	defer t.Unlock()
	if now.Sub(t.last) < earlyTick {
		return false
	}
	t.last = now
	t.late.Reset(lateTick)
	return true
}
