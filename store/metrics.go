package store

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/internal/metric"
)

type metrics struct {
	registerer prometheus.Registerer // nil: not registered anywhere
	all        []prometheus.Collector

	commits prometheus.Counter
	writes  prometheus.Counter
	fsyncs  prometheus.Counter

	checkpoints prometheus.Counter
	failed      *prometheus.CounterVec
	seconds     prometheus.Histogram
	batch       prometheus.Histogram
}

func newMetrics(registerer prometheus.Registerer, size func() int64) (*metrics, error) {
	m := &metrics{
		commits: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "voxeld_store_commits_total",
			Help: "Durable commits.",
		}),
		writes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "voxeld_store_writes_total",
			Help: "Table writes in durable commits.",
		}),
		fsyncs: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "voxeld_store_fsyncs_total",
			Help: "fdatasync calls; commits share them.",
		}),
		checkpoints: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "voxeld_store_checkpoints_total",
			Help: "Transactions that moved the journal into the tables.",
		}),
		failed: metric.NewCounterVec(prometheus.CounterOpts{
			Name: "voxeld_store_failed_commits_total",
			Help: "Failed commits: invalid, full, damaged, closed, io.",
		}, metric.Values("reason", "invalid", "full", "damaged", "closed", "io")),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "voxeld_store_commit_seconds",
			Help:    "Time until a commit was durable, as its caller saw it.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2, 15), // 0.1 ms to 1.6 s
		}),
		batch: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "voxeld_store_batch_commits",
			Help:    "Commits per transaction.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 12), // 1 to 2,048
		}),
	}
	bytes := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "voxeld_store_size_bytes",
		Help: "Size of the store's file; it never shrinks, freed space is reused.",
	}, func() float64 { return float64(size()) })

	if registerer == nil {
		return m, nil
	}
	m.registerer = registerer
	for _, c := range []prometheus.Collector{m.commits, m.writes, m.fsyncs, m.checkpoints, m.failed, m.seconds, m.batch, bytes} {
		if err := registerer.Register(c); err != nil {
			return m, err
		}
		m.all = append(m.all, c)
	}
	return m, nil
}

func (m *metrics) unregister() {
	for _, c := range m.all {
		m.registerer.Unregister(c)
	}
}

// fail counts a failed commit.
func (m *metrics) fail(err error) {
	reason := "io"
	switch {
	case errors.Is(err, ErrFull):
		reason = "full"
	case errors.Is(err, kv.ErrDamaged):
		reason = "damaged"
	case errors.Is(err, ErrClosed):
		reason = "closed"
	}
	m.failed.WithLabelValues(reason).Inc()
}
