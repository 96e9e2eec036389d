package region

import (
	"context"
	"time"
)

// confirmTime bounds one leadership check with the other members; confirmPause is the pause after a failed check.
const (
	confirmTime  = time.Second
	confirmPause = 100 * time.Millisecond
)

// confirmLeadership asks the region's group whether this node still leads it, on behalf of a pending subscriber.
func (h *Host) confirmLeadership(l *loop, s *subscriber) {
	h.start(func(ctx context.Context) {
		asking, cancel := context.WithTimeout(ctx, confirmTime)
		defer cancel()
		_, err := l.raft.ReadIndex(asking)
		if err != nil {
			select {
			case <-ctx.Done():
				return
			case <-l.done:
				return
			case <-time.After(confirmPause):
			}
		}
		l.inbox.Put(func() { l.leadershipChecked(s, err) })
	})
}
