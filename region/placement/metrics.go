package placement

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/internal/metric"
)

// metrics are the metrics of the groups that this node leads; docs/data/metrics.csv explains each.
type metrics struct {
	led     prometheus.Gauge
	lag     prometheus.Gauge
	changes *prometheus.CounterVec // by change: add, promote, remove, transfer
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		led: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "voxeld_regions_led",
			Help: "Open regions led by this node, including the catalog.",
		}),
		lag: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "voxeld_replica_lag_entries",
			Help: "Most log entries that a live member of an open region led by this node lacks.",
		}),
		changes: metric.NewCounterVec(prometheus.CounterOpts{
			Name: "voxeld_region_member_changes_total",
			Help: "Changes of members and leaders made by this node as leader: add, promote, remove, transfer.",
		}, metric.Values("change", "add", "promote", "remove", "transfer")),
	}
	r.MustRegister(m.led, m.lag, m.changes)
	return m
}
