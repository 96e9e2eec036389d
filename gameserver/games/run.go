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
			Name: "voxeld_" + flag + "_clients", Help: "Connected clients of " + game + "; also in voxeld_sessions.",
		}),
		PutBack: f.NewCounter(prometheus.CounterOpts{
			Name: "voxeld_" + flag + "_edits_put_back_total", Help: "Blocks put back for clients of " + game + ", because an edit was refused.",
		}),
	}
}

// TickEvery is how often clients are shown where others are, as servers of these games do. Clients interpolate.
const TickEvery = 100 * time.Millisecond

const (
	// earlyTick is when a flush may be a tick, after the last one: the frames that are flushed come about every TickEvery.
	earlyTick = TickEvery * 3 / 4
	// lateTick is when there is a tick without a flush.
	lateTick = TickEvery * 5 / 4
)

// Ticks are the times of a client's ticks. The writer's flushes are ticks, so that nothing has to be woken for them. The client's lock guards
// them.
type Ticks struct {
	late *time.Timer
	last time.Time
}

// NewTicks returns the ticks of a new client.
func NewTicks() Ticks { return Ticks{late: time.NewTimer(lateTick)} }

// Due reports whether a flush is a tick.
func (t *Ticks) Due(now time.Time) bool { return now.Sub(t.last) >= earlyTick }

// Begin begins a tick.
func (t *Ticks) Begin(now time.Time) {
	t.last = now
	t.late.Reset(lateTick)
}

// Run counts a client, and calls its tick when none has begun for a while, until ctx ends or the tick fails: then it cuts the connection.
func (m Metrics) Run(ctx context.Context, t *Ticks, tick func(now time.Time) error, cut func()) {
	m.Clients.Inc()
	defer m.Clients.Dec()
	defer t.late.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-t.late.C:
			if tick(now) != nil {
				cut()
				return
			}
		}
	}
}
