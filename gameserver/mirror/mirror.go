package mirror

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/interest"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/terrain"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// Regions follows regions; a *region.Host.
type Regions interface {
	// Follow opens a link to the region of a chunk, wherever it is led, and founds it first if necessary.
	Follow(ctx context.Context, pos grid.ChunkPos) (region.Link, nodemsg.Region, error)
}

// Terrain generates land; a *terrain.Generator. Any goroutine.
type Terrain interface {
	ChunkIn(room *terrain.Room, pos grid.ChunkPos) *chunk.Chunk
}

// Bases returns the terrain with that hash, wherever it is stored; a *region.Host. It may take seconds.
type Bases interface {
	BaseOf(ctx context.Context, pos grid.ChunkPos, hash [32]byte) (*chunk.Chunk, error)
}

// Interest is the index of the avatars in mirrored chunks. Its methods are called with a subscription's lock held.
type Interest interface {
	Apply(n *nodemsg.ChunkDelta, in interest.Occupants, change interest.Change) *sessionmsg.TickDelta
	Present(at grid.ChunkPos, bodies []nodemsg.Body) []nodemsg.Body
	ClearChunk(at grid.ChunkPos, in interest.Occupants)
}

// Overlay has newer places of some players than regions have; a *p2p.Driver. Its methods are called with a subscription's lock
// held.
type Overlay interface {
	// Enabled reports whether there is an overlay at all. It never changes.
	Enabled() bool
	// Merge removes from a region's delta what the overlay has newer. Holds reports whether a player is in the mirrored chunk.
	Merge(n *nodemsg.ChunkDelta, holds func(player.ID) bool)
	// Clear records that a chunk is no longer in the mirror.
	Clear(pos grid.ChunkPos)
}

// Options are the dependencies of a Mirror.
type Options struct {
	Regions    Regions
	Terrain    Terrain
	Bases      Bases // of chunks that Terrain generates differently from what their edits were made on; nil: such chunks are not shown
	Interest   Interest
	Overlay    Overlay
	Height     int32                                 // of the world, in blocks
	Peer       string                                // this node's peer id
	Now        func() time.Duration                  // a monotonic clock
	Run        func(task func(context.Context)) bool // starts a goroutine; false when the gateway is shutting down
	Logger     *slog.Logger
	Registerer prometheus.Registerer

	// What a subscription reports. Chat and Ticked are called with its lock held: they must not block, nor call it.
	Chat        func(from *Subscription, events []nodemsg.ChatEvent) // chat that is to be ordered, then published by PublishChat
	Ticked      func(from *Subscription)                             // the first update of a tick was applied
	LedByOthers func(from *Subscription)                             // the region is led by another node
}

// Mirror holds the chunks that subscribers here watch, and the subscriptions to their regions.
type Mirror struct {
	Options
	metrics *metrics
	builder *builder
	order   atomic.Uint64   // of the chunk that was watched last
	subs    []*Subscription // scratch of Advance

	mu struct {
		sync.Mutex
		subs map[grid.Cell]*Subscription
	}
}

// New returns an empty mirror.
func New(o Options) *Mirror {
	m := &Mirror{Options: o, metrics: newMetrics(o.Registerer)}
	m.builder = newBuilder(&m.Options, m.metrics)
	m.mu.subs = make(map[grid.Cell]*Subscription)
	return m
}

// Build builds chunks until ctx ends. Several goroutines may run it.
func (m *Mirror) Build(ctx context.Context) { m.builder.run(ctx) }

// BuildQueued builds all chunks that are queued now. It is for callers without goroutines that run Build.
func (m *Mirror) BuildQueued() { m.builder.buildQueued() }

// subscription returns the subscription that covers the chunk, and creates it if necessary.
func (m *Mirror) subscription(pos grid.ChunkPos) *Subscription {
	cell := grid.CellAt(pos, grid.FoundingLabel)
	m.mu.Lock()
	sub := m.mu.subs[cell]
	if sub != nil {
		m.mu.Unlock()
		return sub
	}
	sub = newSubscription(m, cell)
	m.mu.subs[cell] = sub
	m.mu.Unlock()
	m.Run(sub.run)
	return sub
}

// Watch adds a subscriber to a chunk, and returns the subscription to its region.
func (m *Mirror) Watch(pos grid.ChunkPos, by Subscriber) *Subscription {
	for {
		if sub := m.subscription(pos); sub.watch(pos, by) {
			return sub
		}
	}
}

// Enter adds a subscriber's body to the world, and returns the subscription to the region that it is in.
func (m *Mirror) Enter(b nodemsg.Body, owner Subscriber) *Subscription {
	for {
		if sub := m.subscription(b.Pose.Chunk()); sub.enter(b, owner) {
			return sub
		}
	}
}

// Advance extrapolates all predicted bodies by the given number of ticks since the previous frame, and sends regions the players
// who have stopped. One goroutine calls it: the frame loop.
func (m *Mirror) Advance(ticks uint64) {
	m.subs = m.appendSubscriptions(m.subs[:0])
	for _, sub := range m.subs {
		sub.advance(ticks)
	}
	clear(m.subs)
}

// Republish makes the subscriptions send players again of whom subscribers have lost sight.
func (m *Mirror) Republish(lost []player.ID) {
	for _, sub := range m.appendSubscriptions(nil) {
		sub.republish(lost)
	}
}

func (m *Mirror) appendSubscriptions(dst []*Subscription) []*Subscription {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.AppendSeq(dst, maps.Values(m.mu.subs))
}

// At returns the subscription that covers a chunk; nil if there is none.
func (m *Mirror) At(pos grid.ChunkPos) *Subscription {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.subs[grid.CellAt(pos, grid.FoundingLabel)]
}

// PublishOverlay publishes what the overlay has sent of a chunk, if it is in the mirror.
func (m *Mirror) PublishOverlay(n nodemsg.ChunkDelta) {
	if sub := m.At(n.Chunk); sub != nil {
		sub.publishOverlay(n)
	}
}

// checkBlocks rejects deltas with blocks outside of the world: a broken or hostile leader.
func (m *Mirror) checkBlocks(n *nodemsg.ChunkDelta) error {
	blocks := n.Blocks
	if n.State != nil {
		blocks = n.State.Edits
	}
	limit := chunk.Index(m.Height) * grid.ChunkSize * grid.ChunkSize
	for _, b := range blocks {
		if b.At >= limit || !b.Block.Known() {
			return &wire.Error{Code: wire.FailBadValue, Message: "the region's leader sent invalid blocks: chunk " + n.Chunk.String()}
		}
	}
	return nil
}
