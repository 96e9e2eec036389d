package certs

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// registerMetrics exports when the first certificate expires.
func registerMetrics(r prometheus.Registerer, expires func() time.Time) {
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "voxeld_tls_certificate_expiry_timestamp_seconds",
		Help: "When the first HTTPS certificate ends; 0 while there is none, absent without TLS.",
	}, func() float64 {
		if at := expires(); !at.IsZero() {
			return float64(at.UnixNano()) / float64(time.Second)
		}
		return 0
	}))
}
