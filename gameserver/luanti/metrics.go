package luanti

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	clients  prometheus.Gauge
	columns  prometheus.Counter
	restored prometheus.Counter
}

func newMetrics(r prometheus.Registerer) *metrics {
	f := promauto.With(r)
	return &metrics{
		clients: f.NewGauge(prometheus.GaugeOpts{
			Name: "voxeld_luanti_clients", Help: "Clients of Luanti that are connected; they are counted in voxeld_sessions, too.",
		}),
		columns: f.NewCounter(prometheus.CounterOpts{
			Name: "voxeld_luanti_chunks_total", Help: "Chunks that were sent to clients of Luanti.",
		}),
		restored: f.NewCounter(prometheus.CounterOpts{
			Name: "voxeld_luanti_edits_put_back_total", Help: "Blocks that were put back for clients of Luanti, because an edit was refused.",
		}),
	}
}
