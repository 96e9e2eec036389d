package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/voxelpopuli/voxeld/bench/crowd"
	"github.com/voxelpopuli/voxeld/bench/measure"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/testkit/daemon"
	"github.com/voxelpopuli/voxeld/testkit/figure"
)

// square returns n chunks in a square around the middle.
func square(middle grid.ChunkPos, n int) (all []grid.ChunkPos, radius int) {
	side := 1
	for side*side < n {
		side++
	}
	for i := range n {
		all = append(all, grid.ChunkPos{X: middle.X + int32(i%side-side/2), Z: middle.Z + int32(i/side-side/2)})
	}
	return all, side/2 + 1
}

// startSpreadCrowd starts one daemon, and returns the options of a crowd that is spread evenly over so many chunks of it.
func (b *bench) startSpreadCrowd(ctx context.Context, chunks int) (*daemon.Daemon, crowd.Options, error) {
	daemons, err := b.daemons(ctx, 1)
	if err != nil {
		return nil, crowd.Options{}, err
	}
	d := daemons[0]
	heights := crowd.NewHeightMap()
	_, radius := square(grid.ChunkPos{}, chunks)
	spawn, err := heights.Fetch(ctx, d.Game, radius)
	if err != nil {
		d.Kill()
		return nil, crowd.Options{}, err
	}
	homes, _ := square(spawn, chunks)
	return d, crowd.Options{Targets: []string{d.Game}, Heights: heights, Homes: homes}, nil
}

// newUtilisation returns the command of figure 4.3.
func newUtilisation(b *bench) *cobra.Command {
	return b.command("utilisation", "CPU and memory over time (figures 4.3a to d)",
		"The dissertation's four local simulations on one node: 50 players in 1, 50 and 10 chunks, and 100 players in 10.\n"+
			"Its runs lasted an hour each, as with --duration 1h.",
		b.utilisation)
}

func (b *bench) utilisation(ctx context.Context) error {
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
		var series []moment
		err = b.play(ctx, o, f.players, []measure.Target{d}, func(ctx context.Context, c *crowd.Crowd) error {
			r := record(ctx, []measure.Target{d}, c, time.Second, nil)
			err := measure.Pause(ctx, length)
			series, _ = r.stop() // its error is that of pause
			return err
		})
		d.Kill()
		if err != nil {
			return err
		}
		cpu, rss := meanOver(series, length.Seconds()/4)
		logf("%s: %d players in %d chunks: %.1f %% of a core, %.0f MiB", f.name, f.players, f.chunks, percent(cpu), rss/(1<<20))
		table.Add(f.name, f.players, f.chunks, percent(cpu), percent(cpu)/float64(f.players), rss/(1<<20), f.paper)
		panels = append(panels, utilisation(fmt.Sprintf("%s  %d players, %d chunks", f.name, f.players, f.chunks), series))
		if err := b.writeSeries("utilisation-"+strings.ReplaceAll(f.name, ".", "-")+".csv", series); err != nil {
			return err
		}
	}
	if err := figure.WriteSVG(b.file("utilisation.svg"), panels...); err != nil {
		return err
	}
	return b.publish("utilisation", fmt.Sprintf(
		"![CPU and memory over time](performance/utilisation.svg)\n\nMeans over the last three quarters of %v:\n\n%s", length, table.Markdown()))
}

// newRamp returns the command of figures 4.4 and 4.5.
func newRamp(b *bench) *cobra.Command {
	var quick bool
	c := b.command("ramp", "CPU while players join one by one (figures 4.4 and 4.5)",
		"A new player in the same chunk every two seconds, up to 50; and every second, up to 100. VoxelPopuli's CPU grew\n"+
			"to 100 % at about 70 players and stayed there, while its memory began to grow.",
		func(ctx context.Context) error { return b.ramp(ctx, quick) })
	c.Flags().BoolVar(&quick, "quick", false, "let players join five times as fast")
	return c
}

func (b *bench) ramp(ctx context.Context, quick bool) error {
	quick = quick || b.brief
	var panels []figure.Plot
	table := figure.Table{Head: []string{"figure", "players", "CPU at a quarter, % of a core", "at a half", "at all", "RSS at all, MiB"}}
	for _, f := range []struct {
		name    string
		players int
		every   time.Duration
	}{{"4.4", 50, 2 * time.Second}, {"4.5", 100, time.Second}} {
		every := f.every
		if quick {
			every /= 5
		}
		series, err := b.ramped(ctx, f.players, every)
		if err != nil {
			return err
		}
		at := func(share float64) float64 { return percent(cpuAt(series, int(share*float64(f.players)))) }
		_, rss := series[len(series)-1].total()
		table.Add(f.name, f.players, at(.25), at(.5), at(1), float64(rss)/(1<<20))
		p := utilisation(fmt.Sprintf("%s  0 to %d players in one chunk, one every %v", f.name, f.players, every), series)
		var players []figure.Point
		for _, m := range series {
			players = append(players, figure.Point{X: m.at, Y: float64(m.players)})
		}
		p.Lines = append(p.Lines, figure.Line{Name: "players", Points: players, Right: true, Dashed: true})
		p.Y2.Label = "resident memory, MiB; players"
		panels = append(panels, p)
		if err := b.writeSeries("ramp-"+strings.ReplaceAll(f.name, ".", "-")+".csv", series); err != nil {
			return err
		}
	}
	if err := figure.WriteSVG(b.file("ramp.svg"), panels...); err != nil {
		return err
	}
	return b.publish("ramp", "![CPU while players come](performance/ramp.svg)\n\n"+table.Markdown())
}

// ramped lets players join one by one.
func (b *bench) ramped(ctx context.Context, players int, every time.Duration) (series []moment, err error) {
	d, o, err := b.startSpreadCrowd(ctx, 1)
	if err != nil {
		return nil, err
	}
	defer d.Kill()
	o.JoinRate = 1 / every.Seconds()
	err = b.play(ctx, o, 1, []measure.Target{d}, func(ctx context.Context, c *crowd.Crowd) error {
		r := record(ctx, []measure.Target{d}, c, time.Second, nil)
		err := c.Add(ctx, players-1)
		if err == nil {
			err = measure.Pause(ctx, 5*time.Second)
		}
		series, _ = r.stop() // its error is that of pause
		return err
	})
	return series, err
}

// cpuAt returns the mean CPU share while about so many players were connected.
func cpuAt(series []moment, players int) float64 {
	sum, n := 0.0, 0.0
	for _, m := range series {
		if m.players >= players-3 && m.players <= players+3 {
			cpu, _ := m.total()
			sum, n = sum+cpu, n+1
		}
	}
	return ratio(sum, n)
}

// newManyChunks returns the command that spreads players out.
func newManyChunks(b *bench) *cobra.Command {
	players := []int{100, 250, 500, 1000}
	c := b.command("many-chunks", "CPU per player with players spread out",
		"Two players in each chunk, over more and more chunks: what one player costs should stay the same.",
		func(ctx context.Context) error { return b.manyChunks(ctx, players) })
	c.Flags().IntSliceVar(&players, "players", players, "numbers of players")
	return c
}

func (b *bench) manyChunks(ctx context.Context, players []int) error {
	warm, length := b.times(seconds{15, 15}, seconds{8, 8})
	table := figure.Table{Head: []string{"players", "chunks", "CPU, % of a core", "per player", "kB/s to each", "frames/s", "tick p99, ms", "seen p50 / p99, ms", "RSS, MiB"}}
	var csv [][]float64
	var each []figure.Point
	var remarks strings.Builder
	for _, n := range players {
		d, o, err := b.startSpreadCrowd(ctx, (n+1)/2)
		if err != nil {
			return err
		}
		r, err := b.measureCrowd(ctx, []measure.Target{d}, o, n, warm, length, nil)
		d.Kill()
		if err != nil {
			return err
		}
		in, per := r.PerPlayer(r.Seen.BytesIn), percent(r.TotalCPU())/float64(r.Players)
		table.Add(fmt.Sprint(n), (n+1)/2, percent(r.TotalCPU()), per, in/1000, r.FrameRate(), 1000*r.Tick99(),
			pair(1000*r.Seen.Delay[0].Quantile(.5), 1000*r.Seen.Delay[0].Quantile(.99)), float64(r.RSS[0])/(1<<20))
		csv = append(csv, []float64{float64(n), float64((n + 1) / 2), percent(r.TotalCPU()), per, in, r.FrameRate(), 1000 * r.Tick99(), float64(r.RSS[0])})
		each = append(each, figure.Point{X: float64(n), Y: per})
		remarks.WriteString(caveats([]crowdRow{{Reading: r, wanted: n}}))
		logf("%s", crowdRow{Reading: r, wanted: n}.line("voxeld, spread out"))
	}
	if err := figure.WriteCSV(b.file("many-chunks.csv"), []string{
		"players", "chunks", "cpu_percent", "cpu_percent_per_player", "bytes_in_per_player_s", "frames_per_s", "tick_p99_ms", "rss_bytes",
	}, csv); err != nil {
		return err
	}
	if err := figure.WriteSVG(b.file("many-chunks.svg"), figure.Plot{
		Title: "CPU per player, two players in each chunk", X: figure.Axis{Label: "players"}, Y: figure.Axis{Label: "CPU per player, % of one core"},
		Lines: []figure.Line{{Name: "voxeld", Points: each, Marked: true}},
	}); err != nil {
		return err
	}
	return b.publish("many-chunks", "![CPU per player](performance/many-chunks.svg)\n\n"+table.Markdown()+"\n"+remarks.String())
}
