package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/bot"
	"github.com/voxelpopuli/voxeld/grid"
	kit "github.com/voxelpopuli/voxeld/testkit/daemon"
	"github.com/voxelpopuli/voxeld/testkit/ledger"
	"github.com/voxelpopuli/voxeld/testkit/metrics"
)

var (
	balanceTime    = flag.Duration("balance-time", 0, "how long players build in TestBalance; 0 skips it")
	balancePlayers = flag.Int("balance-players", 60, "players of TestBalance")
	balanceEdits   = flag.Float64("balance-edits", 15, "edits a second of each of them")
)

const (
	balanceNodes = 5
	// spreadWithin is how long the load may take to spread once it is there.
	spreadWithin = time.Minute
	// townLevels is how often the cell of the town is split: it has 16 regions.
	townLevels = 4
	// warmUp is how long players build before the node that is too small for the town is chosen.
	warmUp = 45 * time.Second
)

// town is a chunk in the middle of a founded cell.
var town = grid.ChunkPos{X: 8, Z: 8}

// A town of 16 regions, most of them led by one node of five. That node is declared to be a small machine, for which the load is too much.
// It sheds regions until it is not too busy any more, and then nothing moves. No player loses their session, and no acknowledged edit is lost. Without
// balancing it stays too busy.
func TestBalance(t *testing.T) {
	if *balanceTime == 0 {
		t.Skip("takes minutes: see make balance-proof")
	}
	t.Run("on", func(t *testing.T) { testBalance(t, true) })
	t.Run("off", func(t *testing.T) { testBalance(t, false) })
}

func testBalance(t *testing.T, on bool) {
	args := []string{"--capacity=100", "--split=false", fmt.Sprintf("--balance=%t", on)}
	all := []*daemon{newDaemon(t, kit.Options{Args: args})}
	all[0].init()
	all[0].start()
	token, err := all[0].Invite(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range balanceNodes - 1 {
		all = append(all, startDaemon(t, append([]string{"--join", token}, args...)...))
	}
	splitTown(t, all[0])
	var acked ledger.Ledger
	wait := build(t, all, &acked, warmUp)
	time.Sleep(warmUp - 5*time.Second)
	before := loads(t, all)
	small := slices.Index(before, slices.MaxFunc(before, func(a, b load) int { return cmp.Or(cmp.Compare(a.led, b.led), cmp.Compare(a.busy, b.busy)) }))
	wait()
	capacity := int(math.Ceil(100 * before[small].busy / 0.9))
	t.Logf("node %d leads %.0f of the regions with %.3f cores; it is a machine of %d %% of a core from now on", small, before[small].led, before[small].busy, capacity)
	all[small].terminate()
	args[0] = fmt.Sprintf("--capacity=%d", capacity)
	all[small] = newDaemon(t, kit.Options{Args: args, Dir: all[small].dir, IP: all[small].ip})
	all[small].start()

	wait = build(t, all, &acked, *balanceTime)
	start := time.Now()
	early, late := 0.0, 0.0 // moves until the load has spread, and later
	var busiest, ratio, quiet []float64
	for time.Since(start) < *balanceTime-5*time.Second {
		time.Sleep(5 * time.Second)
		now := loads(t, all)
		moves, shares, highest, mean := 0.0, []string{}, 0.0, 0.0
		for _, l := range now {
			moves += l.moves
			shares = append(shares, fmt.Sprintf("%3.0f %% (%2.0f led)", 100*l.share, l.led))
			highest, mean = max(highest, l.share), mean+l.share/balanceNodes
		}
		t.Logf("%4.0f s  %s  moves %.0f  busiest/mean %.2f", time.Since(start).Seconds(), strings.Join(shares, "  "), moves, highest/mean)
		busiest, ratio = append(busiest, now[small].share), append(ratio, highest/mean)
		if time.Since(start) < settleWithin+spreadWithin {
			early = moves
		} else {
			late = moves - early
			quiet = append(quiet, now[small].share)
		}
	}
	wait()
	lost, err := acked.Lost(t.Context(), all[0].Game, time.Minute)
	if err != nil {
		t.Error(err)
	}
	t.Logf("balance %t: %.0f moves, then %.0f; the small node used %.0f %% of its capacity at most, %.0f %% at the end; busiest/mean %.2f at most, %.2f at the end; %d acknowledged edits, %d lost",
		on, early, late, 100*slices.Max(busiest), 100*busiest[len(busiest)-1], slices.Max(ratio), ratio[len(ratio)-1], acked.Edits(), len(lost))
	if len(lost) > 0 {
		t.Error(lost)
	}
	if !on || len(quiet) == 0 {
		return
	}
	if early == 0 {
		t.Error("nothing moved")
	}
	if late > 0 {
		t.Errorf("%.0f moves after the load had spread", late)
	}
	if mean := average(quiet); mean > 0.65 {
		t.Errorf("the small node still uses %.0f %% of its capacity", 100*mean)
	}
}

// settleWithin is how long the players take to come, and the averages of their load to show it.
const settleWithin = 45 * time.Second

func average(of []float64) (mean float64) {
	for _, v := range of {
		mean += v / float64(len(of))
	}
	return mean
}

// load is what a node says of its load.
type load struct{ busy, share, led, moves float64 }

func loads(t *testing.T, all []*daemon) []load {
	t.Helper()
	now := make([]load, len(all))
	for i, d := range all {
		m, err := metrics.Scrape(t.Context(), d.Metrics)
		if err != nil {
			t.Fatal(err)
		}
		busy := m.Value("voxeld_node_busy_cores")
		now[i] = load{busy, busy / m.Value("voxeld_node_capacity_cores"), m.Value("voxeld_regions_led"), m.Value("voxeld_balance_moves_total")}
	}
	return now
}

// build has players walk through the town and build, on all nodes, until the time is over. The returned function awaits their end, and
// fails the test if one of them lost their session, or an edit.
func build(t *testing.T, all []*daemon, acked *ledger.Ledger, length time.Duration) (wait func()) {
	var bots sync.WaitGroup
	ctx, stop := context.WithTimeout(t.Context(), length+time.Minute)
	for i, d := range all {
		bots.Go(func() {
			r, err := bot.Run(ctx, bot.Options{
				Target: d.Game, Mode: bot.ManyChunks, Chunk: town, Chunks: 256, Players: *balancePlayers / balanceNodes,
				Edits: *balanceEdits, Speed: 8, Duration: length, Keep: true, Seed: uint64(i + 1), Acked: acked.Acked,
			})
			if err != nil || r.Failed > 0 || r.Lost > 0 || r.EditsLost > 0 {
				t.Errorf("players of node %d: %d failed, %d lost, %d edits lost, %v, %v", i, r.Failed, r.Lost, r.EditsLost, r.Causes, err)
			}
		})
	}
	return func() {
		bots.Wait()
		stop()
	}
}

// splitTown splits the founded cell of the town.
func splitTown(t *testing.T, d *daemon) {
	t.Helper()
	p := join(t, d.Game, "mason", 1)
	defer p.Leave()
	p.until("land", func() bool { return len(p.Chunks) > 0 })
	cells := []grid.Cell{grid.CellAt(town, grid.FoundingLabel)}
	for range townLevels {
		var halves []grid.Cell
		for _, c := range cells {
			err := d.Split(t.Context(), c.String())
			for end := time.Now().Add(time.Minute); err != nil && time.Now().Before(end); err = d.Split(t.Context(), c.String()) {
				time.Sleep(500 * time.Millisecond) // the halves of the last split have no leader yet, or are moving
			}
			if err != nil {
				t.Fatal(err)
			}
			lower, upper := c.Children()
			halves = append(halves, lower, upper)
		}
		cells = halves
	}
}
