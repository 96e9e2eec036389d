package moderation

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/policy"
)

// bulks limits how many blocks players change by bulk edits at this gateway, in all of their sessions: those of an hour,
// which may come at once, so that an operation can be undone. What is one operation, only the page knows. The zero value
// is ready for use.
type bulks struct {
	mu struct {
		sync.Mutex
		byPlayer map[player.ID]*rate.Limiter // of those who might be limited
	}
}

// allow counts blocks of a player, and reports whether they may change them.
func (b *bulks) allow(id player.ID, limits policy.BulkLimits, blocks int, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.mu.byPlayer[id]
	if l == nil {
		for other, l := range b.mu.byPlayer {
			if l.TokensAt(now) >= float64(l.Burst()) {
				delete(b.mu.byPlayer, other) // as new
			}
		}
		if b.mu.byPlayer == nil {
			b.mu.byPlayer = make(map[player.ID]*rate.Limiter)
		}
		l = rate.NewLimiter(0, limits.Hour)
		b.mu.byPlayer[id] = l
	}
	l.SetLimitAt(now, rate.Limit(float64(limits.Hour)/time.Hour.Seconds()))
	l.SetBurstAt(now, limits.Hour)
	return l.AllowN(now, blocks)
}
