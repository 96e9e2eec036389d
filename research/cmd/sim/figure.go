package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/voxelpopuli/voxeld/test/testkit/figure"

	"github.com/voxelpopuli/voxeld/research/sim"
)

// simFigure runs a figure, prints it as a table, and writes its CSV and its plot if --out is set.
func simFigure(ctx context.Context, w io.Writer, overlayName string, f sim.Figure, o simOptions) error {
	results, err := runAll(ctx, f.Trials, o.seeds, func(t sim.Trial, seed uint64) (*sim.Result, error) {
		return sim.Run(t.Config(o.seed + seed))
	})
	if err != nil {
		return err
	}
	table := figureTable(f, results)
	return o.write(w, overlayName+"-"+f.Name, f.Title, table.Markdown()+"\n"+f.Notes, figureData{[]figure.Table{table}, figurePlots(f, results)})
}

// over returns the mean of a measure over the seeds, from a round on, and half the span between the seeds.
func over(seeds []*sim.Result, from int, of func(sim.Round) float64) (mean, spread float64) {
	low, high := math.Inf(1), math.Inf(-1)
	for _, r := range seeds {
		v := r.Mean(min(from, (len(r.Rounds)+1)/2), of)
		mean += v / float64(len(seeds))
		low, high = min(low, v), max(high, v)
	}
	return mean, (high - low) / 2
}

func figureTable(f sim.Figure, results [][]*sim.Result) figure.Table {
	t := figure.Table{Head: []string{"run", f.X, "paper", "settled", "±", "all rounds"}}
	if f.ByRound {
		t.Head[1] = "players"
	}
	if f.Second != nil {
		t.Head = append(t.Head, f.SecondName)
	}
	t.Head = append(t.Head, "in vision", "known, %")
	for i, trial := range f.Trials {
		mean, spread := over(results[i], sim.SettledFrom, f.Measure)
		whole, _ := over(results[i], 1, f.Measure)
		row := []any{trial.Series, fmt.Sprintf("%g", trial.X), trial.Paper, value(mean), value(spread), value(whole)}
		if f.Second != nil {
			second, _ := over(results[i], sim.SettledFrom, f.Second)
			row = append(row, value(second))
		}
		neighbors, _ := over(results[i], sim.SettledFrom, func(r sim.Round) float64 { return r.Neighbors })
		known, _ := over(results[i], sim.SettledFrom, func(r sim.Round) float64 { return 100 * r.Known })
		t.Add(append(row, fmt.Sprintf("%.1f", neighbors), fmt.Sprintf("%.2f", known))...)
	}
	return t
}

// value formats PQ with four decimals, and bytes with none.
func value(v float64) string {
	if v < 100 {
		return fmt.Sprintf("%.4f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// at returns the mean of a measure in a round.
func at(seeds []*sim.Result, round int, of func(sim.Round) float64) (mean float64) {
	for _, r := range seeds {
		mean += of(r.Rounds[round]) / float64(len(seeds))
	}
	return mean
}

// figurePlots returns one panel for up to four series.
func figurePlots(f sim.Figure, results [][]*sim.Result) []figure.Plot {
	var lines []figure.Line
	for i, trial := range f.Trials {
		if f.ByRound {
			l := figure.Line{Name: trial.Series}
			second := figure.Line{Name: f.SecondName, Dashed: true}
			for round := range results[i][0].Rounds {
				l.Points = append(l.Points, figure.Point{X: float64(round + 1), Y: at(results[i], round, f.Measure)})
				if f.Second != nil {
					second.Points = append(second.Points, figure.Point{X: float64(round + 1), Y: at(results[i], round, f.Second)})
				}
			}
			lines = append(lines, l)
			if f.Second != nil {
				lines = append(lines, second)
			}
			continue
		}
		j := slices.IndexFunc(lines, func(l figure.Line) bool { return l.Name == trial.Series })
		if j < 0 {
			j = len(lines)
			lines = append(lines, figure.Line{Name: trial.Series, Marked: true})
		}
		mean, _ := over(results[i], sim.SettledFrom, f.Measure)
		lines[j].Points = append(lines[j].Points, figure.Point{X: trial.X, Y: mean})
	}
	var panels []figure.Plot
	for part := range slices.Chunk(lines, 2) {
		panels = append(panels, figure.Plot{Title: f.Title, X: figure.Axis{Label: f.X}, Y: figure.Axis{Label: f.Y}, Lines: part})
	}
	return panels
}
