package mirror

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/interest"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/isolate"
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

// Overlay has newer places of some players than regions have; a *p2p.Driver. Its methods are called with a
// subscription's lock held.
type Overlay interface {
	// Enabled reports whether there is an overlay at all. It never changes.
	Enabled() bool
	// Merge removes from a region's delta what the overlay has newer. Holds reports whether a player is in the mirrored
	// chunk.
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
	Wall       func() time.Time                      // the time of the world, for notices
	Run        func(task func(context.Context)) bool // starts a goroutine; false when the gateway is shutting down
	Panics     *isolate.Panics                       // of links: they are closed, and opened again
	Logger     *slog.Logger
	Registerer prometheus.Registerer

	// What a subscription reports. Chat and Ticked are called with its lock held: they must not block, nor call it.
	Chat        func(from *Subscription, events []nodemsg.ChatEvent) // chat that is to be ordered, then published by PublishChat
	Ticked      func(from *Subscription)                             // the first update of a tick was applied
	LedByOthers func(grid.Cell)                                      // a region is led by another node
}

// Mirror holds the chunks that subscribers here watch, and the subscriptions to their land.
type Mirror struct {
	Options
	metrics *metrics
	builder *builder
	order   atomic.Uint64   // of the chunk that was watched last
	asked   atomic.Uint64   // number of the question that was asked last
	subs    []*Subscription // scratch of Advance

	mu struct {
		sync.Mutex
		subs map[grid.Cell]*Subscription
	}
}

// checkBlocks rejects deltas with blocks outside of the world: a broken or hostile leader. A block of a later version
// is passed on: it is solid, and clients show it as something that they do not know.
func (m *Mirror) checkBlocks(n *nodemsg.ChunkDelta) error {
	blocks := n.Blocks
	if n.State != nil {
		blocks = n.State.Edits
	}
	limit := chunk.Index(m.Height) * grid.ChunkSize * grid.ChunkSize
	for _, b := range blocks {
		if b.At >= limit {
			return &wire.Error{Code: wire.FailBadValue, Message: "the region's leader sent invalid blocks: chunk " + n.Chunk.String()}
		}
	}
	return nil
}
