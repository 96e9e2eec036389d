package region

import "github.com/prometheus/client_golang/prometheus"

// metrics are the metrics of open regions; docs/metrics.md explains each.
type metrics struct {
	loaded     prometheus.Gauge
	hibernated prometheus.Counter
	woken      prometheus.Counter
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		loaded: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "voxeld_regions_loaded",
			Help: "Regions whose tick loop runs on this node.",
		}),
		hibernated: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "voxeld_regions_hibernated_total",
			Help: "Hibernations: replicated regions closed on this node because nobody watched them.",
		}),
		woken: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "voxeld_regions_woken_total",
			Help: "Regions opened on this node because of a message from another member.",
		}),
	}
	r.MustRegister(m.loaded, m.hibernated, m.woken)
	return m
}
