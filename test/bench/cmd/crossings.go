package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/test/bench/crowd"
	"github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/figure"
)

// crossings measures players who cross borders of regions.
type crossings struct {
	*bench
	nodes, side int
	placements  []string
}

func newCrossings(b *bench) *cobra.Command {
	l := &crossings{bench: b}
	c := b.command("crossings", "Lookups of players who cross borders on 30 nodes, and common leaders of neighbouring regions, by placement",
		"A third of the players, one on a node, found a square of cells, whose borders those on the other nodes then cross. The\n"+
			"daemons' metrics say where they found the regions; their admin sockets, where these are led.",
		l.run)
	c.Flags().IntVar(&l.nodes, "nodes", 30, "daemons")
	c.Flags().IntVar(&l.side, "side", 5, "founded cells along the square's side")
	c.Flags().StringSliceVar(&l.placements, "placement", []string{"walkad", "hash"}, "placements to compare")
	return c
}

func (b *crossings) run(ctx context.Context) error {
	table := figure.Table{Head: append([]string{""}, b.placements...)}
	for _, placement := range b.placements {
		logf("placement %s: starting %d daemons", placement, b.nodes)
		daemons, err := b.daemonsOf(ctx, b.nodes, daemon.Options{Init: []string{"--placement", placement}})
		if err != nil {
			return err
		}
		rows, err := b.measure(ctx, daemons)
		daemon.KillAll(daemons)
		if err != nil {
			return err
		}
		for i, row := range rows {
			if len(table.Rows) == i {
				table.Rows = append(table.Rows, []string{row[0]})
			}
			table.Rows[i] = append(table.Rows[i], row[1])
		}
	}
	return b.publishIn("scale.md", "crossings", table.Markdown())
}

const (
	walkersView = 2                         // chunks
	cellSide    = grid.DomainSize / 4       // chunks along a founded cell
	cellBlocks  = cellSide * grid.ChunkSize // the same in blocks
)

// measure measures one world, which must be new, and returns rows of a name and a value.
func (b *crossings) measure(ctx context.Context, daemons []*daemon.Daemon) ([][2]string, error) {
	_, length := b.times(seconds{0, 180})
	led := &leaders{regions: make(map[grid.Cell]daemon.Region)}
	stop := led.watch(ctx, daemons)
	defer stop()
	pioneers := max(1, min(2*b.side, len(daemons)/3))
	half := float64(b.side) / 2 * cellBlocks
	logf("%d players found %d × %d cells", pioneers, b.side, b.side)
	// half a row after the other, outwards
	crossedNew, before, err := b.walk(ctx, daemons, 0, pioneers, func(ctx context.Context, i int, w *walker) error {
		for ; i < 2*b.side; i += pioneers {
			z := -half + (float64(i/2)+.5)*cellBlocks
			end := half - 8
			if i%2 == 0 {
				end = -end
			}
			for _, x := range []float64{0, end} {
				if err := w.flyTo(ctx, x, z); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	logf("%d players on other nodes cross them for %v", len(daemons)-pioneers, length)
	end := time.Now().Add(length)
	crossed, sources, err := b.walk(ctx, daemons, pioneers, len(daemons), func(ctx context.Context, i int, w *walker) error {
		rng := rand.New(rand.NewPCG(1, uint64(i)))
		for time.Now().Before(end) {
			if err := w.flyTo(ctx, (2*rng.Float64()-1)*(half-8), (2*rng.Float64()-1)*(half-8)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	stop()
	share := func(n, of float64) string { return fmt.Sprintf("%.1f %%", percent(n/of)) }
	r := led.result()
	return [][2]string{
		{"borders crossed into land where nobody was; cells founded", fmt.Sprintf("%d; %.0f", crossedNew, before["founded"])},
		{"borders crossed on founded land", fmt.Sprint(crossed)},
		{"… with a DHT lookup", share(sources[inRecords], float64(crossed))},
		{"regions that the catalog was asked for", fmt.Sprintf("%.0f", sources["catalog"])},
		{"pairs of neighbouring regions", fmt.Sprint(r.pairs)},
		{"… with a common leader", share(float64(r.commonLeader), float64(r.pairs))},
		{"… with a common member", share(float64(r.commonMember), float64(r.pairs))},
		{"nodes that lead; regions led by the busiest", fmt.Sprintf("%d; %d", len(r.ledBy), busiest(r.ledBy))},
		{"nodes with replicas; replicas on the fullest", fmt.Sprintf("%d; %d", len(r.membersOn), busiest(r.membersOn))},
	}, nil
}

// walker is a player who counts the borders that they cross.
type walker struct {
	*crowd.Probe
	crossings *atomic.Int64
}

// flyTo moves to a position, in a straight line.
func (w *walker) flyTo(ctx context.Context, x, z float64) error {
	start := w.Pose()
	if err := w.Fly(ctx, x, z); err != nil {
		return err
	}
	const steps = 1000
	from := start.Chunk()
	for i := range steps + 1 {
		part := float64(i) / steps
		at := motion.Pose{X: start.X + part*(x-start.X), Z: start.Z + part*(z-start.Z)}.Chunk()
		if grid.CellAt(at, grid.FoundingLabel) != grid.CellAt(from, grid.FoundingLabel) {
			w.crossings.Add(1)
		}
		from = at
	}
	return nil
}

// walk lets a player move on each of the nodes from first to last (exclusive). It returns how many borders of founded cells they
// crossed, and how many regions all nodes located meanwhile, by the source that answered.
func (b *crossings) walk(ctx context.Context, daemons []*daemon.Daemon, first, last int, move func(ctx context.Context, i int, w *walker) error) (
	crossed int64, sources map[string]float64, err error,
) {
	var players []*crowd.Probe
	defer func() {
		for _, p := range players {
			p.Close()
		}
	}()
	for i := first; i < last; i++ {
		probe, err := crowd.StartProbe(ctx, b.address(daemons[i]), fmt.Sprintf("walker-%d", i), walkersView)
		if err != nil {
			return 0, nil, err
		}
		players = append(players, probe)
	}
	before, err := countSources(ctx, daemons)
	if err != nil {
		return 0, nil, err
	}
	var crossings atomic.Int64
	var all errgroup.Group
	for i, probe := range players {
		all.Go(func() error { return move(ctx, i, &walker{Probe: probe, crossings: &crossings}) })
	}
	if err := all.Wait(); err != nil {
		return 0, nil, err
	}
	sources, err = countSources(ctx, daemons)
	for source, n := range before {
		sources[source] -= n
	}
	return crossings.Load(), sources, err
}

// inRecords counts lookups of regions in the DHT.
const inRecords = "lookups in the DHT"

// countSources sums up how many regions all daemons have located, by the source that answered, and inRecords.
func countSources(ctx context.Context, daemons []*daemon.Daemon) (map[string]float64, error) {
	sum := make(map[string]float64)
	var mu sync.Mutex
	var all errgroup.Group
	all.SetLimit(4)
	for _, d := range daemons {
		all.Go(func() error {
			m, err := d.Scrape(ctx)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			for _, source := range m.Labels("voxeld_region_lookups_total", "source") {
				sum[source] += m.Value("voxeld_region_lookups_total", "source", source)
			}
			sum[inRecords] += m.Value("voxeld_dht_lookups_total", "kind", "region")
			return nil
		})
	}
	return sum, all.Wait()
}

func busiest(counts map[string]int) (n int) {
	for _, each := range counts {
		n = max(n, each)
	}
	return n
}

// leaders collects who leads the open regions.
type leaders struct {
	mu      sync.Mutex
	regions map[grid.Cell]daemon.Region // as last seen
}

// watch polls the daemons until the returned function is called. A region that nobody uses is open for ten seconds.
func (l *leaders) watch(ctx context.Context, daemons []*daemon.Daemon) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		every := time.NewTicker(4 * time.Second)
		defer every.Stop()
		for {
			for _, d := range daemons {
				if all, err := d.Regions(ctx); err == nil { // else it is asked again
					l.put(all)
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-every.C:
			}
		}
	})
	return func() {
		cancel()
		done.Wait()
	}
}

// put stores what a daemon has reported, if nothing newer is known.
func (l *leaders) put(all []daemon.Region) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range all {
		cell, err := grid.ParseCell(r.Cell)
		if err == nil && cell.Label.Len() >= grid.FoundingLabel && r.Leader != "" && r.Term >= l.regions[cell].Term {
			l.regions[cell] = r
		}
	}
}

// placed is where regions are led, and who has replicas of them.
type placed struct {
	pairs        int // of regions of founded cells that share a side
	commonLeader int // pairs with the same leader
	commonMember int // and with a common member
	ledBy        map[string]int
	membersOn    map[string]int
}

func (l *leaders) result() placed {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := placed{ledBy: make(map[string]int), membersOn: make(map[string]int)}
	for cell, region := range l.regions {
		r.ledBy[region.Leader]++
		for _, peer := range region.Members {
			r.membersOn[peer]++
		}
		area := cell.Area()
		for _, p := range []grid.ChunkPos{{X: area.MaxX, Z: area.MinZ}, {X: area.MinX, Z: area.MaxZ}} {
			next, ok := l.regions[grid.CellAt(p, cell.Label.Len())]
			if !ok {
				continue
			}
			r.pairs++
			if next.Leader == region.Leader {
				r.commonLeader++
			}
			if slices.ContainsFunc(next.Members, func(peer string) bool { return slices.Contains(region.Members, peer) }) {
				r.commonMember++
			}
		}
	}
	return r
}
