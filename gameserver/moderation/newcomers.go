package moderation

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/internal/metric"
	"github.com/voxelpopuli/voxeld/player"
)

// This file counts what new players build and remove, for an alarm on vandals.

// peakTime is how long the removals of a player are summed up.
const peakTime = 30 * time.Second

// newcomers counts the edits of new players. Edits are limited, so that in peakTime few players are counted.
type newcomers struct {
	placed, removed prometheus.Counter

	mu struct {
		sync.Mutex
		since      time.Time         // of the counts
		removals   map[player.ID]int // of each player, since then
		most, last int               // the highest of them, and that of the peakTime before
	}
}

func newNewcomers(r prometheus.Registerer, now func() time.Time) *newcomers {
	edits := metric.NewCounterVec(prometheus.CounterOpts{
		Name: "voxeld_newcomer_edits_total",
		Help: "Blocks that new players (guests, or without a role and with a name younger than a day) asked to place or remove here.",
	}, metric.Values("kind", "placed", "removed"))
	n := &newcomers{placed: edits.WithLabelValues("placed"), removed: edits.WithLabelValues("removed")}
	n.mu.removals = make(map[player.ID]int)
	r.MustRegister(edits, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "voxeld_newcomer_removals_peak",
		Help: "Most blocks that one new player asked to remove here within 30 seconds, these or those before.",
	}, func() float64 { return n.peak(now()) }))
	return n
}

// begin begins new counts if peakTime has passed. The caller holds the lock.
func (n *newcomers) begin(now time.Time) {
	passed := now.Sub(n.mu.since)
	if passed >= 0 && passed < peakTime {
		return
	}
	n.mu.last = n.mu.most
	if passed < 0 || passed >= 2*peakTime {
		n.mu.last = 0
	}
	n.mu.since, n.mu.most = now, 0
	clear(n.mu.removals)
}

func (n *newcomers) peak(now time.Time) float64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.begin(now)
	return float64(max(n.mu.most, n.mu.last))
}

// note counts an edit of a new player.
func (n *newcomers) note(id player.ID, removed bool, now time.Time) {
	if !removed {
		n.placed.Inc()
		return
	}
	n.removed.Inc()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.begin(now)
	n.mu.removals[id]++
	n.mu.most = max(n.mu.most, n.mu.removals[id])
}
