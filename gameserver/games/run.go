package games

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics are those that the adapters of all games have.
type Metrics struct {
	Clients prometheus.Gauge
	PutBack prometheus.Counter // edits
}

// NewMetrics returns the metrics of a game. Their names have the name of its flag.
func NewMetrics(r prometheus.Registerer, flag, game string) Metrics {
	f := promauto.With(r)
	return Metrics{
		Clients: f.NewGauge(prometheus.GaugeOpts{
			Name: "voxeld_" + flag + "_clients", Help: "Clients of " + game + " that are connected; they are counted in voxeld_sessions, too.",
		}),
		PutBack: f.NewCounter(prometheus.CounterOpts{
			Name: "voxeld_" + flag + "_edits_put_back_total", Help: "Blocks that were put back for clients of " + game + ", because an edit was refused.",
		}),
	}
}

// TickEvery is how often clients are shown where others are, as servers of these games do. Clients interpolate.
const TickEvery = 100 * time.Millisecond

// Run counts a client and calls its tick every TickEvery, until ctx ends or the tick fails: then it cuts the connection.
func (m Metrics) Run(ctx context.Context, tick func(now time.Time) error, cut func()) {
	m.Clients.Inc()
	defer m.Clients.Dec()
	ticker := time.NewTicker(TickEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			if tick(now) != nil {
				cut()
				return
			}
		}
	}
}
