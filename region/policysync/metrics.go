package policysync

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/internal/metric"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/wire"
)

type metrics struct {
	acts    *prometheus.CounterVec
	updated prometheus.Gauge
	claims  prometheus.Gauge
	used    prometheus.Gauge
	refused *prometheus.CounterVec // edits, by code
	// exceeded counts commands by what they would take of the quota of their gateway.
	exceeded *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer) *metrics {
	kinds := metric.Label{Name: "kind"}
	for kind := policy.NewName; kind < policy.QuotaKinds; kind++ {
		kinds.Values = append(kinds.Values, kind.String())
	}
	m := &metrics{
		acts: metric.NewCounterVec(prometheus.CounterOpts{
			Name: "voxeld_policy_acts_total",
			Help: "Commands in the catalog's log that this node has read: applied, refused, forged.",
		}, metric.Values("result", "applied", "refused", "forged")),
		updated: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "voxeld_policy_updated_timestamp_seconds",
			Help: "When this node's copy of roles, bans and names was last up to date.",
		}),
		claims: prometheus.NewGauge(prometheus.GaugeOpts{Name: "voxeld_claims", Help: "Claims in the world."}),
		used: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "voxeld_policy_log_used_ratio",
			Help: "Share of what the catalog's log takes from players: of their commands, names, claims or rollbacks, whichever is largest. At 1 it takes no more of them.",
		}),
		refused: metric.NewCounterVec(prometheus.CounterOpts{
			Name: "voxeld_policy_edits_refused_total",
			Help: "Edits that a gateway should have refused: not_allowed, claimed. Many mean that a gateway lies.",
		}, metric.Values("reason", wire.RefusedNotAllowed, wire.RefusedClaimed)),
		exceeded: metric.NewCounterVec(prometheus.CounterOpts{
			Name: "voxeld_policy_gateway_quota_exceeded_total",
			Help: "Commands that this node, as leader of the catalog, refused because their gateway has used up its names, claims or commands of the day.",
		}, kinds),
	}
	r.MustRegister(m.acts, m.updated, m.claims, m.used, m.refused, m.exceeded)
	return m
}
