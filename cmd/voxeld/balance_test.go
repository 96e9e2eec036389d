package main

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mr-tron/base58"

	"github.com/voxelpopuli/voxeld/grid"
	kit "github.com/voxelpopuli/voxeld/test/testkit/daemon"
	"github.com/voxelpopuli/voxeld/test/testkit/metrics"
)

var (
	balanceTime     = flag.Duration("balance-time", 0, "how long players build in TestBalance; 0 skips it")
	balanceBuilders = flag.Int("balance-builders", 16, "players of TestBalance, each in a region of their own")
	balanceEdits    = flag.Float64("balance-edits", 600, "edits a second of all of them")
	balanceCapacity = flag.Int("balance-capacity", 30, "capacity of the small machine in percent of a core; the others have 100")
)

const (
	balanceNodes   = 5
	balanceRegions = 60 // so that each node is home of enough
	// spreadWithin is how long the load may take to spread.
	spreadWithin = 2 * time.Minute
	// averaged is how long players build until the loads of nodes show it.
	averaged = 40 * time.Second
)

// Players build in regions whose keys are all nearest to one node of five. That node is declared to be a small machine, for which the load is
// too much. It hands regions to others within two minutes, and then hardly anything moves. No player loses their session, and no
// acknowledged edit is lost. Without balancing it stays too busy.
func TestBalance(t *testing.T) {
	if *balanceTime == 0 {
		t.Skip("takes minutes: see make balance-proof")
	}
	t.Run("off", func(t *testing.T) { testBalance(t, false) })
	t.Run("on", func(t *testing.T) { testBalance(t, true) })
}

func testBalance(t *testing.T, on bool) {
	file := filepath.Join(t.TempDir(), "large.voxback")
	largeWorld(t, file, true, balanceRegions, 50, balanceRegions)
	args := []string{"--capacity=100", fmt.Sprintf("--balance=%t", on), "--split=false", "--edits-per-second=100000"}
	first := newDaemon(t, kit.Options{Dir: filepath.Join(t.TempDir(), "data"), Args: args})
	if out, errs, code := voxeld(t, "restore", file, "--data-dir", first.dir); code != 0 {
		t.Fatalf("voxeld restore: exit %d: %s%s", code, out, errs)
	}
	first.start()
	nodes := []*daemon{first}
	for token := first.invite(); len(nodes) < balanceNodes; {
		nodes = append(nodes, startDaemon(t, append([]string{"--join", token}, args...)...))
	}
	eventually(t, "all regions have all their members", 2*patience, func() bool { return complete(nodes) })
	home, regions := home(t, nodes)
	regions = regions[:min(*balanceBuilders, len(regions))]

	t.Logf("node %d is a machine of %d %% of a core", home, *balanceCapacity)
	nodes[home].terminate()
	args[0] = fmt.Sprintf("--capacity=%d", *balanceCapacity)
	nodes[home] = newDaemon(t, kit.Options{Args: args, Dir: nodes[home].dir, IP: nodes[home].ip})
	nodes[home].start()

	builders := town(t, nodes, home, regions)
	var all []sample
	var early float64
	start := time.Now()
	buildFor(t, builders, *balanceTime, func() {
		now := sampleLoads(t, nodes)
		all = append(all, now)
		t.Logf("%4.0f s  %s", time.Since(start).Seconds(), now)
		if time.Since(start) < averaged+spreadWithin {
			early = now.moves
		}
	})
	edits, missing := 0, 0
	for i, b := range builders {
		b.settle()
		b.safe, b.kept = len(b.sent), len(b.sent)
		edits += b.kept
		b.leave()
		missing += b.missing(join(t, nodes[(i+1)%len(nodes)].Game, b.Welcome.Name, 1))
	}
	last := all[len(all)-1]
	t.Logf("balance %t: the small node uses %.0f %% of its capacity in the end, %.2f of the mean; %.0f moves until %v, %.0f in %v afterwards; %d edits acknowledged, %d spots wrong, no session lost",
		on, 100*last.shares[home], last.ratio(), early, averaged+spreadWithin, last.moves-early, *balanceTime-averaged-spreadWithin, edits, missing)
	if missing > 0 {
		t.Errorf("%d spots do not show the last edit that was acknowledged", missing)
	}
	if !on {
		return
	}
	if early == 0 || last.shares[home] > 0.7 {
		t.Error("the load has not spread")
	}
	if last.moves > early+2 {
		t.Errorf("%.0f moves after the load had spread", last.moves-early)
	}
}

// town returns a player in each of the regions, with sessions on all nodes but home, once the regions have three copies and home leads most of
// them. With balancing it does not take them all: so small a machine has no room for more.
func town(t *testing.T, nodes []*daemon, home int, regions []int) (builders []*builder) {
	t.Helper()
	others := slices.Delete(slices.Clone(nodes), home, home+1)
	for i, region := range regions {
		builders = append(builders, newBuilder(t, others[i%len(others)].Game, region))
	}
	eventually(t, "the players' regions have three copies, and their home leads most of them", 2*patience, func() bool {
		copied, led := 0, 0
		for i, d := range nodes {
			for _, r := range d.regions() {
				if r.Bodies > 0 && r.Voters == 3 && r.Leader == d.Status.Peer {
					copied++
					if i == home {
						led++
					}
				}
			}
		}
		for _, b := range builders {
			b.drain()
		}
		return copied == len(builders) && led > copied/2
	})
	return builders
}

// buildFor has the players build, and looks every few seconds.
func buildFor(t *testing.T, builders []*builder, length time.Duration, look func()) {
	t.Helper()
	start, looked, sent := time.Now(), time.Now(), 0
	pace := time.NewTicker(5 * time.Millisecond)
	defer pace.Stop()
	for time.Since(start) < length {
		<-pace.C
		for ; float64(sent) < *balanceEdits*time.Since(start).Seconds(); sent++ {
			builders[sent%len(builders)].build()
		}
		if time.Since(looked) >= 5*time.Second {
			looked = time.Now()
			look()
		}
	}
}

// home returns the node that is nearest to the keys of most regions of largeWorld, and these regions.
func home(t *testing.T, nodes []*daemon) (node int, regions []int) {
	t.Helper()
	of := make([][]int, len(nodes))
	for i := range balanceRegions {
		cell := grid.CellAt(grid.ChunkPos{X: 2000 + 16*int32(i%50), Z: 2000 + 16*int32(i/50)}, grid.FoundingLabel)
		key := sha256.Sum256([]byte(grid.PlacementWalkad.Key(grid.PlacementWalkad.Home(cell))))
		best, nearest := 0, [32]byte{}
		for j, d := range nodes {
			id, err := base58.Decode(d.Status.Peer)
			if err != nil {
				t.Fatal(err)
			}
			distance := sha256.Sum256(id)
			for k := range distance {
				distance[k] ^= key[k]
			}
			if j == 0 || bytes.Compare(distance[:], nearest[:]) < 0 {
				best, nearest = j, distance
			}
		}
		of[best] = append(of[best], i)
	}
	for j := range of {
		if len(of[j]) > len(of[node]) {
			node = j
		}
	}
	return node, of[node]
}

// sample is the load of all nodes at one time.
type sample struct {
	shares, led []float64
	moves       float64
}

func sampleLoads(t *testing.T, nodes []*daemon) (s sample) {
	t.Helper()
	for _, d := range nodes {
		m, err := metrics.Scrape(t.Context(), d.Metrics)
		if err != nil {
			t.Fatal(err)
		}
		s.shares = append(s.shares, m.Value("voxeld_node_busy_cores")/m.Value("voxeld_node_capacity_cores"))
		s.led = append(s.led, m.Value("voxeld_regions_led"))
		s.moves += m.Value("voxeld_balance_moves_total")
	}
	return s
}

// ratio returns the highest share divided by the mean.
func (s sample) ratio() float64 {
	sum := 0.0
	for _, share := range s.shares {
		sum += share
	}
	return slices.Max(s.shares) * float64(len(s.shares)) / sum
}

func (s sample) String() string {
	var nodes []string
	for i, share := range s.shares {
		nodes = append(nodes, fmt.Sprintf("%3.0f %% (%2.0f led)", 100*share, s.led[i]))
	}
	return fmt.Sprintf("%s  max/mean %.2f  %.0f moves", strings.Join(nodes, "  "), s.ratio(), s.moves)
}
