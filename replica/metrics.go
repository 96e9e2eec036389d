package replica

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	proposals, refused prometheus.Counter
	rejected           prometheus.Counter
	commits            prometheus.Counter
	entries, delivered prometheus.Counter
	batchEntries       prometheus.Histogram
	commitSeconds      prometheus.Histogram
	lag                prometheus.Gauge
	stalled            prometheus.GaugeFunc
}

// newMetrics registers the metrics. Stalled returns why nothing is written, or nil.
func newMetrics(registerer prometheus.Registerer, stalled func() error) (*metrics, error) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "voxeld", Subsystem: "replica", Name: name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "voxeld", Subsystem: "replica", Name: name, Help: help})
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "voxeld", Subsystem: "replica", Name: name, Help: help, Buckets: buckets,
		})
	}
	m := &metrics{
		proposals:     counter("proposals_total", "Entries proposed."),
		refused:       counter("proposals_refused_total", "Proposals refused: not the leader, overloaded, too large, or storage failed."),
		rejected:      counter("messages_rejected_total", "Raft messages and snapshots rejected: malformed, for an unknown group, or not from a member."),
		commits:       counter("commits_total", "Storage transactions."),
		entries:       counter("entries_stored_total", "Durable log entries."),
		delivered:     counter("entries_delivered_total", "Committed entries delivered."),
		batchEntries:  histogram("batch_entries", "Log entries per storage transaction.", prometheus.ExponentialBuckets(1, 2, 14)),
		commitSeconds: histogram("commit_seconds", "Duration of a storage transaction.", prometheus.ExponentialBuckets(0.00025, 2, 15)),
		lag:           gauge("apply_lag_entries", "Entries delivered but not yet applied."),
		stalled: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: "voxeld", Subsystem: "replica", Name: "stalled",
			Help: "1 while storage refuses writes, or a write has been waiting for more than a second.",
		}, func() float64 {
			if stalled() != nil {
				return 1
			}
			return 0
		}),
	}
	if registerer == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{
		m.proposals, m.refused, m.rejected, m.commits, m.entries,
		m.delivered, m.batchEntries, m.commitSeconds, m.lag, m.stalled,
	} {
		if err := registerer.Register(c); err != nil {
			return nil, fmt.Errorf("register metric: %w", err)
		}
	}
	return m, nil
}
