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
	kit "github.com/voxelpopuli/voxeld/testkit/daemon"
	"github.com/voxelpopuli/voxeld/testkit/metrics"
)

var (
	balanceTime     = flag.Duration("balance-time", 0, "how long players build in TestBalance once the load is there; 0 skips it")
	balanceBuilders = flag.Int("balance-builders", 16, "players of TestBalance, each in a region of their own")
	balanceCapacity = flag.Int("balance-capacity", 20, "capacity of each node of TestBalance, in percent of a core")
)

const (
	balanceNodes   = 5
	balanceRegions = 150 // so that each node is home of enough
	// startShare is the share of its capacity that the busy node uses before it is balanced.
	startShare = 0.9
	// spreadWithin is how long the load may take to spread once it is there.
	spreadWithin = time.Minute
)

// Players build in regions whose keys are all nearest to one node of five. That node becomes too busy, hands regions to others within a
// minute, and then nothing moves. No player loses their session, and no acknowledged edit is lost. First, the same without balancing shows
// how many edits a second it takes.
func TestBalance(t *testing.T) {
	if *balanceTime == 0 {
		t.Skip("takes minutes: see make balance-proof")
	}
	var rate float64
	t.Run("off", func(t *testing.T) { rate = testBalance(t, 0) })
	if rate > 0 {
		t.Run("on", func(t *testing.T) { testBalance(t, rate) })
	}
}

// testBalance builds at this rate, in edits a second, with balancing. If the rate is 0, it balances nothing, and returns the rate at which
// the node is too busy.
func testBalance(t *testing.T, rate float64) float64 {
	on := rate > 0
	file := filepath.Join(t.TempDir(), "large.voxback")
	largeWorld(t, file, balanceRegions, 50, balanceRegions)
	args := []string{fmt.Sprintf("--capacity=%d", *balanceCapacity), fmt.Sprintf("--balance=%t", on), "--split=false", "--edits-per-second=100000"}
	first := newDaemon(t, kit.Options{Dir: filepath.Join(t.TempDir(), "data"), Args: args})
	if out, errs, code := voxeld(t, "restore", file, "--data-dir", first.dir); code != 0 {
		t.Fatalf("voxeld restore: exit %d: %s%s", code, out, errs)
	}
	first.start()
	nodes := []*daemon{first}
	for token := first.invite(); len(nodes) < balanceNodes; {
		nodes = append(nodes, startDaemon(t, append([]string{"--join", token}, args...)...))
	}
	home, regions := home(t, nodes)
	var builders []*builder
	for i, region := range regions[:min(*balanceBuilders, len(regions))] {
		builders = append(builders, newBuilder(t, nodes[i%len(nodes)].Game, region))
	}
	eventually(t, "the node leads the regions of all players, which have three copies", patience, func() bool {
		led := 0
		for _, r := range nodes[home].regions() {
			if r.Bodies > 0 && r.Voters == 3 && r.Leader == nodes[home].Status.Peer {
				led++
			}
		}
		for _, b := range builders {
			b.drain()
		}
		return led == len(builders)
	})
	time.Sleep(20 * time.Second) // their founding is no longer in the averages

	end := time.Time{}
	var all []sample
	var early, late float64
	start, sent, reached := time.Now(), 0.0, time.Time{}
	raise := !on
	if raise {
		rate = 100
	}
	look := time.Now()
	for pace := time.Tick(5 * time.Millisecond); end.IsZero() || time.Now().Before(end); <-pace {
		for ; sent < rate*time.Since(start).Seconds(); sent++ {
			builders[int(sent)%len(builders)].build()
		}
		if time.Since(look) < 4*time.Second {
			continue
		}
		look = time.Now()
		now := sampleLoads(t, nodes)
		all = append(all, now)
		t.Logf("%4.0f s  %5.0f edits/s  %s", time.Since(start).Seconds(), rate, now)
		if reached.IsZero() && (on && now.moves > 0 || now.shares[home] >= startShare) {
			reached, end = time.Now(), time.Now().Add(*balanceTime)
			raise = false
		}
		switch {
		case raise:
			rate *= 1.25
			start, sent = time.Now(), 0
		case reached.IsZero() && on && time.Since(start) > 2*time.Minute:
			t.Fatal("nothing moved")
		case time.Since(reached) < spreadWithin:
			early = now.moves
		default:
			late = now.moves - early
		}
	}
	for _, b := range builders {
		b.settle()
	}
	edits, missing := 0, 0
	for i, b := range builders {
		b.safe, b.kept = len(b.sent), len(b.sent)
		edits += b.kept
		b.leave()
		missing += b.missing(join(t, nodes[(i+1)%len(nodes)].Game, b.Welcome.Name, 1))
	}
	peak := slices.MaxFunc(all, func(a, b sample) int { return int(1e6 * (a.shares[home] - b.shares[home])) })
	last := all[len(all)-1]
	t.Logf("balance %t, %.0f edits/s: busiest node %.0f %% of its capacity, %.2f of the mean, in the end %.0f %%, %.2f of the mean; %.0f moves within %v, %.0f in %v afterwards; %d edits acknowledged, %d spots wrong, no session lost",
		on, rate, 100*peak.shares[home], peak.ratio(), 100*slices.Max(last.shares), last.ratio(), early, spreadWithin, late, *balanceTime-spreadWithin, edits, missing)
	if missing > 0 {
		t.Errorf("%d spots do not show the last edit that was acknowledged", missing)
	}
	if on && late > 0 {
		t.Errorf("%.0f moves after the load had spread", late)
	}
	if on && last.ratio() > 0.8*peak.ratio() {
		t.Error("the load has not spread")
	}
	return rate
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
