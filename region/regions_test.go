package region

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/background"
)

// While a region is being opened, whoever wants it waits for that: also if it takes longer than a caller has patience,
// and longer than the attempt may take, as a hung disk makes it.
func TestOneOpeningAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		tasks, ended := background.NewTasks(), make(chan struct{})
		r := newRegions("A", nil, nil, tasks, newMetrics(prometheus.NewRegistry()))
		openings := 0
		failed := errors.New("cannot be read")
		go func() { // awaited below
			defer close(ended)
			tasks.Run(ctx, func(ctx context.Context) {
				for {
					select {
					case <-ctx.Done():
						return
					case o := <-r.openings:
						openings++
						time.AfterFunc(2*background.AttemptTime, func() { o.answer <- openResult{err: failed} })
					}
				}
			})
		}()
		impatient, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if _, err := r.Open(impatient, 7, grid.Cell{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the first caller gets %v", err)
		}
		<-time.After(background.AttemptTime + time.Second)
		if _, err := r.Open(ctx, 7, grid.Cell{}); !errors.Is(err, failed) || openings != 1 {
			t.Errorf("a later one gets %v, after %d openings", err, openings)
		}
		stop()
		<-ended
	})
}
