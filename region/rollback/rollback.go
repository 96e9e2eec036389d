// Package rollback undoes changes of blocks, drops old history, and answers who changed what (docs/adr/0050). It finds
// the regions in a box by asking from leader to leader what is in a rectangle (Ranges).
//
// Rollbacks are ordered in the world's policy. The leader of each region in the box carries them out for its region,
// one after the other: it proposes entries, from which each member computes by the history of the region what is to be
// changed. If it dies, the next leader goes on: what is done follows from the history.
//
// Any goroutine may use a Keeper and a Ranges.
package rollback

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Retention bounds the history of each region.
type Retention struct {
	Time  time.Duration
	Bytes int
}

// Options are what a Keeper needs. All fields are required, except those whose comment says otherwise.
type Options struct {
	integrity.Node
	// Lands lists the loaded regions.
	Lands  func() []*actor.Land
	Ranges *Ranges
	// Founded lists the regions of the world, as the catalog has them.
	Founded func(ctx context.Context) ([]nodemsg.Region, error)
	// Ordered returns the rollbacks of the world, by number. It does not block.
	Ordered func() []policy.Rollback
	// Base returns the terrain with the hash for a chunk of which this node generates other terrain.
	Base func(ctx context.Context, pos grid.ChunkPos, hash [32]byte) (*chunk.Chunk, error)
	// Ground generates a chunk. If nil, what was natural is not restored by this node.
	Ground func(grid.ChunkPos) *chunk.Chunk
	// Now returns the time; Settled reports whether what is too old by it may be deleted.
	Now        func() time.Time
	Settled    func() bool
	Registerer prometheus.Registerer
}

const (
	// askRate and askBurst are how many questions one node may ask another in a second, and at once.
	askRate, askBurst = 40, 200
	// reading bounds how many regions' histories are decoded at the same time.
	reading = 2
)

// Keeper keeps the history of the regions on this node.
type Keeper struct {
	Options
	metrics *metrics
	askers  *transport.PeerLimits
	reading *semaphore.Weighted
	keep    atomic.Pointer[Retention]
}

// New returns a Keeper that keeps a month and 8 MiB of history in each region.
func New(o Options) *Keeper {
	k := &Keeper{
		Options: o, metrics: newMetrics(o.Registerer), askers: transport.NewPeerLimits(askRate, askBurst), reading: semaphore.NewWeighted(reading),
	}
	k.SetRetention(Retention{Time: 30 * 24 * time.Hour, Bytes: 8 << 20})
	return k
}

// SetRetention changes how much history is kept.
func (k *Keeper) SetRetention(r Retention) { k.keep.Store(&r) }

type metrics struct {
	blocks  prometheus.Counter
	running prometheus.Gauge
	trims   prometheus.Counter
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		blocks: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "voxeld_rollback_blocks_total", Help: "Blocks rolled back in regions that this node leads.",
		}),
		running: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "voxeld_rollback_regions", Help: "Regions in which this node carries out a rollback.",
		}),
		trims: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "voxeld_history_trims_total", Help: "Times that old history of a region was dropped (history_keep, history_size).",
		}),
	}
	r.MustRegister(m.blocks, m.running, m.trims)
	return m
}
