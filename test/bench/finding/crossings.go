// Package finding measures how regions are found, above all while players cross their borders, and where the regions of neighbouring
// cells are led: on real daemons, from their metrics and admin sockets.
//
// Only test/bench/cmd may import it.
package finding

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/test/bench/crowd"
	"github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/figure"
)

// Options configure a measurement. All fields are required.
type Options struct {
	Daemons []*daemon.Daemon
	Side    int           // of the square of founded cells that players cross
	Length  time.Duration // that players walk through it
	Logf    func(format string, args ...any)
}

// Result is what was measured.
type Result struct {
	Pioneers Phase // players on a third of the nodes, over land where nobody was before
	Walkers  Phase // players on the other nodes, over the same land, which is new to their nodes at first
	Lead     Leaders
}

// Phase is what the daemons counted while players moved.
type Phase struct {
	Crossings int                // of borders of founded cells
	Sources   map[string]float64 // regions located, by the source that answered
}

const (
	view       = 2                   // chunks
	cell       = grid.DomainSize / 4 // chunks along a founded cell
	cellBlocks = float64(cell * grid.ChunkSize)
)

// Run measures. The world must be new.
func Run(ctx context.Context, o Options) (r Result, err error) {
	leaders := newLeaders()
	stop := leaders.watch(ctx, o.Daemons)
	defer stop()
	pioneers := max(1, min(2*o.Side, len(o.Daemons)/3))
	half := float64(o.Side) / 2 * cellBlocks
	o.Logf("%d players found %d × %d cells", pioneers, o.Side, o.Side)
	r.Pioneers, err = observe(ctx, o, 0, pioneers, func(ctx context.Context, i int, w *walker) error {
		for ; i < 2*o.Side; i += pioneers { // half a row after the other, outwards
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
		return r, err
	}
	o.Logf("%d players on other nodes cross them for %v", len(o.Daemons)-pioneers, o.Length)
	end := time.Now().Add(o.Length)
	r.Walkers, err = observe(ctx, o, pioneers, len(o.Daemons), func(ctx context.Context, i int, w *walker) error {
		rng := rand.New(rand.NewPCG(1, uint64(i)))
		for time.Now().Before(end) {
			if err := w.flyTo(ctx, (2*rng.Float64()-1)*(half-8), (2*rng.Float64()-1)*(half-8)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return r, err
	}
	stop()
	r.Lead = leaders.result()
	return r, nil
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

// observe lets a player move on each of the nodes from first to last (exclusive), and returns what all nodes counted meanwhile.
func observe(ctx context.Context, o Options, first, last int, move func(ctx context.Context, i int, w *walker) error) (p Phase, err error) {
	players := make([]*crowd.Probe, 0, last-first)
	defer func() {
		for _, p := range players {
			p.Close()
		}
	}()
	for i := first; i < last; i++ {
		probe, err := crowd.StartProbe(ctx, o.Daemons[i].Game, fmt.Sprintf("walker-%d", i), view)
		if err != nil {
			return p, err
		}
		players = append(players, probe)
	}
	before, err := Count(ctx, o.Daemons)
	if err != nil {
		return p, err
	}
	var crossings atomic.Int64
	var all errgroup.Group
	for i, probe := range players {
		all.Go(func() error { return move(ctx, i, &walker{Probe: probe, crossings: &crossings}) })
	}
	if err := all.Wait(); err != nil {
		return p, err
	}
	after, err := Count(ctx, o.Daemons)
	if err != nil {
		return p, err
	}
	for source, n := range before.Sources {
		after.Sources[source] -= n
	}
	after.Crossings = int(crossings.Load())
	return after, nil
}

// Count sums up the counters of all daemons.
func Count(ctx context.Context, daemons []*daemon.Daemon) (sum Phase, err error) {
	sum.Sources = make(map[string]float64)
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
				sum.Sources[source] += m.Value("voxeld_region_lookups_total", "source", source)
			}
			return nil
		})
	}
	return sum, all.Wait()
}

// Crossed returns the share of crossings for which the DHT was asked for a region.
func (p Phase) Crossed() float64 { return p.Sources["dht"] / float64(p.Crossings) }

// Unheard returns how many regions that exist were located and not in the cache, and the share of them that were found without the
// DHT and the catalog.
func (p Phase) Unheard() (n, without float64) {
	for source, each := range p.Sources {
		if source != "cache" && source != "founded" {
			n += each
		}
	}
	return n, (n - p.Sources["dht"] - p.Sources["catalog"]) / n
}

// Table returns a table of results, each in a column with its name.
func Table(names []string, results []Result) figure.Table {
	t := figure.Table{Head: append([]string{""}, names...)}
	for i, each := range results {
		for j, row := range each.rows() {
			if i == 0 {
				t.Rows = append(t.Rows, []string{row.name})
			}
			t.Rows[j] = append(t.Rows[j], row.value)
		}
	}
	t.Rows = slices.DeleteFunc(t.Rows, func(row []string) bool {
		return !slices.ContainsFunc(row[1:], func(v string) bool { return v != none })
	})
	return t
}

// row is a row of a table of results.
type row struct{ name, value string }

// rows returns the result as a table's rows.
func (r Result) rows() []row {
	percent := func(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }
	pairs := func(n int) string { return percent(float64(n) / float64(r.Lead.Pairs)) }
	unheard, without := r.Walkers.Unheard()
	w := r.Walkers
	return []row{
		{"borders crossed into land where nobody was; cells founded", fmt.Sprintf("%d; %.0f", r.Pioneers.Crossings, r.Pioneers.Sources["founded"])},
		{"borders crossed on founded land", fmt.Sprint(w.Crossings)},
		{"… with a DHT lookup", percent(w.Crossed())},
		{"regions that a node had to locate, because no link led there", fmt.Sprintf("%.0f", unheard)},
		{"… without the DHT or the catalog", ifAny(unheard, percent(without))},
		{"… from each source", ifAny(unheard, sources(w.Sources))},
		{"pairs of neighbouring regions", fmt.Sprint(r.Lead.Pairs)},
		{"… with a common leader", pairs(r.Lead.CommonLeader)},
		{"… with a common member", pairs(r.Lead.CommonMember)},
		{"nodes that lead; regions led by the busiest", fmt.Sprintf("%d; %d", len(r.Lead.LedBy), most(r.Lead.LedBy))},
		{"nodes with replicas; replicas on the fullest", fmt.Sprintf("%d; %d", len(r.Lead.MembersOn), most(r.Lead.MembersOn))},
	}
}

// none is the value of a row that has nothing to count.
const none = "none"

// ifAny returns the text, or none if there was nothing to count.
func ifAny(n float64, text string) string {
	if n == 0 {
		return none
	}
	return text
}

// sources returns the sources and how often each answered.
func sources(counted map[string]float64) string {
	var text []string
	for _, source := range slices.Sorted(maps.Keys(counted)) {
		if n := counted[source]; n > 0 && source != "cache" {
			text = append(text, fmt.Sprintf("%s %.0f", source, n))
		}
	}
	return strings.Join(text, ", ")
}

func most(counts map[string]int) (n int) {
	for _, each := range counts {
		n = max(n, each)
	}
	return n
}
