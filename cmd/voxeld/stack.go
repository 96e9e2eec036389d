package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// stopLimit is how long all parts together may take to stop.
const stopLimit = 30 * time.Second

// stack runs the parts of a node. Each part may use those started before it. All are stopped in reverse order under
// one deadline. If one fails, wait returns.
type stack struct {
	parts  []part
	failed chan error // the first failure
}

type part struct {
	name   string
	cancel context.CancelFunc
	done   chan struct{} // closed when the part has ended
	err    *error
}

func newStack() *stack { return &stack{failed: make(chan error, 1)} }

// start runs a part until stop is called. A part that ends earlier has failed.
func (s *stack) start(name string, run func(ctx context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	p := part{name: name, cancel: cancel, done: make(chan struct{}), err: new(error)}
	s.parts = append(s.parts, p)
	go func() {
		defer close(p.done)
		err := run(ctx)
		if ctx.Err() == nil {
			if err == nil {
				err = errors.New("ended unexpectedly")
			}
			select {
			case s.failed <- fmt.Errorf("%s: %w", name, err):
			default:
			}
		}
		*p.err = err
	}()
}

// onStop adds a part that only needs to be closed.
func (s *stack) onStop(name string, closePart func() error) {
	s.start(name, func(ctx context.Context) error {
		<-ctx.Done()
		return closePart()
	})
}

// wait returns when ctx ends (nil) or a part fails.
func (s *stack) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.failed:
		return err
	}
}

// stop ends all parts, the last one started first.
func (s *stack) stop() error {
	deadline := time.NewTimer(stopLimit)
	defer deadline.Stop()
	var errs []error
	for i := len(s.parts) - 1; i >= 0; i-- {
		p := s.parts[i]
		p.cancel()
		select {
		case <-p.done:
			if *p.err != nil && !errors.Is(*p.err, context.Canceled) {
				errs = append(errs, fmt.Errorf("stop %s: %w", p.name, *p.err))
			}
		case <-deadline.C:
			return errors.Join(append(errs, fmt.Errorf("stop %s: took longer than %v", p.name, stopLimit))...)
		}
	}
	return errors.Join(errs...)
}
