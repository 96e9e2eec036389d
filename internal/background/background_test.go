package background

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// A first caller that gives up does not fail the other callers waiting for the same attempt. An attempt that takes too
// long fails, and the end of the tasks fails all attempts.
func TestAttemptOutlivesItsFirstCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := NewTasks()
		running, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { tasks.Run(running); close(ended) }()
		var s Shared[int]
		attempts, release := 0, make(chan struct{})
		attempt := func(ctx context.Context) (int, error) {
			attempts++
			select {
			case <-release:
				return 7, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		first, second := make(chan error, 1), make(chan int, 1)
		go func() { _, err := s.Do(ctx, tasks, "x", attempt); first <- err }()
		synctest.Wait()
		go func() {
			v, err := s.Do(t.Context(), tasks, "x", attempt)
			if err != nil {
				t.Error(err)
			}
			second <- v
		}()
		synctest.Wait()
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		close(release)
		if v := <-second; v != 7 || attempts != 1 {
			t.Errorf("got %d after %d attempts", v, attempts)
		}
		release = make(chan struct{})
		if _, err := s.Do(t.Context(), tasks, "y", attempt); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		go func() { _, err := s.Do(t.Context(), tasks, "z", attempt); first <- err }()
		synctest.Wait()
		stop()
		<-ended
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if _, err := s.Do(t.Context(), tasks, "z", attempt); !errors.Is(err, ErrStopping) {
			t.Error(err)
		}
	})
}
