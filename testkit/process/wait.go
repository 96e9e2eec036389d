package process

import (
	"context"
	"fmt"
	"time"
)

// Pause waits, unless ctx ends.
func Pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// Until polls until done returns true. It returns an error that says what did not happen within the limit.
func Until(ctx context.Context, what string, limit time.Duration, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for !done() {
		if err := Pause(ctx, 20*time.Millisecond); err != nil {
			return fmt.Errorf("not within %v: %s", limit, what)
		}
	}
	return nil
}
