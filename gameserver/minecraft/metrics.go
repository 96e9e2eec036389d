package minecraft

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
		Metrics: games.NewMetrics(r, "minecraft", "Minecraft"),
		columns: promauto.With(r).NewCounter(prometheus.CounterOpts{
			Name: "voxeld_minecraft_chunks_total", Help: "Chunks of 32 × 32 blocks that were sent to clients of Minecraft.",
		}),
	}
}
