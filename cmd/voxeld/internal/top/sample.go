// Package top holds the command voxeld top, a live view of a running node in a terminal.
package top

import (
	"context"
	"math"
	"net/http"
	"time"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/test/testkit/metrics"
)

// sample is the state of a node at one time.
type sample struct {
	at      time.Time
	status  admin.Status
	regions []admin.Region
	metrics metrics.Metrics
}

// answersWithin is how long the node may take to answer the questions of a sample.
const answersWithin = 10 * time.Second

// takeSample asks the node for its state.
func takeSample(ctx context.Context, socket string) (sample, error) {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	var s sample
	if err := admin.Get(ctx, socket, "/status", &s.status); err != nil {
		return sample{}, err
	}
	if err := admin.Get(ctx, socket, "/regions", &s.regions); err != nil {
		return sample{}, err
	}
	response, err := admin.Request(ctx, socket, http.MethodGet, "/metrics")
	if err != nil {
		return sample{}, err
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	s.at = time.Now()
	s.metrics, err = metrics.Read(response.Body)
	return s, err
}

// interval is the time between two samples, with the rates between them.
type interval struct{ before, after sample }

// since returns the interval between two samples. If the node was restarted between them, its counters began at 0
// again: the interval then begins with the process.
func since(before, after sample) interval {
	const started = "voxeld_start_time_seconds"
	if at := after.metrics.Value(started); at != before.metrics.Value(started) {
		seconds, fraction := math.Modf(at)
		before = sample{at: time.Unix(int64(seconds), int64(fraction*1e9))}
	}
	return interval{before, after}
}

func (i interval) seconds() float64 { return max(i.after.at.Sub(i.before.at).Seconds(), 1e-3) }

// rate returns how much a counter grew per second.
func (i interval) rate(name string, labels ...string) float64 {
	return max(i.after.metrics.Value(name, labels...)-i.before.metrics.Value(name, labels...), 0) / i.seconds()
}

func (i interval) value(name string, labels ...string) float64 {
	return i.after.metrics.Value(name, labels...)
}

// durations returns the durations that a histogram counted in the interval.
func (i interval) durations(name string) metrics.Histogram {
	return i.after.metrics.Histogram(name).Since(i.before.metrics.Histogram(name))
}
