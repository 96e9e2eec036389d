package minecraft

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
			Name: "voxeld_minecraft_clients", Help: "Clients of Minecraft that are connected; they are counted in voxeld_sessions, too.",
		}),
		columns: f.NewCounter(prometheus.CounterOpts{
			Name: "voxeld_minecraft_chunks_total", Help: "Chunks of 32 × 32 blocks that were translated for clients of Minecraft.",
		}),
		restored: f.NewCounter(prometheus.CounterOpts{
			Name: "voxeld_minecraft_edits_put_back_total", Help: "Blocks that were put back for clients of Minecraft, because an edit was refused.",
		}),
	}
}
