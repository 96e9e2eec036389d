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
		led:     gauge("voxeld_regions_led", "Loaded regions that this node leads, the catalog included."),
		members: gauge("voxeld_region_members", "Members with a vote that are heard of, of all loaded regions that this node leads, added up."),
		under:   gauge("voxeld_regions_under_replicated", "Loaded regions led by this node that have fewer members that are heard of than configured."),
		changes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "voxeld_region_member_changes_total",
			Help: "Changes of members and leaders that this node made as a region's leader.",
		}, []string{"change"}),
	}
	r.MustRegister(m.led, m.members, m.under, m.changes)
	return m
}
