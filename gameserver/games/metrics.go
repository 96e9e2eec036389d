package games

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics are those of a game.
type Metrics struct {
	clients prometheus.Gauge
	putBack prometheus.Counter // edits
	Land    prometheus.Counter // parts that were sent
}

// NewMetrics returns the metrics of a game; land are those of the parts of land that it is sent. The other names begin
// with voxeld_ and the flag.
func NewMetrics(r prometheus.Registerer, flag, game string, land prometheus.CounterOpts) Metrics {
	f, prefix := promauto.With(r), "voxeld_"+flag
	return Metrics{
		clients: f.NewGauge(prometheus.GaugeOpts{
			Name: prefix + "_clients", Help: "Connected clients of " + game + "; also in voxeld_sessions.",
		}),
		putBack: f.NewCounter(prometheus.CounterOpts{
			Name: prefix + "_edits_put_back_total", Help: "Blocks put back for clients of " + game + ", because an edit was refused.",
		}),
		Land: f.NewCounter(land),
	}
}

// Clients is that of Protocol.
func (m Metrics) Clients() prometheus.Gauge { return m.clients }

// CountRefused counts a change that is put back because it was refused, by the code of its Ack. It says why, unless the
// player can see it or has not asked for the change.
func (m Metrics) CountRefused(c Change, code string, say func(why string)) {
	if code == "" {
		return
	}
	m.putBack.Inc()
	if why := refusals[code]; why != "" && !c.Corner {
		say(why)
	}
}
