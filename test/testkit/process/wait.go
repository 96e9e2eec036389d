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

// Until polls at an interval until done returns true. It returns an error that says what did not happen within the
// limit, or why ctx ended before.
func Until(ctx context.Context, what string, interval, limit time.Duration, done func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not within %v: %s", limit, what))
	defer cancel()
	for !done() {
		if err := Pause(ctx, interval); err != nil {
			return err
		}
	}
	return nil
}
