package region

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// gateway is a gateway's end of a link.
type gateway struct {
	Link
	t testing.TB
}

func (n *node) follow(pos grid.ChunkPos) gateway {
	n.net.t.Helper()
	link, _, err := n.Follow(context.Background(), pos)
	if err != nil {
		n.net.t.Fatal(err)
	}
	n.net.t.Cleanup(func() { link.Close() })
	return gateway{link, n.net.t}
}

// following runs follow in a goroutine.
func (n *node) following(pos grid.ChunkPos) <-chan gateway {
	comes := make(chan gateway)
	go func() { comes <- n.follow(pos) }()
	return comes
}

// loop returns the loop of a region that the gateway's own node leads.
func (g gateway) loop() *actor.Land {
	link := g.Link.(routedLink)
	return link.follower.regions.Loaded(link.info.ID)
}

func (g gateway) send(msg nodemsg.ToRegion) {
	g.t.Helper()
	if err := g.Send(msg); err != nil {
		g.t.Fatal(err)
	}
}

// patience is longer than anything that a test waits for, on the bubble's clock.
const patience = time.Minute

// until receives frames until look returns true, and returns look's result.
func until[A any](g gateway, look func(nodemsg.FromRegion) (A, bool)) A {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		frame, err := g.Receive(ctx)
		if err != nil {
			g.t.Fatal("gave up waiting: ", err)
		}
		if answer, ok := look(frame); ok {
			return answer
		}
	}
}

// state watches a chunk and returns its whole state.
func (g gateway) state(pos grid.ChunkPos) nodemsg.ChunkState {
	g.t.Helper()
	g.send(nodemsg.ToRegion{Watch: []grid.ChunkPos{pos}})
	return until(g, func(f nodemsg.FromRegion) (nodemsg.ChunkState, bool) {
		for _, n := range f.Chunks {
			if n.Chunk == pos && n.State != nil {
				return *n.State, true
			}
		}
		return nodemsg.ChunkState{}, false
	})
}

// results waits for n results and returns them by sequence.
func (g gateway) results(n int) map[uint64]nodemsg.EditResult {
	g.t.Helper()
	got := make(map[uint64]nodemsg.EditResult)
	if n == 0 {
		return got
	}
	return until(g, func(f nodemsg.FromRegion) (map[uint64]nodemsg.EditResult, bool) {
		for _, r := range f.Results {
			got[r.Seq] = r
		}
		return got, len(got) >= n
	})
}

// edit sends edits and waits for all results.
func (g gateway) edit(edits ...nodemsg.Intent) map[uint64]nodemsg.EditResult {
	g.t.Helper()
	g.send(nodemsg.ToRegion{Edits: edits})
	return g.results(len(edits))
}

// closed waits for the end of the link and returns its reason.
func (g gateway) closed() string {
	g.t.Helper()
	return until(g, func(f nodemsg.FromRegion) (string, bool) { return f.Closed, f.Closed != "" })
}

// silent fails the test if a frame for which wrong returns true arrives within a short time.
func (g gateway) silent(wrong func(nodemsg.FromRegion) bool) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	for {
		frame, err := g.Receive(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			return
		}
		if err != nil {
			g.t.Fatal(err)
		}
		if wrong(frame) {
			g.t.Fatalf("unexpected frame %+v", frame)
		}
	}
}

var (
	here  = grid.ChunkPos{X: 1, Z: 1}
	alice = player.GuestID("alice")
	bob   = player.GuestID("bob")
)

// at returns a block of the chunk, so many above the bedrock.
func at(pos grid.ChunkPos, y int32) grid.Pos {
	p := pos.Origin()
	return grid.Pos{X: p.X + 3, Y: 1 + y, Z: p.Z + 4}
}

func body(id player.ID, pos grid.ChunkPos) nodemsg.Body {
	p := at(pos, 10)
	return nodemsg.Body{Player: id, Name: "x", Pose: motion.Pose{X: float64(p.X), Y: 10, Z: float64(p.Z)}}
}
