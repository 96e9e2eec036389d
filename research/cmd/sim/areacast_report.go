package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/voxelpopuli/voxeld/test/testkit/figure"

	"github.com/voxelpopuli/voxeld/research/sim"
)

// middleOf returns the median over seeds, which a single failed run does not distort.
func middleOf(of []*sim.Result, measure func(*sim.Result) float64) float64 {
	values := make([]float64, len(of))
	for i, r := range of {
		values[i] = measure(r)
	}
	slices.Sort(values)
	return (values[(len(of)-1)/2] + values[len(of)/2]) / 2
}

// meanOf returns the mean over seeds.
func meanOf(of []*sim.Result, measure func(*sim.Result) float64) float64 {
	sum := 0.0
	for _, r := range of {
		sum += measure(r)
	}
	return sum / float64(len(of))
}

func lastPQ2(r *sim.Result) float64 { return r.PQ2(len(r.Rounds)) }

func bytesOut(r *sim.Result) float64 {
	return r.Mean(1, func(m sim.Round) float64 { return m.Out })
}

// most returns the maximum of a measure over all rounds of all runs.
func most(of []*sim.Result, measure func(sim.Round) float64) float64 {
	top := 0.0
	for _, r := range of {
		for _, m := range r.Rounds {
			top = max(top, measure(m))
		}
	}
	return top
}

// areacastTable returns a figure's table.
func areacastTable(f sim.AreacastFigure, results [][]*sim.Result) figure.Table {
	t := figure.Table{Head: []string{"run", "paper", "here", "here/paper", "all runs", "sent, B", "sent, most", "got, most KiB", "players in sight"}}
	if f.Peaks {
		t.Head = []string{"run", "peak, mean over rounds", "all runs", "highest peak"}
	}
	for i, c := range f.Cases {
		of := results[i]
		measure := lastPQ2
		if f.Peaks {
			measure = meanPeak
		}
		low, high := math.Inf(1), math.Inf(-1)
		for _, r := range of {
			low, high = min(low, measure(r)), max(high, measure(r))
		}
		middle, span := middleOf(of, measure), fmt.Sprintf("%.3f–%.3f", low, high)
		if f.Peaks {
			t.Add(c.Name, fmt.Sprintf("%.2f", middle), fmt.Sprintf("%.2f–%.2f", low, high), fmt.Sprintf("%.1f", most(of, func(m sim.Round) float64 { return m.Most })))
			continue
		}
		paper, ratio := "", ""
		if i < len(f.Paper) && f.Paper[i] > 0 {
			paper, ratio = fmt.Sprintf("%.3f", f.Paper[i]), fmt.Sprintf("%.3f", middle/f.Paper[i])
		}
		t.Add(c.Name, paper, fmt.Sprintf("%.3f", middle), ratio, span,
			fmt.Sprintf("%.0f", meanOf(of, bytesOut)), fmt.Sprintf("%.0f", most(of, func(m sim.Round) float64 { return float64(m.MostOut) })),
			fmt.Sprintf("%.1f", most(of, func(m sim.Round) float64 { return float64(m.MostIn) })/1024),
			fmt.Sprintf("%.1f", meanOf(of, func(r *sim.Result) float64 { return r.Mean(1, func(m sim.Round) float64 { return m.Neighbors }) })))
	}
	return t
}

// meanPeak returns the mean over the rounds of the worst PQ(p, r) of any player.
func meanPeak(r *sim.Result) float64 {
	return r.Mean(1, func(m sim.Round) float64 { return m.Most })
}

// areacastData returns a figure's table and its curves, as means over the seeds: PQ2 by round, or the peaks.
func areacastData(f sim.AreacastFigure, results [][]*sim.Result) figureData {
	plot := figure.Plot{Title: f.Heading(), X: figure.Axis{Label: "round"}, Y: figure.Axis{Label: "PQ2 (a direct update is of age 2)"}}
	if f.Peaks {
		plot.Y.Label = "most PQ of a player"
	}
	for i, c := range f.Cases {
		line := figure.Line{Name: c.Name}
		for round, v := range curve(f, results[i]) {
			line.Points = append(line.Points, figure.Point{X: float64(round + 1), Y: v})
		}
		plot.Lines = append(plot.Lines, line)
	}
	var panels []figure.Plot // of lines that fit into one legend and can be distinguished
	for lines := range slices.Chunk(plot.Lines, 5) {
		part := plot
		part.Lines = lines
		panels = append(panels, part)
	}
	return figureData{[]figure.Table{areacastTable(f, results)}, panels}
}

// curve returns a figure's values for one case, by round.
func curve(f sim.AreacastFigure, of []*sim.Result) []float64 {
	values := make([]float64, len(of[0].Rounds))
	for _, r := range of {
		sum := 0.0
		for i, m := range r.Rounds {
			v := m.Most
			if !f.Peaks {
				sum += m.PQ1
				v = sum / float64(i+1)
			}
			values[i] += v / float64(len(of))
		}
	}
	return values
}
