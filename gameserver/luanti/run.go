package luanti

import (
	"context"
	"time"
)

const (
	// tickEvery is how often other players are moved.
	tickEvery = 50 * time.Millisecond
	// timeEvery is how often the client is told the time of day. It keeps the connection in use, too.
	timeEvery = 5 * time.Second
	// maxUnderway is how many bytes may be underway to the client when it is sent another chunk.
	maxUnderway = 128 << 10
	// maxChunks is how many chunks it is sent in one tick.
	maxChunks = 4
)

// Run sends land, moves the other players, and tells the time of day, until ctx ends or the connection fails.
func (cl *Client) Run(ctx context.Context) {
	cl.a.metrics.clients.Inc()
	defer cl.a.metrics.clients.Dec()
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			if cl.tick(now) != nil {
				cl.Cut()
				return
			}
		}
	}
}

// tick sends what time brings.
func (cl *Client) tick(now time.Time) error {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.mu.ended || !cl.mu.ready {
		return cl.mu.failed
	}
	if !cl.mu.placed.IsZero() && now.Sub(cl.mu.placed) >= placeAgain {
		cl.place(now)
	}
	for range maxChunks {
		if cl.c.Backlog() > maxUnderway {
			break
		}
		if sent, err := cl.sendNearest(); err != nil {
			return err
		} else if !sent {
			break
		}
	}
	cl.mu.avatars.move(now, cl.mu.origin, cl.put)
	cl.showTime(now)
	return cl.mu.failed
}

// showTime tells the client the time of day.
func (cl *Client) showTime(now time.Time) {
	w := &cl.mu.welcome
	if now.Sub(cl.mu.clocked) < timeEvery || w.DayMS <= 0 {
		return
	}
	cl.mu.clocked = now
	days := w.TimeOfDay/1440 + float64(now.Sub(cl.mu.since).Milliseconds())/float64(w.DayMS)
	const units, dayMS = 24000, 24 * 3600 * 1000
	cl.put(begin(toTimeOfDay).u16(uint16(int64(days*units) % units)).f32(dayMS / float64(w.DayMS))) //nolint:gosec // positive
}
