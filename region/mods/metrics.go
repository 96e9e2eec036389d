package mods

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/internal/metric"
)

type metrics struct {
	events  *prometheus.CounterVec
	steps   prometheus.Counter
	seconds prometheus.Histogram
}

const resultAnswered, resultFailed, resultExceeded = "answered", "failed", "exceeded"

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		events: metric.NewCounterVec(prometheus.CounterOpts{
			Name: "voxeld_mod_events_total",
			Help: "Events that scripts of mods were run for on this node: answered, failed (an exception, or effects that are not valid), exceeded (steps, memory or output).",
		}, metric.Values("result", resultAnswered, resultFailed, resultExceeded)),
		steps: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "voxeld_mod_steps_total", Help: "Steps that scripts of mods have taken on this node.",
		}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "voxeld_mod_call_seconds", Help: "Duration of a call of a mod's script, for up to 16 events.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25},
		}),
	}
	r.MustRegister(m.events, m.steps, m.seconds)
	return m
}

func (m *metrics) count(err error) {
	result := resultAnswered
	switch {
	case err == nil:
	case exceeds(err):
		result = resultExceeded
	default:
		result = resultFailed
	}
	m.events.WithLabelValues(result).Inc()
}
