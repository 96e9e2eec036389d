package classicube

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	clients  prometheus.Gauge
	levels   prometheus.Counter
	restored prometheus.Counter
}

func newMetrics(r prometheus.Registerer) *metrics {
	f := promauto.With(r)
	return &metrics{
		clients: f.NewGauge(prometheus.GaugeOpts{
			Name: "voxeld_classicube_clients", Help: "Clients of ClassiCube that are connected; they are counted in voxeld_sessions, too.",
		}),
		levels: f.NewCounter(prometheus.CounterOpts{
			Name: "voxeld_classicube_levels_total", Help: "Levels that were sent to clients of ClassiCube: one to each that joins, and others as they walk.",
		}),
		restored: f.NewCounter(prometheus.CounterOpts{
			Name: "voxeld_classicube_edits_put_back_total", Help: "Blocks that were put back for clients of ClassiCube, because an edit was refused.",
		}),
	}
}
