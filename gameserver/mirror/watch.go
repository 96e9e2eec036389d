package mirror

import (
	"context"
	"maps"
	"slices"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

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
	defer m.mu.Unlock()
	sub := m.mu.subs[cell]
	if sub == nil {
		sub = newSubscription(m, cell)
		m.mu.subs[cell] = sub
	}
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

// Advance extrapolates all predicted bodies by the given number of ticks since the previous frame, and sends regions
// the players who have stopped. One goroutine calls it: the frame loop.
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
