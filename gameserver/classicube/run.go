package classicube

import (
	"context"
	"time"
)

// pingEvery is how often an idle connection is written to, so that nothing on the way drops it.
const pingEvery = 5 * time.Second

// Run moves the other players, and shows the time of day and the coordinates, until ctx ends or the connection fails.
func (cl *Client) Run(ctx context.Context) {
	cl.a.metrics.Run(ctx, &cl.mu.ticks, cl.tick, cl.Cut)
}

// tick sends what time brings.
func (cl *Client) tick(now time.Time) error {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.advance(now)
}

// advance is tick, with the lock held.
func (cl *Client) advance(now time.Time) error {
	cl.mu.ticks.Begin(now)
	if cl.mu.ended {
		return cl.mu.out.Flush()
	}
	if now.Sub(cl.mu.pinged) >= pingEvery {
		cl.mu.pinged = now
		cl.put(begin(packetPing))
	}
	if cl.mu.loaded {
		if !cl.mu.placed.IsZero() && now.Sub(cl.mu.placed) >= placeAgain {
			cl.place(now) // the client may have fallen, or lost it in a change of levels
		}
		cl.mu.avatars.move(now, cl.mu.window.origin(), cl.put)
		cl.showTime(now)
		cl.showPlace(now)
	}
	return cl.mu.out.Flush()
}
