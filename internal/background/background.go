// Package background runs goroutines that a blocking Run awaits, and shares one attempt among all callers that want the
// same thing. Any goroutine may start tasks.
package background

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// ErrStopping is returned if a task cannot be started because the tasks are ending.
var ErrStopping = errors.New("the node is stopping")

// AttemptTime bounds one attempt of Shared.
const AttemptTime = 30 * time.Second

// Tasks are goroutines that Run awaits.
type Tasks struct {
	spawn chan func(context.Context)
	stop  chan struct{} // closed when Run begins to end
}

// NewTasks returns tasks. None starts before Run is called.
func NewTasks() *Tasks {
	return &Tasks{spawn: make(chan func(context.Context)), stop: make(chan struct{})}
}

// Run runs the first tasks and those that are passed to Start. When ctx ends, it waits until all have returned.
func (t *Tasks) Run(ctx context.Context, first ...func(context.Context)) {
	var running sync.WaitGroup
	defer running.Wait()
	defer close(t.stop)
	for _, task := range first {
		running.Go(func() { task(ctx) })
	}
	for {
		select {
		case <-ctx.Done():
			return
		case task := <-t.spawn:
			running.Go(func() { task(ctx) })
		}
	}
}

// Start runs a task in a goroutine that Run awaits. It reports false if Run is ending.
func (t *Tasks) Start(task func(context.Context)) bool {
	select {
	case t.spawn <- task:
		return true
	case <-t.stop:
		return false
	}
}

// Shared shares one attempt among all callers that want the same key at the same time. The attempt runs as a task with
// its own context, so that a first caller who gives up does not fail the others. The zero value is ready to use.
type Shared[V any] struct {
	group singleflight.Group
}

// Do waits for the pending attempt for the key, or starts one.
func (s *Shared[V]) Do(ctx context.Context, tasks *Tasks, key string, attempt func(context.Context) (V, error)) (V, error) {
	result := s.group.DoChan(key, func() (any, error) {
		var value V
		err := ErrStopping
		done := make(chan struct{})
		if tasks.Start(func(ctx context.Context) {
			defer close(done)
			ctx, cancel := context.WithTimeout(ctx, AttemptTime)
			defer cancel()
			value, err = attempt(ctx)
		}) {
			<-done
		}
		return value, err
	})
	select {
	case r := <-result:
		return r.Val.(V), r.Err
	case <-ctx.Done():
		var none V
		return none, ctx.Err()
	}
}

// Several calls do with the numbers below n, at most limit at the same time, and waits for all.
func Several(limit, n int, do func(i int)) {
	var wg sync.WaitGroup
	tokens := make(chan struct{}, limit)
	for i := range n {
		tokens <- struct{}{}
		wg.Go(func() {
			defer func() { <-tokens }()
			do(i)
		})
	}
	wg.Wait()
}
