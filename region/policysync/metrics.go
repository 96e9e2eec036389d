package policysync

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/wire"
)

type metrics struct {
	acts    *prometheus.CounterVec
	updated prometheus.Gauge
	claims  prometheus.Gauge
	refused *prometheus.CounterVec // edits, by code
	// exceeded counts commands by what they would take of the quota of their gateway.
	exceeded *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		acts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "voxeld_policy_acts_total",
			Help: "Commands in the catalog's log that this node has read: applied, refused, forged.",
		}, []string{"result"}),
		updated: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "voxeld_policy_updated_timestamp_seconds",
			Help: "When this node's copy of roles, bans and names was last up to date.",
		}),
		claims: prometheus.NewGauge(prometheus.GaugeOpts{Name: "voxeld_claims", Help: "Claims in the world."}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "voxeld_policy_edits_refused_total",
			Help: "Edits that a gateway should have refused: not_allowed, claimed. Many mean that a gateway lies.",
		}, []string{"reason"}),
		exceeded: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "voxeld_policy_gateway_quota_exceeded_total",
			Help: "Commands that this node, as leader of the catalog, refused because their gateway has used up its names, claims or commands of the day.",
		}, []string{"kind"}),
	}
	for kind := policy.NewName; kind < policy.QuotaKinds; kind++ {
		m.exceeded.WithLabelValues(kind.String())
	}
	for _, reason := range []string{wire.RefusedNotAllowed, wire.RefusedClaimed} {
		m.refused.WithLabelValues(reason)
	}
	for _, result := range []string{"applied", "refused", "forged"} {
		m.acts.WithLabelValues(result)
	}
	r.MustRegister(m.acts, m.updated, m.claims, m.refused, m.exceeded)
	return m
}
