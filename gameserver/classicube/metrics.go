package classicube

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/voxelpopuli/voxeld/gameserver/games"
)

type metrics struct {
	games.Metrics
	levels prometheus.Counter
}

func newMetrics(r prometheus.Registerer) *metrics {
	return &metrics{
		Metrics: games.NewMetrics(r, "classicube", "ClassiCube"),
		levels: promauto.With(r).NewCounter(prometheus.CounterOpts{
			Name: "voxeld_classicube_levels_total", Help: "Levels sent to clients of ClassiCube.",
		}),
	}
}
