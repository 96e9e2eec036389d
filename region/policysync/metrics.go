package policysync

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	acts    *prometheus.CounterVec
	updated prometheus.Gauge
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		acts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "voxeld_policy_acts_total",
			Help: "Commands in the catalog's log that this node has read since it started: applied, refused (without effect when its turn came) or forged.",
		}, []string{"result"}),
		updated: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "voxeld_policy_updated_timestamp_seconds",
			Help: "When the node's copy of the roles, bans and names was last up to date, in seconds since 1970.",
		}),
	}
	for _, result := range []string{"applied", "refused", "forged"} {
		m.acts.WithLabelValues(result)
	}
	r.MustRegister(m.acts, m.updated)
	return m
}
