package chat

import "github.com/prometheus/client_golang/prometheus"

// metrics are the sequencer's metrics; docs/metrics.md explains each.
type metrics struct {
	events *prometheus.CounterVec // by order: causal, late, none, repeated
	held   prometheus.Gauge
	missed prometheus.Counter
}

func newMetrics(r prometheus.Registerer) metrics {
	m := metrics{
		events: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "voxeld_chat_lines_total", Help: "Chat lines, hits and gifts that came " +
			"to this gateway, by the order in which they were shown: causal (after all that they follow), late (after what may follow " +
			"them), none (they have no clock: the speaker's gateway or the region is older), repeated (not shown: they were shown " +
			"before)."}, []string{"order"}),
		held: prometheus.NewGauge(prometheus.GaugeOpts{Name: "voxeld_chat_held", Help: "Chat lines, hits and gifts that wait to be " +
			"shown: for others that they follow, or for a moment so that concurrent ones are shown by wall clock."}),
		missed: prometheus.NewCounter(prometheus.CounterOpts{Name: "voxeld_chat_given_up_total", Help: "Players of whom a chat line, " +
			"a hit or a gift was missing that was waited for too long."}),
	}
	r.MustRegister(m.events, m.held, m.missed)
	return m
}
