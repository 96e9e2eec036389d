package mirror

import "github.com/prometheus/client_golang/prometheus"

// metrics are the mirror's metrics; docs/metrics.md explains each.
type metrics struct {
	chunks                   prometheus.Gauge
	generated, mismatches    prometheus.Counter
	movesSent, movesWithheld prometheus.Counter
}

func newMetrics(r prometheus.Registerer) *metrics {
	moves := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "voxeld_moves_total", Help: "Moves of players here, by outcome: told to their region, or withheld because it knew (ADR 19).",
	}, []string{"outcome"})
	m := &metrics{
		chunks: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "voxeld_chunks_loaded", Help: "Chunks that somebody on this gateway has in view.",
		}),
		generated: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "voxeld_chunks_generated_total", Help: "Chunks whose terrain this gateway generated.",
		}),
		mismatches: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "voxeld_terrain_mismatches_total", Help: "Chunks whose generated terrain differed from the pinned one.",
		}),
		movesSent: moves.WithLabelValues("told"), movesWithheld: moves.WithLabelValues("withheld"),
	}
	r.MustRegister(m.chunks, m.generated, m.mismatches, moves)
	return m
}
