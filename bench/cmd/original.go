package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/bench/crowd"
	"github.com/voxelpopuli/voxeld/bench/measure"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/testkit/figure"
)

// newOriginal returns the command that measures players of the original protocol.
func newOriginal(b *bench) *cobra.Command {
	var players []int
	c := b.command("original", "Players of the original protocol in one chunk",
		"All players are connected to one chunk in the original protocol, and walk about in it. Each of them sends 20 moves a\n"+
			"second. One daemon has one core, the players have another. Besides the cost it measures whether players have 20\n"+
			"ticks a second, and which share of the moves reaches the others exactly as they were sent.",
		func(ctx context.Context) error { return b.original(ctx, players) })
	c.Flags().IntSliceVar(&players, "players", []int{50, 100, 150, 200, 300}, "numbers of players to measure")
	return c
}

func (b *bench) original(ctx context.Context, players []int) error {
	var rows []crowdRow
	for _, n := range players {
		row, err := b.originalOf(ctx, n)
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	return b.reportOriginal(rows)
}

// originalOf measures a fresh daemon with n players in one chunk.
func (b *bench) originalOf(ctx context.Context, n int) (row crowdRow, err error) {
	warm, length := b.times(seconds{6, 15}, seconds{5, 8})
	daemons, err := b.daemons(ctx, 1)
	if err != nil {
		return row, err
	}
	d := daemons[0]
	defer d.Kill()
	o := crowd.Options{Targets: []string{d.Game}, Original: &grid.ChunkPos{}, Prefix: "original"}
	row, err = b.crowdOn(ctx, d, o, n, fmt.Sprintf("original-%d", n), warm, length)
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

func originalHolds(r crowdRow) string {
	if why := originalMissed(r); why != "" {
		return "no: " + why
	}
	return "yes"
}

func originalLine(r crowdRow) string {
	if r.failed != nil {
		return fmt.Sprintf("original, %d players: %v", r.wanted, r.failed)
	}
	p := r.Seen
	text := fmt.Sprintf("original, %d players: %.1f %% of a core, %s B/s in per player, %.1f TIME/s, %.1f region and %.1f gateway ticks/s, "+
		"tick p99 %.1f ms, %.1f %% of moves delivered, %.1f %% not exact, seen p50 %.0f p99 %.0f ms, players' core %.0f %%",
		r.wanted, percent(r.TotalCPU()), figure.Number(r.PerPlayer(p.BytesIn)), r.FrameRate(), r.regionRate(), r.gatewayRate(),
		1000*r.Tick99(), percent(p.Deliveries.Delivered()), percent(p.Deliveries.NotExact()),
		1000*p.Delay[nearby].Quantile(.5), 1000*p.Delay[nearby].Quantile(.99), percent(r.BotCPU))
	if why := originalMissed(r); why != "" {
		text += "; NOT HELD: " + why
	}
	if why := r.Caveat(); why != "" {
		text += "; DOUBTFUL: " + why
	}
	return text
}

// nearby is the first of crowd.Reaches: up to 16 blocks away.
const nearby = 0

// reportOriginal writes the figure.
func (b *bench) reportOriginal(rows []crowdRow) error {
	table := figure.Table{Head: []string{
		"players", "holds", "CPU, % of a core", "per player", "kB/s to each", "TIME/s", "region ticks/s", "gateway ticks/s", "tick p99, ms",
		"moves delivered, %", "not exact, %", "seen p50 / p99, ms", "position error ≤ 16 blocks, mean / p99", "players lost", "players' core, %",
	}}
	head := []string{
		"players", "cpu_percent", "bytes_in_per_player_s", "time_per_s", "region_ticks_per_s", "gateway_ticks_per_s", "tick_p99_ms",
		"delivered_percent", "not_exact_percent", "seen_p50_ms", "seen_p99_ms", "error_16_mean", "error_16_p99", "lost", "bots_cpu_percent",
		"others_cpu_percent", "holds",
	}
	var csv [][]float64
	for _, r := range rows {
		if r.failed != nil {
			row := make([]string, len(table.Head))
			row[0], row[1] = fmt.Sprint(r.wanted), originalHolds(r)
			table.Rows = append(table.Rows, row)
			continue
		}
		p := r.Seen
		in, lost := r.PerPlayer(p.BytesIn), r.wanted-r.Players
		delivered, inexact := percent(p.Deliveries.Delivered()), percent(p.Deliveries.NotExact())
		seen50, seen99 := 1000*p.Delay[nearby].Quantile(.5), 1000*p.Delay[nearby].Quantile(.99)
		table.Add(fmt.Sprint(r.wanted), originalHolds(r), percent(r.TotalCPU()), percent(r.TotalCPU())/float64(r.Players), in/1000,
			r.FrameRate(), r.regionRate(), r.gatewayRate(), 1000*r.Tick99(), delivered, inexact, pair(seen50, seen99),
			pair(p.Error[nearby].Mean(), p.Error[nearby].Quantile(.99)), fmt.Sprint(lost), percent(r.BotCPU))
		csv = append(csv, []float64{
			float64(r.wanted), percent(r.TotalCPU()), in, r.FrameRate(), r.regionRate(), r.gatewayRate(), 1000 * r.Tick99(),
			delivered, inexact, seen50, seen99, p.Error[nearby].Mean(), p.Error[nearby].Quantile(.99), float64(lost), percent(r.BotCPU),
			percent(r.Others), zeroOrOne(originalMissed(r) == ""),
		})
	}
	if err := figure.WriteCSV(b.file("original.csv"), head, csv); err != nil {
		return err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n%s", table.Markdown(), caveats(rows))
	return b.publish("original", text.String())
}
