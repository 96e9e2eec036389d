package admission

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/internal/metric"
	"github.com/voxelpopuli/voxeld/trust"
)

type metrics struct {
	refused *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer, g *Gate) *metrics {
	m := &metrics{refused: metric.NewCounterVec(prometheus.CounterOpts{
		Name: "voxeld_nodes_refused_total",
		Help: "Nodes that were not admitted, or were disconnected: none (no certificate shown), expired, revoked, issuer (not signed by one), token, invalid.",
	}, metric.Values("reason", "none", "expired", "revoked", "issuer", "token", "invalid"))}
	r.MustRegister(m.refused, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "voxeld_certificate_expiry_timestamp_seconds",
		Help: "When this node's certificate ends; it is renewed 20 days before.",
	}, func() float64 {
		g.mu.Lock()
		defer g.mu.Unlock()
		c, _, err := trust.ReadCertificate(g.mu.own)
		if err != nil {
			return 0
		}
		return float64(c.NotAfter)
	}))
	return m
}
