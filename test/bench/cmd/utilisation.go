package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/test/bench/crowd"
	"github.com/voxelpopuli/voxeld/test/bench/measure"
	"github.com/voxelpopuli/voxeld/test/testkit/figure"
	"github.com/voxelpopuli/voxeld/test/testkit/process"
)

// utilisation is figure 4.3.
type utilisation struct{ *bench }

func newUtilisation(b *bench) *cobra.Command {
	return b.command("utilisation", "CPU and memory over time (figures 4.3a to d)",
		"The dissertation's four local simulations on one node: 50 players in 1, 50 and 10 chunks, and 100 players in 10.\n"+
			"Its runs lasted an hour each, as with --duration 1h.",
		utilisation{b}.run)
}

func (b utilisation) run(ctx context.Context) error {
	_, length := b.times(seconds{0, 60}, seconds{0, 20})
	var panels []figure.Plot
	table := figure.Table{Head: []string{"figure", "players", "chunks", "CPU, % of a core", "per player", "RSS, MiB", "VoxelPopuli, CPU %"}}
	for _, f := range []struct {
		name            string
		players, chunks int
		paper           string // the dissertation's result, in words (§4.3.1.2)
	}{{"4.3a", 50, 1, "90"}, {"4.3b", 50, 50, "about 45"}, {"4.3c", 50, 10, "25"}, {"4.3d", 100, 10, "55"}} {
		d, o, err := b.startSpreadCrowd(ctx, f.chunks)
		if err != nil {
			return err
		}
		var series []measure.Moment
		err = b.play(ctx, o, f.players, []measure.Target{d}, func(ctx context.Context, c *crowd.Crowd) error {
			r := measure.Record(ctx, []measure.Target{d}, c, time.Second)
			err := process.Pause(ctx, length)
			series = r.Stop()
			return err
		})
		d.Kill()
		if err != nil {
			return err
		}
		cpu, rss := meanOver(series, length.Seconds()/4)
		logf("%s: %d players in %d chunks: %.1f %% of a core, %.0f MiB", f.name, f.players, f.chunks, percent(cpu), rss/(1<<20))
		table.Add(f.name, f.players, f.chunks, percent(cpu), percent(cpu)/float64(f.players), rss/(1<<20), f.paper)
		panels = append(panels, utilisationPlot(fmt.Sprintf("%s  %d players, %d chunks", f.name, f.players, f.chunks), series))
	}
	if err := figure.WriteSVG(b.file("utilisation.svg"), panels...); err != nil {
		return err
	}
	return b.publish("utilisation", fmt.Sprintf(
		"![CPU and memory over time](performance/utilisation.svg)\n\nMeans over the last three quarters of %v:\n\n%s", length, table.Markdown()))
}

// ramp is figures 4.4 and 4.5.
type ramp struct{ *bench }

func newRamp(b *bench) *cobra.Command {
	return b.command("ramp", "CPU while players join one by one (figures 4.4 and 4.5)",
		"A new player in the same chunk every two seconds, up to 50; and every second, up to 100. VoxelPopuli's CPU grew\n"+
			"to 100 % at about 70 players and stayed there, while its memory began to grow.",
		ramp{b}.run)
}

func (b ramp) run(ctx context.Context) error {
	var panels []figure.Plot
	table := figure.Table{Head: []string{"figure", "players", "CPU at a quarter, % of a core", "at a half", "at all", "RSS at all, MiB"}}
	for _, f := range []struct {
		name    string
		players int
		every   time.Duration
	}{{"4.4", 50, 2 * time.Second}, {"4.5", 100, time.Second}} {
		every := f.every
		if b.brief {
			every /= 5
		}
		series, err := b.ramped(ctx, f.players, every)
		if err != nil {
			return err
		}
		at := func(share float64) float64 { return percent(cpuAt(series, int(share*float64(f.players)))) }
		_, rss := series[len(series)-1].Total()
		table.Add(f.name, f.players, at(.25), at(.5), at(1), float64(rss)/(1<<20))
		p := utilisationPlot(fmt.Sprintf("%s  0 to %d players in one chunk, one every %v", f.name, f.players, every), series)
		var players []figure.Point
		for _, m := range series {
			players = append(players, figure.Point{X: m.At, Y: float64(m.Players)})
		}
		p.Lines = append(p.Lines, figure.Line{Name: "players", Points: players, Right: true, Dashed: true})
		p.Y2.Label = "resident memory, MiB; players"
		panels = append(panels, p)
	}
	if err := figure.WriteSVG(b.file("ramp.svg"), panels...); err != nil {
		return err
	}
	return b.publish("ramp", "![CPU while players come](performance/ramp.svg)\n\n"+table.Markdown())
}

// ramped lets players join one by one.
func (b ramp) ramped(ctx context.Context, players int, every time.Duration) (series []measure.Moment, err error) {
	d, o, err := b.startSpreadCrowd(ctx, 1)
	if err != nil {
		return nil, err
	}
	defer d.Kill()
	o.JoinRate = 1 / every.Seconds()
	err = b.play(ctx, o, 1, []measure.Target{d}, func(ctx context.Context, c *crowd.Crowd) error {
		r := measure.Record(ctx, []measure.Target{d}, c, time.Second)
		err := c.Add(ctx, players-1)
		if err == nil {
			err = process.Pause(ctx, 5*time.Second)
		}
		series = r.Stop()
		return err
	})
	return series, err
}

// cpuAt returns the mean CPU share while about so many players were connected.
func cpuAt(series []measure.Moment, players int) float64 {
	sum, n := 0.0, 0.0
	for _, m := range series {
		if m.Players >= players-3 && m.Players <= players+3 {
			cpu, _ := m.Total()
			sum, n = sum+cpu, n+1
		}
	}
	return ratio(sum, n)
}

// manyChunks spreads players out.
type manyChunks struct {
	*bench
	numbers []int // of players
}

func newManyChunks(b *bench) *cobra.Command {
	m := &manyChunks{bench: b}
	c := b.command("many-chunks", "CPU per player with players spread out",
		"Two players in each chunk, over more and more chunks: what one player costs should stay the same.", m.run)
	c.Flags().IntSliceVar(&m.numbers, "players", []int{100, 250, 500, 1000}, "numbers of players")
	return c
}

func (m *manyChunks) run(ctx context.Context) error {
	warm, length := m.times(seconds{15, 15}, seconds{8, 8})
	chunks := func(r crowdRow) int { return (r.wanted + 1) / 2 }
	var rows []crowdRow
	for _, n := range m.numbers {
		row := crowdRow{wanted: n}
		d, o, err := m.startSpreadCrowd(ctx, chunks(row))
		if err != nil {
			return err
		}
		row.Reading, err = m.measureCrowd(ctx, []measure.Target{d}, o, n, warm, length, nil)
		d.Kill()
		if err != nil {
			return err
		}
		rows = append(rows, row)
		logf("%s", row.line("voxeld, spread out"))
	}
	rows = reliable(rows)
	table := tableOf(rows, text("players", crowdRow.players), text("chunks", func(r crowdRow) string { return fmt.Sprint(chunks(r)) }),
		number("CPU, % of a core", crowdRow.cpuPercent), number("per player", crowdRow.cpuEach), number("kB/s to each", crowdRow.kBIn),
		number("frames/s", crowdRow.FrameRate), number("tick p99, ms", crowdRow.tickMS), text("seen p50 / p99, ms", crowdRow.seen),
		number("RSS, MiB", crowdRow.rssMiB))
	return m.publish("many-chunks", table.Markdown())
}
