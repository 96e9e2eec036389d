package region

import (
	"context"
	"time"
)

// confirmTime bounds one leadership check with the other members; confirmPause is the pause after a failed check.
const (
	sureTime  = time.Second
	surePause = 100 * time.Millisecond
)

// confirmLeadership asks the region's group whether this node still leads it, on behalf of a pending subscriber.
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
