package chat

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/internal/metric"
)

// metrics are the sequencer's metrics; docs/data/metrics.csv explains each.
type metrics struct {
	events *prometheus.CounterVec // by order: causal, late, none, repeated, dropped
	held   prometheus.Gauge
	missed prometheus.Counter
}

func newMetrics(r prometheus.Registerer) metrics {
	m := metrics{
		events: metric.NewCounterVec(prometheus.CounterOpts{Name: "voxeld_chat_lines_total", Help: "Chat lines, hits and gifts received: causal (shown after all that they depend on), late (after something that may depend on them), none (without a clock), repeated or dropped (not shown)."}, metric.Values("order", inOrder, tooLate, unordered, repeated, dropped)),
		held:   prometheus.NewGauge(prometheus.GaugeOpts{Name: "voxeld_chat_held", Help: "Chat lines, hits and gifts held back until what they depend on has arrived."}),
		missed: prometheus.NewCounter(prometheus.CounterOpts{Name: "voxeld_chat_timeouts_total", Help: "Waits for a missing chat line, hit or gift that timed out, per player."}),
	}
	r.MustRegister(m.events, m.held, m.missed)
	return m
}
