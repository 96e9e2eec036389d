package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/voxelpopuli/voxeld/testkit/figure"
)

// reportOneChunk writes the figure.
func (b *bench) reportOneChunk(rows, floors []crowdRow, most, floorMost int) error {
	byPlayers := func(a, b crowdRow) int { return a.wanted - b.wanted }
	slices.SortStableFunc(rows, byPlayers)
	slices.SortStableFunc(floors, byPlayers)
	table := figure.Table{Head: []string{
		"players", "holds", "CPU, % of a core", "per player", "kB/s to each", "kB/s from each", "frames/s", "tick p99, ms",
		"seen p50 / p99, ms", "position error ≤ 16 blocks, mean / p99", "RSS, MiB", "players' core, %",
	}}
	var csv [][]float64
	for _, r := range rows {
		if r.failed != nil {
			table.Add(fmt.Sprint(r.wanted), "no: "+r.failed.Error(), "", "", "", "", "", "", "", "", "", "")
			continue
		}
		p := r.Seen
		in, out := r.PerPlayer(p.BytesIn), r.PerPlayer(p.BytesOut)
		table.Add(fmt.Sprint(r.wanted), holds(r), percent(r.TotalCPU()), percent(r.TotalCPU())/float64(r.Players), in/1000, out/1000,
			r.FrameRate(), 1000*r.Tick99(), pair(1000*p.Delay[0].Quantile(.5), 1000*p.Delay[0].Quantile(.99)),
			pair(p.Error[0].Mean(), p.Error[0].Quantile(.99)), float64(r.RSS[0])/(1<<20), percent(r.BotCPU))
		csv = append(csv, []float64{
			float64(r.wanted), percent(r.TotalCPU()), in, out, r.FrameRate(), 1000 * r.Tick99(),
			1000 * p.Delay[0].Quantile(.5), 1000 * p.Delay[0].Quantile(.99), p.Error[0].Mean(), p.Error[0].Quantile(.99),
			float64(r.RSS[0]), percent(r.BotCPU), percent(r.Others), zeroOrOne(r.missed() == ""),
		})
	}
	head := []string{
		"players", "cpu_percent", "bytes_in_per_player_s", "bytes_out_per_player_s", "frames_per_s", "tick_p99_ms",
		"seen_p50_ms", "seen_p99_ms", "error_16_mean", "error_16_p99", "rss_bytes", "bots_cpu_percent", "others_cpu_percent", "holds",
	}
	if err := figure.WriteCSV(b.file("one-chunk.csv"), head, csv); err != nil {
		return err
	}
	if err := b.drawOneChunk(rows, floors); err != nil {
		return err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "![players in one chunk](performance/one-chunk.svg)\n\n%s\n", table.Markdown())
	text.WriteString(caveats(rows))
	fmt.Fprintf(&text, "The largest number of players that met the rule: **%d**.\n", most)
	if len(floors) == 0 {
		return b.publish("one-chunk", text.String())
	}
	floorTable := figure.Table{Head: []string{"players of the floor program", "holds", "CPU, % of a core", "kB/s to each", "frames/s", "tick p99, ms", "players' core, %"}}
	for _, r := range floors {
		if r.failed != nil {
			floorTable.Add(fmt.Sprint(r.wanted), "no: "+r.failed.Error(), "", "", "", "", "")
			continue
		}
		floorTable.Add(fmt.Sprint(r.wanted), holds(r), percent(r.TotalCPU()), r.PerPlayer(r.Seen.BytesIn)/1000, r.FrameRate(), 1000*r.Tick99(), percent(r.BotCPU))
	}
	fmt.Fprintf(&text, "\n%s\n%sThe floor program met it with **%d**: voxeld supports **%s** of that.\n",
		floorTable.Markdown(), caveats(floors), floorMost, figure.Number(ratio(float64(most), float64(floorMost))))
	return b.publish("one-chunk", text.String())
}

func (b *bench) drawOneChunk(rows, floors []crowdRow) error {
	var cpu, floorCPU, in, tick, seen []figure.Point
	for _, r := range rows {
		if r.failed != nil {
			continue
		}
		n := float64(r.wanted)
		cpu = append(cpu, figure.Point{X: n, Y: percent(r.TotalCPU())})
		in = append(in, figure.Point{X: n, Y: r.PerPlayer(r.Seen.BytesIn) / 1000})
		tick = append(tick, figure.Point{X: n, Y: 1000 * r.Tick99()})
		seen = append(seen, figure.Point{X: n, Y: 1000 * r.Seen.Delay[0].Quantile(.99)})
	}
	for _, r := range floors {
		if r.failed == nil {
			floorCPU = append(floorCPU, figure.Point{X: float64(r.wanted), Y: percent(r.TotalCPU())})
		}
	}
	lines := []figure.Line{{Name: "voxeld", Points: cpu, Marked: true}}
	if len(floorCPU) > 0 {
		lines = append(lines, figure.Line{Name: "floor program", Points: floorCPU, Marked: true, Dashed: true})
	}
	lines = append(lines, figure.Line{Name: "bytes to each player", Points: in, Marked: true, Right: true})
	return figure.WriteSVG(b.file("one-chunk.svg"),
		figure.Plot{
			Title: "CPU of the daemon, all players in one chunk", X: figure.Axis{Label: "players"},
			Y: figure.Axis{Label: "CPU, % of one core", Max: 100}, Y2: figure.Axis{Label: "kB/s to each player"}, Lines: lines,
		},
		figure.Plot{
			Title: "Ticks and delays, all players in one chunk", X: figure.Axis{Label: "players"}, Y: figure.Axis{Label: "ms"},
			Lines: []figure.Line{
				{Name: "tick, p99", Points: tick, Marked: true},
				{Name: "move seen by others within 16 blocks, p99", Points: seen, Marked: true},
			},
		})
}

func holds(r crowdRow) string {
	if why := r.missed(); why != "" {
		return "no: " + why
	}
	return "yes"
}

func pair(a, b float64) string { return figure.Number(a) + " / " + figure.Number(b) }

func zeroOrOne(v bool) float64 {
	if v {
		return 1
	}
	return 0
}

// caveats lists the measurements that may be unreliable.
func caveats(rows []crowdRow) string {
	var b strings.Builder
	for _, r := range rows {
		if r.failed != nil {
			continue
		}
		if why := r.Caveat(); why != "" {
			fmt.Fprintf(&b, "- With %d players **unreliable**: %s.\n", r.wanted, why)
		}
	}
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
	return b.String()
}
