// Package accept accepts game connections.
package accept

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/voxelpopuli/voxeld/internal/isolate"
)

// firstPause is the pause after a connection could not be accepted; each further one is twice as long, up to a second.
const firstPause = 5 * time.Millisecond

// Serve accepts connections, and serves each in a goroutine, until ctx ends or the listener fails. It returns when all
// of them have ended; their context ends first. A panic ends only its own connection.
func Serve(ctx context.Context, l net.Listener, log *slog.Logger, panics *isolate.Panics, serve func(context.Context, net.Conn)) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, end := context.WithCancel(ctx)
	defer end()                                          // even when only the listener has failed
	stop := context.AfterFunc(ctx, func() { l.Close() }) //nolint:errcheck // Accept reports it
	defer stop()
	for pause := firstPause; ; {
		c, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				c.Close() //nolint:errcheck // came too late
			}
			return nil
		case outOfFiles(err):
			log.Warn("game connections not accepted", "error", err, "retry_in", pause)
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
			pause = min(2*pause, time.Second)
			continue
		case err != nil:
			return fmt.Errorf("accept game connections: %w", err)
		}
		pause = firstPause
		wg.Go(func() {
			defer panics.Recover("connection", func() { c.Close() }, "remote", c.RemoteAddr().String()) //nolint:errcheck // it is of no use
			serve(ctx, c)
		})
	}
}

// outOfFiles reports whether an error of Accept is temporary.
func outOfFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) ||
		errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ENOMEM) || errors.Is(err, syscall.ECONNABORTED)
}
