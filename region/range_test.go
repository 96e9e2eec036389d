package region

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/region/rollback"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// cellSize is the width of a founding cell in chunks.
const cellSize = 16

// square is the area of n×n founding cells from the origin.
func square(n int32) grid.Area { return grid.Area{MaxX: n * cellSize, MaxZ: n * cellSize} }

// delayed is a network in which a range query's questions take some time, or all do.
type delayed struct {
	transport.Peers
	all bool
}

// roundTrip is that time.
const roundTrip = 50 * time.Millisecond

func (d delayed) Ask(ctx context.Context, peer, protocol string, question []byte) ([]byte, error) {
	if q, err := nodemsg.DecodeQuestion(question); err == nil && (d.all || q.Range != nil) {
		<-time.After(roundTrip)
	}
	return d.Peers.Ask(ctx, peer, protocol, question)
}

// What asking several nodes at once gains, in a world of 13 nodes with 50 ms between any two: the table of
// docs/scale.md. A node that knows no route of the rectangle asks, and one that knows those to a quarter of it.
func TestRangeQueryFigures(t *testing.T) {
	for _, n := range []int32{4, 8, 16} {
		synctest.Test(t, func(t *testing.T) {
			nodes := rangeNet(t, 13, n)
			for _, known := range []int32{0, n / 2} {
				for _, sequential := range []bool{true, false} {
					asker := nodes[0].net.start("Z", newDisk()) // it has no route
					for cell := range square(known).Cells(grid.FoundingLabel) {
						info, err := nodes[0].Locate(t.Context(), grid.ChunkPos{X: cell.Area().MinX, Z: cell.Area().MinZ})
						if err != nil {
							t.Fatal(err)
						}
						asker.Directory.AddHint(info)
					}
					r := asker.query(rollback.RangeQuery{Area: square(n), Sequential: sequential})
					t.Logf("%3d cells, %3d known, sequential %-5v: %2d questions, %2d rounds, %v", n*n, known*known, sequential, r.Questions, r.Rounds, r.Took)
					if len(r.Regions) != int(n*n) || len(r.Missing) != 0 {
						t.Errorf("%d regions, missing %v", len(r.Regions), r.Missing)
					}
					if most := 8; !sequential && r.Rounds > most {
						t.Errorf("%d rounds, want at most %d", r.Rounds, most)
					}
					asker.stop()
				}
			}
		})
	}
}

// Regions are founded, and moved to other nodes at the same time, while each question takes 50 ms.
func TestFoundingWithSlowQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork(t)
		net.adjust = func(_ string, o *Options) { o.Peers = delayed{o.Peers, true} }
		var nodes []*node
		for peer := range strings.SplitSeq("ABCDEFGH", "") {
			nodes = append(nodes, net.start(peer, newDisk()))
		}
		for i := range int32(64) {
			leader := nodes[i%7]
			net.near(leader.peer)
			pos := grid.ChunkPos{X: i % 8 * cellSize, Z: i / 8 * cellSize}
			leader.follow(pos).state(pos)
		}
	})
}

// rangeNet starts nodes, and founds n×n cells that they lead in turn. Only A, which has the catalog, and the leaders
// have routes.
func rangeNet(t *testing.T, nodes int, n int32) (all []*node) {
	t.Helper()
	net := newNetwork(t)
	net.adjust = func(_ string, o *Options) {
		o.Peers = delayed{Peers: o.Peers}
		o.Ground = func(grid.ChunkPos) *chunk.Chunk {
			blocks := make([]chunk.Block, 2*chunk.SectionBlocks)
			for i := range 32 * 32 * 20 {
				blocks[i] = chunk.Stone
			}
			c, err := chunk.FromBlocks(blocks)
			if err != nil {
				t.Error(err)
			}
			return c
		}
	}
	for i := range nodes {
		all = append(all, net.start("ABCDEFGHJKLMNPQ"[i:i+1], newDisk()))
	}
	for x := range n {
		for z := range n {
			leader := all[int(7*x+3*z+x*z)%(nodes-1)] // the last one leads nothing
			net.near(leader.peer)
			g := leader.follow(grid.ChunkPos{X: x * cellSize, Z: z * cellSize})
			if g.Link.(routedLink).info.Leader != leader.peer {
				t.Fatalf("%s does not lead its cell", leader.peer)
			}
			g.Close() // the region hibernates in a while
		}
	}
	return all
}

func (n *node) query(q rollback.RangeQuery) rollback.RangeResult {
	n.net.t.Helper()
	result, err := n.Ranges.Query(n.net.t.Context(), q)
	if err != nil {
		n.net.t.Fatal(err)
	}
	return result
}

func cellsOf(r rollback.RangeResult) (cells []string) {
	for _, g := range r.Regions {
		cells = append(cells, g.Region.Cell.String())
	}
	slices.Sort(cells)
	return slices.Compact(cells)
}

// A query from a node that knows nothing finds every region once, with its players, and founds none.
func TestRangeQuery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := rangeNet(t, 5, 4)
		last := nodes[4]
		g := nodes[0].follow(here)
		if err := g.Send(nodemsg.ToRegion{Enter: []nodemsg.Body{{Player: alice, Name: "alice", Pose: motion.Pose{X: 40, Y: 30, Z: 50}}}}); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Second)
		area := square(5)
		area.MinX = -1
		result := last.query(rollback.RangeQuery{Area: area, Players: true})
		if len(result.Missing) != 0 || len(result.Regions) != 16 || len(cellsOf(result)) != 16 || len(result.Unfounded) != 6*5-16 {
			t.Fatalf("%d regions, %d cells without one, missing %v", len(result.Regions), len(result.Unfounded), result.Missing)
		}
		players := 0
		for _, g := range result.Regions {
			if g.State != nodemsg.StateOpen {
				t.Errorf("region %v has state %d", g.Region.Cell, g.State)
			}
			players += g.Players
			for _, p := range g.Inside {
				if p.Name != "alice" || p.At.X != 40 || p.At.Z != 50 {
					t.Errorf("player %+v", p)
				}
			}
		}
		if players != 1 {
			t.Errorf("%d players", players)
		}
		if result.Questions > 8 {
			t.Errorf("%d questions to 4 nodes and the catalog", result.Questions)
		}
		again := last.query(rollback.RangeQuery{Area: area})
		if len(again.Regions) != 16 || again.Questions > result.Questions {
			t.Errorf("again: %d regions, %d questions", len(again.Regions), again.Questions)
		}
		if all, err := nodes[0].regions.Catalog().Page(t.Context(), 0); err != nil || len(all) != 16 {
			t.Errorf("%d regions are founded, %v", len(all), err)
		}
		part := last.query(rollback.RangeQuery{Area: grid.Area{MinX: 17, MinZ: 17, MaxX: 18, MaxZ: 40}, Players: true})
		if len(part.Regions) != 2 || len(part.Regions[0].Inside) != 0 {
			t.Errorf("a part: %v", cellsOf(part))
		}
		if _, err := last.Ranges.Query(t.Context(), rollback.RangeQuery{Area: square(17)}); err == nil {
			t.Error("a rectangle of 289 cells is allowed")
		}
	})
}

// What a dead leader led is missing, and said to be; the rest is found.
func TestRangeQueryIsPartial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := rangeNet(t, 5, 4)
		led := 0
		for _, g := range nodes[4].query(rollback.RangeQuery{Area: square(4)}).Regions {
			if g.Region.Leader == "C" {
				led++
			}
		}
		nodes[2].net.kill(nodes[2])
		result := nodes[4].query(rollback.RangeQuery{Area: square(4)})
		if led == 0 || len(result.Missing) != led || len(result.Regions) != 16-led || len(result.Unfounded) != 0 {
			t.Errorf("%d regions, missing %v, unfounded %v", len(result.Regions), result.Missing, result.Unfounded)
		}
		nodes[0].net.kill(nodes[0]) // and the catalog
		result = nodes[4].query(rollback.RangeQuery{Area: square(5)})
		if len(result.Unfounded) != 0 || len(result.Missing) != 25-len(result.Regions) || len(result.Regions) < 4 {
			t.Errorf("without a catalog: %d regions, missing %v, unfounded %v", len(result.Regions), result.Missing, result.Unfounded)
		}
	})
}

// A query wakes no region, and finds the halves of one that was split.
func TestRangeQueryOfClosedAndSplitRegions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := rangeNet(t, 3, 2)
		if err := nodes[0].Splitter.Split(t.Context(), hereCell); err != nil {
			t.Fatal(err)
		}
		<-time.After(5 * time.Minute)
		result := nodes[2].query(rollback.RangeQuery{Area: square(2), Players: true})
		if len(result.Missing) != 0 || len(result.Regions) != 5 {
			t.Fatalf("%v, missing %v", cellsOf(result), result.Missing)
		}
		for _, g := range result.Regions {
			if g.State != nodemsg.StateClosed {
				t.Errorf("region %v has state %d", g.Region.Cell, g.State)
			}
		}
		for _, n := range nodes {
			if loaded := n.Regions(t.Context()); len(loaded) != 0 {
				t.Errorf("%s has opened %d regions", n.peer, len(loaded))
			}
		}
	})
}

// Edits change the surface, open or closed. A node that asks too much is refused.
func TestRangeQuerySurface(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := rangeNet(t, 3, 1)
		g := nodes[1].follow(here)
		tower := guest("alice", 1, grid.Pos{X: here.X*32 + 9, Y: 40, Z: here.Z * 32}, chunk.Dirt)
		g.accepts(tower)
		q := rollback.RangeQuery{Area: grid.Area{MaxX: 8, MaxZ: 8}, Surface: true}
		check := func(state nodemsg.RegionState) {
			t.Helper()
			result := nodes[2].query(q)
			if len(result.Regions) != 1 || result.Regions[0].State != state || len(result.Regions[0].Surface) != 1 {
				t.Fatalf("%+v", result)
			}
			want := nodemsg.SurfacePoint{Index: 2, Height: 40, Block: chunk.Dirt}
			if s := result.Regions[0].Surface[0]; s.Chunk != here || fmt.Sprint(s.Points) != fmt.Sprint([]nodemsg.SurfacePoint{want}) {
				t.Errorf("%+v, want %+v", s, want)
			}
		}
		check(nodemsg.StateOpen)
		g.Close()
		<-time.After(5 * time.Minute)
		check(nodemsg.StateClosed)
		var refused atomic.Bool
		var wg sync.WaitGroup
		for range 200 {
			wg.Go(func() {
				if len(nodes[2].query(q).Missing) > 0 {
					refused.Store(true)
				}
			})
		}
		if wg.Wait(); !refused.Load() {
			t.Error("200 questions at once were answered")
		}
	})
}
