package main

import (
	"context"
	"flag"
	"fmt"
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
	balancePlayers  = flag.Int("balance-players", 40, "players of TestBalance")
	balanceEdits    = flag.Float64("balance-edits", 5, "edits a second of each of them")
	balanceCapacity = flag.Int("balance-capacity", 30, "capacity of each node, in percent of a core")
	balanceTime     = flag.Duration("balance-time", time.Minute, "how long the players build")
	balanceOff      = flag.Bool("balance-off", false, "TestBalance with --balance=false, for comparison")
)

func TestBalance(t *testing.T) {
	const nodes = 5
	args := []string{fmt.Sprintf("--capacity=%d", *balanceCapacity), fmt.Sprintf("--balance=%t", !*balanceOff)}
	all := []*daemon{newDaemon(t, kit.Options{Args: args})}
	all[0].init()
	all[0].start()
	token, err := all[0].Invite(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range nodes - 1 {
		all = append(all, startDaemon(t, append([]string{"--join", token}, args...)...))
	}
	var acked ledger.Ledger
	var bots sync.WaitGroup
	ctx, stop := context.WithTimeout(t.Context(), *balanceTime+time.Minute)
	defer stop()
	for i, d := range all {
		bots.Go(func() {
			report, err := bot.Run(ctx, bot.Options{
				Target: d.Game, Mode: bot.ManyChunks, Chunk: grid.ChunkPos{X: 16, Z: 16}, Chunks: 64, Players: *balancePlayers / nodes,
				Edits: *balanceEdits, Speed: 8, Duration: *balanceTime, Keep: true, Seed: uint64(i + 1), Acked: acked.Acked,
			})
			if err != nil {
				t.Error(err)
			}
			t.Logf("joined %d, failed %d, lost %d, moved %d, edits %d, acked %d, lost edits %d, refused %v, causes %v, ack p50/p99 %v/%v", report.Joined, report.Failed, report.Lost, report.Moved, report.Edits, report.Acked, report.EditsLost, report.Refused, report.Causes, report.Ack.P50, report.Ack.P99)
		})
	}
	done := make(chan struct{})
	go func() { bots.Wait(); close(done) }()
	every := time.NewTicker(5 * time.Second)
	defer every.Stop()
	start := time.Now()
	for {
		select {
		case <-done:
			return
		case <-every.C:
		}
		var line strings.Builder
		for _, d := range all {
			m, err := metrics.Scrape(t.Context(), d.Metrics)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&line, "  %.2f led %.0f moves %.0f", m.Value("voxeld_node_busy_cores"), m.Value("voxeld_regions_led"), m.Value("voxeld_balance_moves_total"))
		}
		t.Logf("%3.0f s%s", time.Since(start).Seconds(), line.String())
	}
}
