package measure

import (
	"context"
	"time"

	"github.com/voxelpopuli/voxeld/test/bench/crowd"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
)

// Moment is one reading of the usage in a series.
type Moment struct {
	At      float64 // seconds from the start of the series to the end of the moment
	Players int
	CPU     []float64 // of each daemon since the moment before, as a share of one core
	RSS     []int64   // of each daemon
}

// Total returns the CPU and the memory of all daemons together.
func (m Moment) Total() (cpu float64, rss int64) {
	for i := range m.CPU {
		cpu += m.CPU[i]
		rss += m.RSS[i]
	}
	return cpu, rss
}

// Recorder reads the usage at equal intervals, until it is stopped. Its series belongs to its own goroutine until then.
type Recorder struct {
	series []Moment
	end    context.CancelFunc
	done   chan struct{}
}

// Record starts a series.
func Record(ctx context.Context, targets []Target, c *crowd.Crowd, every time.Duration) *Recorder {
	ctx, end := context.WithCancel(ctx)
	r := &Recorder{end: end, done: make(chan struct{})}
	go func() { // awaited by Stop
		defer close(r.done)
		r.run(ctx, targets, c, every)
	}()
	return r
}

// Stop ends the series and returns it.
func (r *Recorder) Stop() []Moment {
	r.end()
	<-r.done
	return r.series
}

func (r *Recorder) run(ctx context.Context, targets []Target, c *crowd.Crowd, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	began := time.Now()
	last, lastAt := Usages(targets), began
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, at := Usages(targets), time.Now()
		m := Moment{At: at.Sub(began).Seconds(), Players: c.Counts().Players}
		for i := range now {
			m.CPU = append(m.CPU, (now[i].CPU-last[i].CPU).Seconds()/at.Sub(lastAt).Seconds())
			m.RSS = append(m.RSS, now[i].RSS)
		}
		r.series = append(r.series, m)
		last, lastAt = now, at
	}
}

// Usages reads the usage of all targets. It is zero for one that has ended.
func Usages(targets []Target) []process.Usage {
	all := make([]process.Usage, len(targets))
	for i, t := range targets {
		if u, err := t.Usage(); err == nil {
			all[i] = u
		}
	}
	return all
}
