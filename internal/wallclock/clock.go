// Package wallclock keeps the time of a world, for all that lasts or is deleted.
//
// A machine's clock may be set at any moment, wrongly, and back again minutes later. So a Clock reads it once, when the
// node starts, and begins with that, or with the newest time that the node has stored, if that is later. From then on
// its time goes on with the monotonic clock, which nobody sets, and is corrected by what most other nodes say. The
// machine's clock counts again once it has gone evenly for ten minutes, and then as one vote among the others'
// (docs/adr/0092).
package wallclock

import (
	"sync"
	"time"
)

// Clock is the clock of one node. Any goroutine may use it.
type Clock struct {
	start time.Time // of the run, with a reading of the monotonic clock

	mu    sync.Mutex
	state state
}

// New returns a clock that begins with the time of the machine, or with a stored time that is later.
func New(stored time.Time) *Clock {
	now := time.Now()
	return &Clock{start: now, state: newState(now.Round(0), stored)}
}

// Now returns the time. It has no reading of the monotonic clock: it may be stored and compared with times of other
// runs and nodes.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.origin.Add(time.Since(c.start))
}

// Settled reports whether what is too old by this clock may be deleted.
func (c *Clock) Settled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.settled(time.Since(c.start))
}

// MachineAhead returns how far the machine's clock is ahead of this one.
func (c *Clock) MachineAhead() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Round(0).Sub(c.state.origin.Add(time.Since(c.start)))
}

// Vote returns what this node says to others, and for how long its clock has run unchanged; 0 if it is about to change.
func (c *Clock) Vote() (at time.Time, age time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	gone := time.Since(c.start)
	vote := c.state.vote(gone)
	return vote.origin.Add(gone), gone - vote.since
}

// Heard returns what a node's vote means for this clock. It came in answer to a question, which took some time.
func (c *Clock) Heard(at time.Time, age time.Duration, asked time.Time, took time.Duration) Reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	said := asked.Add(took / 2).Sub(c.start)
	r := Reading{at.Add(-said), said - age}
	if r.origin.Sub(c.state.origin).Abs() <= took {
		r.origin = c.state.origin // nothing else can be told
	}
	return r
}

// Consider corrects the clock by what other nodes that answer say, and by the machine's clock. It returns by how much.
// It is to be called every few seconds.
func (c *Clock) Consider(others []Reading) (corrected time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	gone := now.Sub(c.start)
	return c.state.consider(gone, now.Round(0), others)
}
