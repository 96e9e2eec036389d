package luanti

import "time"

const (
	// maxUnderway is how many bytes may be underway to the client when it is sent another chunk.
	maxUnderway = 128 << 10
	// maxChunks is how many chunks it is sent in one tick.
	maxChunks = 4
)

// Tick sends what time brings.
func (cl *Client) Tick(now time.Time) error {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.mu.ended || !cl.mu.ready {
		return cl.mu.failed
	}
	if cl.mu.player.Lost(now) {
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
	cl.mu.avatars.move(now, cl.mu.origin, cl.put, cl.c.WriteLossy)
	cl.showTime(now)
	cl.showPlace(now)
	return cl.mu.failed
}
