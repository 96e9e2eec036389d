package placement

import "github.com/prometheus/client_golang/prometheus"

// metrics are the metrics of the groups that this node leads; docs/metrics.md explains each.
type metrics struct {
	led     prometheus.Gauge
	members prometheus.Gauge
	under   prometheus.Gauge
	changes *prometheus.CounterVec // by change: add, promote, remove, transfer
}

func newMetrics(r prometheus.Registerer) *metrics {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	m := &metrics{
		led:     gauge("voxeld_regions_led", "Loaded regions led by this node, including the catalog."),
		members: gauge("voxeld_region_members", "Live voting members, summed over the loaded regions led by this node."),
		under:   gauge("voxeld_regions_under_replicated", "Loaded regions led by this node that have fewer live members than configured."),
		changes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "voxeld_region_member_changes_total",
			Help: "Membership changes and leadership transfers made by this node as leader, by kind: add, promote, remove, transfer.",
		}, []string{"change"}),
	}
	r.MustRegister(m.led, m.members, m.under, m.changes)
	return m
}
