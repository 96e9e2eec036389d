package split

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/internal/metric"
)

// Metrics are the metrics of splits and merges; docs/data/metrics.csv explains each.
type Metrics struct {
	splits       *prometheus.CounterVec // by trigger and result
	merges       *prometheus.CounterVec // by trigger and result
	splitSeconds prometheus.Histogram
	mergeSeconds prometheus.Histogram
}

// NewMetrics returns metrics that are registered.
func NewMetrics(r prometheus.Registerer) *Metrics {
	counter := func(name, help string, triggers ...string) *prometheus.CounterVec {
		return metric.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help},
			metric.Values("trigger", triggers...), metric.Values("result", "done", "failed"))
	}
	buckets := []float64{.01, .025, .05, .075, .1, .15, .25, .5, 1, 2.5, 5, 10}
	m := &Metrics{
		splits: counter("voxeld_region_splits_total",
			"Splits that this node wanted, by trigger (tick, players, edits, stored, manual).",
			"tick", "players", "edits", "stored", "manual"),
		merges: counter("voxeld_region_merges_total",
			"Merges that this node wanted, by trigger (quiet, manual).",
			"quiet", "manual"),
		splitSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "voxeld_region_split_seconds", Buckets: buckets,
			Help: "Time that edits waited while this node split a region.",
		}),
		mergeSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "voxeld_region_merge_seconds", Buckets: buckets,
			Help: "Time that edits waited while this node merged regions.",
		}),
	}
	r.MustRegister(m.splits, m.merges, m.splitSeconds, m.mergeSeconds)
	return m
}

// CountSplit counts a split that this node wanted.
func (m *Metrics) CountSplit(trigger string, err error) {
	m.splits.WithLabelValues(trigger, result(err)).Inc()
}

func result(err error) string {
	if err != nil {
		return "failed"
	}
	return "done"
}

func since(h prometheus.Histogram, start time.Time) { h.Observe(time.Since(start).Seconds()) }
