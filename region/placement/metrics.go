package placement

import "github.com/prometheus/client_golang/prometheus"

// metrics are the metrics of the groups that this node leads; docs/metrics.md explains each.
type metrics struct {
	led     prometheus.Gauge
	lag     prometheus.Gauge
	changes *prometheus.CounterVec // by change: add, promote, remove, transfer
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		led: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "voxeld_regions_led",
			Help: "Loaded regions led by this node, including the catalog.",
		}),
		lag: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "voxeld_replica_lag_entries",
			Help: "The most log entries that a live member of a loaded region led by this node lacks.",
		}),
		changes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "voxeld_region_member_changes_total",
			Help: "Membership changes and leadership transfers made by this node as leader, by kind: add, promote, remove, transfer.",
		}, []string{"change"}),
	}
	r.MustRegister(m.led, m.lag, m.changes)
	return m
}
