package backups

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics of the scheduled backups. Others are not counted: whoever makes one sees whether it was saved.
type metrics struct {
	success, duration, size prometheus.Gauge
	failures                prometheus.Counter

	sending prometheus.Gauge
	unsent  prometheus.Counter
}

func newMetrics(r prometheus.Registerer, every time.Duration) *metrics {
	m := &metrics{
		success: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "voxeld_backup_last_success_timestamp_seconds",
			Help: "When this node began its last scheduled backup that is complete, on disk, in a closed world signed, and at backup_target if that is set; 0: never.",
		}),
		duration: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "voxeld_backup_last_duration_seconds", Help: "Time that making the last good scheduled backup took.",
		}),
		size: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "voxeld_backup_last_size_bytes", Help: "Size of the last good scheduled backup.",
		}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "voxeld_backup_failures_total", Help: "Scheduled backups that failed or lack a region.",
		}),
		sending: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "voxeld_backup_target_last_duration_seconds",
			Help: "Time that the last successful copying to backup_target took, with reading it back.",
		}),
		unsent: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "voxeld_backup_target_failures_total", Help: "Attempts to copy backups to backup_target that failed.",
		}),
	}
	interval := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "voxeld_backup_interval_seconds", Help: "Interval of scheduled backups (backup_every); 0: none.",
	})
	interval.Set(every.Seconds())
	r.MustRegister(m.success, m.duration, m.size, m.failures, m.sending, m.unsent, interval)
	return m
}

// made sets the metrics by a good backup that is on disk.
func (m *metrics) made(took time.Duration, size int64) {
	m.duration.Set(took.Seconds())
	m.size.Set(float64(size))
}

func (m *metrics) succeeded(begun time.Time) { m.success.Set(float64(begun.Unix())) }

// found sets the metrics by a backup that an earlier run has made.
func (m *metrics) found(begun time.Time, size int64) {
	m.succeeded(begun)
	m.size.Set(float64(size))
}
