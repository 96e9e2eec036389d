package certs

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func registerMetrics(r prometheus.Registerer, s Source) {
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "voxeld_tls_certificate_expiry_timestamp_seconds",
		Help: "Unix time at which the first certificate of the HTTPS server expires; 0 while none could be obtained, absent without TLS.",
	}, func() float64 {
		if expiry := s.expiry(); !expiry.IsZero() {
			return float64(expiry.UnixNano()) / float64(time.Second)
		}
		return 0
	}))
}
