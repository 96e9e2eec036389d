package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/test/bench/crowd"
	"github.com/voxelpopuli/voxeld/test/bench/measure"
	"github.com/voxelpopuli/voxeld/test/testkit/figure"
)

// original measures players of the original protocol.
type original struct {
	*bench
	numbers []int // of players
}

func newOriginal(b *bench) *cobra.Command {
	o := &original{bench: b}
	c := b.command("original", "Players of the original protocol in one chunk",
		"All players are connected to one chunk in the original protocol, and walk about in it. Each of them sends 20 moves a\n"+
			"second. One daemon has one core, the players have another. Besides the cost it measures whether players have 20\n"+
			"ticks a second, and which share of the moves reaches the others exactly as they were sent.",
		o.run)
	c.Flags().IntSliceVar(&o.numbers, "players", []int{50, 100, 150, 200, 300}, "numbers of players to measure")
	return c
}

func (o *original) run(ctx context.Context) error {
	var rows []crowdRow
	for _, n := range o.numbers {
		row, err := o.crowdOf(ctx, n)
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	return o.report(rows)
}

// crowdOf measures a fresh daemon with n players in one chunk.
func (o *original) crowdOf(ctx context.Context, n int) (row crowdRow, err error) {
	warm, length := o.times(seconds{6, 15}, seconds{5, 8})
	daemons, err := o.daemons(ctx, 1)
	if err != nil {
		return row, err
	}
	d := daemons[0]
	defer d.Kill()
	players := crowd.Options{Targets: []string{d.Game}, Original: &grid.ChunkPos{}}
	row, err = o.crowdOn(ctx, d, players, n, warm, length)
	if err == nil {
		logf("%s", originalLine(row))
	}
	return row, err
}

// regionRate returns the ticks a second of the region's loop. No other region has players.
func (c crowdRow) regionRate() float64 { return c.LoopRate("voxeld_region_tick_seconds") }

// gatewayRate returns the ticks a second of the gateway's loop.
func (c crowdRow) gatewayRate() float64 { return c.LoopRate("voxeld_gateway_tick_seconds") }

// originalMissed returns which condition of the figure a measurement did not meet; "" if it met all of them.
func originalMissed(r crowdRow) string {
	switch {
	case r.failed != nil:
		return r.failed.Error()
	case r.Players < r.wanted:
		return fmt.Sprintf("%d of %d players lost%s", r.wanted-r.Players, r.wanted, firstReason(r.Seen.Failed))
	case !(r.FrameRate() >= measure.MinFrameRate):
		return fmt.Sprintf("%.1f TIME/s", r.FrameRate())
	case !(r.regionRate() >= measure.MinFrameRate):
		return fmt.Sprintf("%.1f region ticks/s", r.regionRate())
	case !(r.gatewayRate() >= measure.MinFrameRate):
		return fmt.Sprintf("%.1f gateway ticks/s", r.gatewayRate())
	}
	return ""
}

// firstReason returns the most frequent reason for which players were lost, in brackets; "" if there is none.
func firstReason(failed map[string]int) string {
	most := ""
	for why, n := range failed {
		if most == "" || n > failed[most] || n == failed[most] && why < most {
			most = why
		}
	}
	if most == "" {
		return ""
	}
	return " (" + most + ")"
}

func (c crowdRow) deliveredPercent() float64 { return percent(c.Seen.Deliveries.Delivered()) }
func (c crowdRow) notExactPercent() float64  { return percent(c.Seen.Deliveries.NotExact()) }
func (c crowdRow) lost() int                 { return c.wanted - c.Players }

func originalLine(r crowdRow) string {
	if r.failed != nil {
		return fmt.Sprintf("original, %d players: %v", r.wanted, r.failed)
	}
	return fmt.Sprintf("original, %d players: %.1f %% of a core, %s B/s in per player, %.1f TIME/s, %.1f region and %.1f gateway ticks/s, "+
		"tick p99 %.1f ms, %.1f %% of moves delivered, %.1f %% not exact, seen p50 %.0f p99 %.0f ms, players' core %.0f %%",
		r.wanted, r.cpuPercent(), figure.Number(r.bytesIn()), r.FrameRate(), r.regionRate(), r.gatewayRate(),
		r.tickMS(), r.deliveredPercent(), r.notExactPercent(), r.seen50(), r.seen99(), r.botPercent()) + r.doubts(originalMissed(r))
}

// report writes the figure.
func (o *original) report(rows []crowdRow) error {
	rows = reliable(rows)
	if err := o.writeRows("original.csv", rows,
		number("cpu_percent", crowdRow.cpuPercent), number("bytes_in_per_player_s", crowdRow.bytesIn), number("time_per_s", crowdRow.FrameRate),
		number("region_ticks_per_s", crowdRow.regionRate), number("gateway_ticks_per_s", crowdRow.gatewayRate),
		number("tick_p99_ms", crowdRow.tickMS), number("delivered_percent", crowdRow.deliveredPercent),
		number("not_exact_percent", crowdRow.notExactPercent), number("seen_p50_ms", crowdRow.seen50), number("seen_p99_ms", crowdRow.seen99),
		number("error_16_mean", crowdRow.errorMean), number("error_16_p99", crowdRow.error99),
		number("lost", func(r crowdRow) float64 { return float64(r.lost()) }), number("bots_cpu_percent", crowdRow.botPercent),
		number("others_cpu_percent", crowdRow.othersPercent),
		number("holds", func(r crowdRow) float64 { return zeroOrOne(originalMissed(r) == "") })); err != nil {
		return err
	}
	// the others are in the CSV file
	table := tableOf(rows[max(0, len(rows)-1):], text("players", crowdRow.players), text("holds", func(r crowdRow) string { return yesOrNo(originalMissed(r)) }),
		number("CPU, % of a core", crowdRow.cpuPercent), number("kB/s to each", crowdRow.kBIn),
		number("TIME/s", crowdRow.FrameRate), number("tick p99, ms", crowdRow.tickMS), number("moves delivered, %", crowdRow.deliveredPercent), text("seen p50 / p99, ms", crowdRow.seen),
		text("position error ≤ 16 blocks, mean / p99", crowdRow.errors))
	return o.publish("original", table.Markdown()+"\nFewer players: [CSV](performance/original.csv)")
}
