package region

import (
	"context"
	"sync"
	"time"
)

// flightTime bounds one attempt.
const flightTime = 30 * time.Second

// flights shares one attempt among all callers that want the same thing at the same time. The attempt runs in a goroutine of the
// host with its own context, so that a first caller who gives up does not fail the others. The zero value is ready to use.
type flights[K comparable, V any] struct {
	mu struct {
		sync.Mutex
		under map[K]*flight[V]
	}
}

type flight[V any] struct {
	done  chan struct{} // closed when value and err are set
	value V
	err   error
}

// join waits for the pending attempt for the key, or starts one.
func (f *flights[K, V]) join(ctx context.Context, h *Host, key K, attempt func(context.Context) (V, error)) (V, error) {
	one, first := f.enter(key)
	if first {
		started := h.start(func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, flightTime)
			defer cancel()
			one.value, one.err = attempt(ctx)
			f.land(key, one)
		})
		if !started {
			one.err = errStopping
			f.land(key, one)
		}
	}
	select {
	case <-one.done:
		return one.value, one.err
	case <-ctx.Done():
		var none V
		return none, ctx.Err()
	}
}

// enter returns the pending attempt for the key. If first is true, the caller must make the attempt.
func (f *flights[K, V]) enter(key K) (one *flight[V], first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one := f.mu.under[key]; one != nil {
		return one, false
	}
	if f.mu.under == nil {
		f.mu.under = make(map[K]*flight[V])
	}
	one = &flight[V]{done: make(chan struct{})}
	f.mu.under[key] = one
	return one, true
}

func (f *flights[K, V]) land(key K, one *flight[V]) {
	f.mu.Lock()
	delete(f.mu.under, key)
	f.mu.Unlock()
	close(one.done)
}
