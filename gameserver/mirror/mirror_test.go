package mirror

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/gameserver/interest"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/terrain"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

var ground = sync.OnceValue(func() *terrain.Generator {
	g, err := terrain.New(terrain.Params{Seed: 7, Sections: 1, Version: terrain.Version})
	if err != nil {
		panic(err)
	}
	return g
})

// noOverlay is an Overlay that is not enabled.
type noOverlay struct{}

func (noOverlay) Enabled() bool                                      { return false }
func (noOverlay) Merge(*nodemsg.ChunkDelta, func(id player.ID) bool) {}
func (noOverlay) Clear(grid.ChunkPos)                                {}

// newTestMirror returns a mirror whose subscriptions follow no region and whose chunks nobody builds.
func newTestMirror() *Mirror {
	return New(Options{
		Terrain: ground(), Interest: interest.New(interest.Options{Budget: 1000}), Overlay: noOverlay{}, Height: grid.ChunkSize, Peer: "peer",
		Now: func() time.Duration { return 0 }, Wall: time.Now, Run: func(func(context.Context)) bool { return true },
		Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
		Chat: func(*Subscription, []nodemsg.ChatEvent) {}, Ticked: func(*Subscription) {}, LedByOthers: func(grid.Cell) {},
	})
}

// onlyFeed returns the feed of an undivided subscription.
func onlyFeed(sub *Subscription) *feed {
	sub.mu.Lock()
	defer sub.unlock()
	area := sub.cell.Area()
	return sub.feed(grid.ChunkPos{X: area.MinX, Z: area.MinZ})
}
