package placement

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/internal/metric"
	"github.com/voxelpopuli/voxeld/region/balance"
)

// metrics are the metrics of the groups that this node leads; docs/metrics.md explains each.
type metrics struct {
	led     prometheus.Gauge
	lag     prometheus.Gauge
	changes *prometheus.CounterVec // by change: add, promote, remove, transfer
	busy    prometheus.Gauge
	// moves are those made because of load, by kind (leader, member) and result (done, failed).
	moves       *prometheus.CounterVec
	moveSeconds prometheus.Counter
}

func newMetrics(r prometheus.Registerer, capacity float64) *metrics {
	m := &metrics{
		led: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "voxeld_regions_led",
			Help: "Open regions led by this node, including the catalog.",
		}),
		lag: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "voxeld_replica_lag_entries",
			Help: "Most log entries that a live member of an open region led by this node lacks.",
		}),
		changes: metric.NewCounterVec(prometheus.CounterOpts{
			Name: "voxeld_region_member_changes_total",
			Help: "Changes of members and leaders made by this node as leader: add, promote, remove, transfer.",
		}, metric.Values("change", "add", "promote", "remove", "transfer")),
		busy: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "voxeld_node_busy_cores",
			Help: "Cores that this node uses, smoothed, as other nodes see it.",
		}),
		moves: metric.NewCounterVec(prometheus.CounterOpts{
			Name: "voxeld_balance_moves_total",
			Help: "Regions moved from this node because it was busy: leader (another member leads), member (a less busy node becomes a member).",
		}, metric.Values("kind", balance.Lead.String(), balance.Replace.String()), metric.Values("result", "done", "failed")),
		moveSeconds: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "voxeld_balance_seconds_total",
			Help: "Time that the moves of voxeld_balance_moves_total took.",
		}),
	}
	room := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "voxeld_node_capacity_cores",
		Help: "Cores that this node gives to the world (capacity).",
	})
	room.Set(capacity)
	r.MustRegister(m.led, m.lag, m.changes, m.busy, m.moves, m.moveSeconds, room)
	return m
}
