package region

import (
	"context"
	"time"
)

// sureTime bounds one question to the other members whether this node leads still; surePause is the time until it is put
// again.
const (
	sureTime  = time.Second
	surePause = 100 * time.Millisecond
)

// sure asks the region's group whether this node leads it still, on behalf of a gateway that has come, and whose seat
// waits for that.
func (h *Host) sure(l *loop, s *seat) {
	h.start(func(ctx context.Context) {
		asking, cancel := context.WithTimeout(ctx, sureTime)
		defer cancel()
		_, err := l.raft.ReadIndex(asking)
		if err != nil {
			select {
			case <-ctx.Done():
				return
			case <-l.done:
				return
			case <-time.After(surePause):
			}
		}
		l.inbox.put(func() { l.verified(s, err) })
	})
}
