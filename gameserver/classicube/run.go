package classicube

import "time"

// pingEvery is how often an idle connection is written to, so that nothing on the way drops it.
const pingEvery = 5 * time.Second

// Tick sends what time brings.
func (cl *Client) Tick(now time.Time) error {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.mu.ended {
		return cl.mu.out.Flush()
	}
	if now.Sub(cl.mu.pinged) >= pingEvery {
		cl.mu.pinged = now
		cl.put(begin(packetPing))
	}
	if cl.mu.loaded {
		if cl.mu.player.Lost(now) {
			cl.place(now) // the client may have fallen, or lost it in a change of levels
		}
		cl.mu.avatars.move(now, cl.mu.window.origin(), cl.put)
		cl.showTime(now)
		cl.showPlace(now)
	}
	return cl.mu.out.Flush()
}
