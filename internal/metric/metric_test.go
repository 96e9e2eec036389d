package metric

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// series returns how many series a collector has.
func series(c prometheus.Collector) int {
	all := make(chan prometheus.Metric, 100)
	c.Collect(all)
	return len(all)
}

// Each combination of values has a series before anything is counted.
func TestFromTheStart(t *testing.T) {
	moves := NewCounterVec(prometheus.CounterOpts{Name: "moves_total", Help: "Moves."},
		Values("kind", "leader", "member"), Values("result", "done", "failed"))
	seconds := NewHistogramVec(prometheus.HistogramOpts{Name: "seconds", Help: "Time."}, Values("kind", "leader", "member"))
	if n := series(moves); n != 4 {
		t.Errorf("%d series of a counter with two labels of two values", n)
	}
	if n := series(seconds); n != 2 {
		t.Errorf("%d histograms for two values", n)
	}
	moves.WithLabelValues("member", "failed").Inc()
	if n := series(moves); n != 4 {
		t.Errorf("%d series after an event that was declared", n)
	}
}
