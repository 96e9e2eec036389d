package luanti

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/voxelpopuli/voxeld/gameserver/games"
)

type metrics struct {
	games.Metrics
	columns prometheus.Counter
}

func newMetrics(r prometheus.Registerer) *metrics {
	return &metrics{
		Metrics: games.NewMetrics(r, "luanti", "Luanti"),
		columns: promauto.With(r).NewCounter(prometheus.CounterOpts{
			Name: "voxeld_luanti_chunks_total", Help: "Chunks sent to clients of Luanti.",
		}),
	}
}
