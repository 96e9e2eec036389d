package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/test/testkit/figure"
)

// oneChunk finds how many players one chunk supports.
type oneChunk struct {
	*bench
	numbers []int  // of players
	old     string // binary to compare with; "": none
	profile string // directory for a CPU profile of each daemon; "": none
}

func newOneChunk(b *bench) *cobra.Command {
	o := &oneChunk{bench: b}
	c := b.command("one-chunk", "How many players one chunk supports",
		"All players walk about in one 32×32 area, each of them sending 20 moves a second, all of which are checked. One\n"+
			"daemon has one core, the players have another. A number of players meets the rule if they receive 20 frames a\n"+
			"second, and the 99th percentile of the tick is below 50 ms. Then it measures the floor program with the same\n"+
			"bytes, under the same rule; where players did not meet it, with the bytes of the largest number that did.",
		o.run)
	c.Flags().IntSliceVar(&o.numbers, "players", []int{100, 500, 1000, 1500}, "numbers of players to measure")
	compareFlag(c, &o.old)
	c.Flags().StringVar(&o.profile, "profile", "", "directory for a CPU profile of the daemon with each number of players, for go tool pprof")
	return c
}

func (o *oneChunk) run(ctx context.Context) error {
	if o.old != "" {
		return o.compare(ctx)
	}
	var rows, floors []crowdRow
	for _, n := range o.numbers {
		row, err := retryUnreliable(func() (crowdRow, error) { return o.crowdOf(ctx, n) })
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	for _, n := range o.numbers {
		like, found := loadAt(rows, n)
		if !found {
			continue
		}
		row, err := retryUnreliable(func() (crowdRow, error) { return o.floorOf(ctx, n, like) })
		if err != nil {
			return err
		}
		floors = append(floors, row)
	}
	return o.report(rows, floors)
}

// compare measures an old daemon and this one with each number of players.
func (o *oneChunk) compare(ctx context.Context) error {
	for _, n := range o.numbers {
		if err := compare(o.bench, o.old, fmt.Sprintf("with %d players in one chunk", n), func() (crowdRow, error) {
			row, err := o.crowdOf(ctx, n)
			return row, errors.Join(err, row.failed)
		}, costs); err != nil {
			return err
		}
	}
	return nil
}

// costs are what players cost.
var costs = []compared[crowdRow]{
	{"CPU, % of a core", crowdRow.cpuPercent},
	{"kB/s to each player", crowdRow.kBIn},
	{"kB/s from each player", crowdRow.kBOut},
	{"tick p99, ms", crowdRow.tickMS},
	{"RSS, MiB", crowdRow.rssMiB},
}

// crowdOf measures a fresh daemon with n players in the chunk where they enter the world. An error is that of ctx: any
// other is in the row.
func (o *oneChunk) crowdOf(ctx context.Context, n int) (row crowdRow, err error) {
	d, players, err := o.startSpreadCrowd(ctx, 1)
	if err != nil {
		return row, err
	}
	defer d.Kill()
	warm, length := o.times(seconds{8, 15})
	var begin func(context.Context) func() error
	if o.profile != "" {
		begin = func(ctx context.Context) func() error {
			return takeProfile(ctx, d, filepath.Join(o.profile, fmt.Sprintf("one-chunk-%d.pprof", n)), length)
		}
	}
	row.wanted = n
	if row.reading, row.failed = o.measureCrowd(ctx, []target{d}, players, n, warm, length, begin); ctx.Err() == nil {
		logf("%s", row.line("voxeld"))
	}
	return row, ctx.Err()
}

// retryUnreliable repeats a measurement that failed the rule and is in doubt: on a shared machine other programs may
// have slowed it down.
func retryUnreliable(measure func() (crowdRow, error)) (row crowdRow, err error) {
	for range 2 {
		row, err = measure()
		if err != nil || row.missed() == "" || row.failed != nil || row.Caveat() == "" {
			break
		}
	}
	return row, err
}

// most returns the largest number of players that met the rule.
func most(rows []crowdRow) (n int) {
	for _, r := range rows {
		if r.missed() == "" {
			n = max(n, r.wanted)
		}
	}
	return n
}

// loadAt returns the row whose bytes the floor program gets with n players: that of the largest number up to n that met
// the rule. Where voxeld no longer meets it, this favours the floor.
func loadAt(rows []crowdRow, n int) (like crowdRow, found bool) {
	for _, r := range rows {
		if r.missed() == "" && r.wanted <= n && r.wanted > like.wanted {
			like, found = r, true
		}
	}
	return like, found
}

// floorOf measures the floor program with n players, and the bytes that each player of a row received and sent.
func (o *oneChunk) floorOf(ctx context.Context, n int, like crowdRow) (row crowdRow, err error) {
	warm, length := o.times(seconds{3, 10})
	row.wanted = n
	row.reading, row.failed = o.floorReading(ctx, n, int(like.bytesIn()/tickRate), int(like.bytesOut()/tickRate), warm, length)
	if ctx.Err() == nil {
		logf("%s", row.line("floor"))
	}
	return row, ctx.Err()
}

// report writes the figure.
func (o *oneChunk) report(rows, floors []crowdRow) error {
	held, floorHeld := most(rows), most(floors)
	rows, floors = reliable(rows), reliable(floors)
	byPlayers := func(a, b crowdRow) int { return a.wanted - b.wanted }
	slices.SortStableFunc(rows, byPlayers)
	slices.SortStableFunc(floors, byPlayers)
	if err := o.writeRows("one-chunk.csv", rows,
		number("cpu_percent", crowdRow.cpuPercent), number("bytes_in_per_player_s", crowdRow.bytesIn),
		number("bytes_out_per_player_s", crowdRow.bytesOut), number("frames_per_s", crowdRow.FrameRate), number("tick_p99_ms", crowdRow.tickMS),
		number("seen_p50_ms", crowdRow.seen50), number("seen_p99_ms", crowdRow.seen99), number("error_16_mean", crowdRow.errorMean),
		number("error_16_p99", crowdRow.error99), number("rss_bytes", crowdRow.rssBytes), number("bots_cpu_percent", crowdRow.botPercent),
		number("others_cpu_percent", crowdRow.othersPercent), number("holds", crowdRow.held)); err != nil {
		return err
	}
	if err := o.plot(rows, floors); err != nil {
		return err
	}
	table := tableOf(rows, text("players", crowdRow.players), text("holds", crowdRow.holds), number("CPU, % of a core", crowdRow.cpuPercent),
		number("kB/s to each", crowdRow.kBIn),
		number("frames/s", crowdRow.FrameRate), number("tick p99, ms", crowdRow.tickMS), text("seen p50 / p99, ms", crowdRow.seen),
		text("position error ≤ 16 blocks, mean / p99", crowdRow.errors), number("RSS, MiB", crowdRow.rssMiB),
		text("CPU of the floor program, %", func(r crowdRow) string { return cpuAmong(floors, r.wanted) }))
	page := fmt.Sprintf("![players in one chunk](performance/one-chunk.svg) [CSV](performance/one-chunk.csv)\n\n%s\nMost players that hold: **%d**",
		table.Markdown(), held)
	if len(floors) > 0 {
		page += fmt.Sprintf("; of the floor program **%d**: a ratio of **%s**", floorHeld, figure.Number(ratio(float64(held), float64(floorHeld))))
	}
	return o.publish("one-chunk", page)
}

// cpuAmong returns the processor time of the row with n players, "" if there is none.
func cpuAmong(rows []crowdRow, n int) string {
	i := slices.IndexFunc(rows, func(r crowdRow) bool { return r.wanted == n && r.failed == nil })
	if i < 0 {
		return ""
	}
	return figure.Number(rows[i].cpuPercent())
}

func (o *oneChunk) plot(rows, floors []crowdRow) error {
	lines := []figure.Line{{Name: "voxeld", Points: pointsOf(rows, crowdRow.cpuPercent), Marked: true}}
	if cpu := pointsOf(floors, crowdRow.cpuPercent); len(cpu) > 0 {
		lines = append(lines, figure.Line{Name: "floor program", Points: cpu, Marked: true, Dashed: true})
	}
	lines = append(lines, figure.Line{Name: "bytes to each player", Points: pointsOf(rows, crowdRow.kBIn), Marked: true, Right: true})
	return figure.WriteSVG(o.file("one-chunk.svg"),
		figure.Plot{
			Title: "CPU of the daemon, all players in one chunk", X: figure.Axis{Label: "players"},
			Y: figure.Axis{Label: "CPU, % of one core", Max: 100}, Y2: figure.Axis{Label: "kB/s to each player"}, Lines: lines,
		},
		figure.Plot{
			Title: "Ticks and delays, all players in one chunk", X: figure.Axis{Label: "players"}, Y: figure.Axis{Label: "ms"},
			Lines: []figure.Line{
				{Name: "tick, p99", Points: pointsOf(rows, crowdRow.tickMS), Marked: true},
				{Name: "move seen by others within 16 blocks, p99", Points: pointsOf(rows, crowdRow.seen99), Marked: true},
			},
		})
}
