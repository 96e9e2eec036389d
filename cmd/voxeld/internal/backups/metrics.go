package backups

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics of the scheduled backups. Others are not counted: whoever makes one sees whether it was saved.
type metrics struct {
	success, duration, size prometheus.Gauge
	failures                prometheus.Counter
}

func newMetrics(r prometheus.Registerer, every time.Duration) *metrics {
	m := &metrics{
		success: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "voxeld_backup_last_success_timestamp_seconds",
			Help: "When this node began its last scheduled backup that is complete, on disk and, in a closed world, signed; 0: never.",
		}),
		duration: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "voxeld_backup_last_duration_seconds", Help: "Time that the last scheduled backup took that was successful.",
		}),
		size: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "voxeld_backup_last_size_bytes", Help: "Size of the last scheduled backup that was successful.",
		}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "voxeld_backup_failures_total", Help: "Scheduled backups that failed or lack a region.",
		}),
	}
	interval := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "voxeld_backup_interval_seconds", Help: "Interval of scheduled backups (backup_every); 0: none.",
	})
	interval.Set(every.Seconds())
	r.MustRegister(m.success, m.duration, m.size, m.failures, interval)
	return m
}

func (m *metrics) succeeded(begun time.Time, size int64) {
	m.success.Set(float64(begun.Unix()))
	m.duration.Set(time.Since(begun).Seconds())
	m.size.Set(float64(size))
}

// found sets the metrics by a backup that an earlier run has made.
func (m *metrics) found(begun time.Time, size int64) {
	m.success.Set(float64(begun.Unix()))
	m.size.Set(float64(size))
}
