package main

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/voxelpopuli/voxeld/test/testkit/figure"

	"github.com/voxelpopuli/voxeld/research/walkad"
)

// walkadFigure is a figure of the Walkad paper.
type walkadFigure struct {
	name, title, paper string
	data               func(*walkadOptions, context.Context) (figureData, error)
}

var walkadFigures = []walkadFigure{
	{"3a", "Walkad 3(a): hops of local queries, by D_max", "90 % need one or two hops; with D_max = 100 all need one.", (*walkadOptions).figure3a},
	{"3b", "Walkad 3(b): latency by network size and gait", "100–130 ms for walking, running and flying, up to 200 ms for teleporting, 800–1500 ms for the simple approach.", (*walkadOptions).figure3b},
	{"3c", "Walkad 3(c): latency of local queries under load", "the load has no influence; 75 % take less than 200 ms, 1 % up to 1000 ms.", (*walkadOptions).figure3c},
	{"6", "Walkad 6: share of the cells per peer, by network size", "over 256 peers, 90 % of the peers differ by less than 1 % of the cells. The simple approach is even.", (*walkadOptions).figure6},
	{"7", "Walkad 7: share of the cells per peer, by regions", "from ten regions on ever more even; with 100 regions 1 % of the peers have more, 1 % of the world at most.", (*walkadOptions).figure7},
	{"growth", "Hops by network size", "1 hop for local queries, log m for others, log N · log m for the simple approach (§IV-C).", (*walkadOptions).growth},
}

func walkadNames() (names []string) {
	for _, f := range walkadFigures {
		names = append(names, f.name)
	}
	return names
}

// fewLinks is the number of contacts of a neighbour cell with which the figures are run besides the paper's, which is
// R: a k-bucket then has room for more cells.
const fewLinks = 3

// variants are the two numbers of links.
func (o *walkadOptions) variants() []walkad.Config {
	paper, few := o.network, o.network
	paper.Links, few.Links = o.network.R, min(fewLinks, o.network.R)
	return []walkad.Config{paper, few}
}

// nodes returns the network sizes: the powers of two from 16 to 1024, as in the paper, and larger ones.
func (o *walkadOptions) nodes() []int {
	sizes := []int{16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 10_000}
	return slices.DeleteFunc(sizes, func(n int) bool { return n > o.mostNodes })
}

func (o *walkadOptions) figure3a(ctx context.Context) (figureData, error) {
	const most = 6
	var trials []trial
	for _, c := range o.variants() {
		for _, c.MaxObjects = range []int{10, 30, 50, 100} {
			trials = append(trials, o.move("", c, walkad.Gaits()[0].Speed, walkad.Walking))
		}
	}
	outcomes, err := o.run(ctx, trials)
	if err != nil {
		return figureData{}, err
	}
	t := figure.Table{Head: []string{"links", "D_max", "cells a region", "paper", "1 hop, %", "≤ 2 hops, %", "mean", "most"}}
	panels := make([]figure.Plot, 2)
	for i, out := range outcomes {
		paper := ""
		switch out.network.MaxObjects {
		case 10, 30:
			paper = "≤ 2: 90 %"
		case 100:
			paper = "1: 100 %"
		}
		t.Add(fmt.Sprint(out.network.Links), out.network.MaxObjects, fmt.Sprintf("%.0f", out.perRegion), paper,
			fmt.Sprintf("%.2f", out.within(1)), fmt.Sprintf("%.2f", out.within(2)), fmt.Sprintf("%.3f", mean(out.hops)), quantile(out.hops, 1))
		line := figure.Line{Name: fmt.Sprintf("D_max %d", out.network.MaxObjects), Marked: true}
		for hops := range most + 1 {
			line.Points = append(line.Points, figure.Point{X: float64(hops), Y: out.within(hops)})
		}
		p := &panels[i*len(panels)/len(outcomes)]
		p.Title = fmt.Sprintf("Local queries, %d links a neighbour cell", out.network.Links)
		p.X, p.Y = figure.Axis{Label: "hops, at most"}, figure.Axis{Label: "queries, %", Max: 100}
		p.Lines = append(p.Lines, line)
	}
	return figureData{tables: []figure.Table{t}, plots: panels}, nil
}

// bySize runs every gait and approach in networks of each size.
func (o *walkadOptions) bySize(ctx context.Context, c walkad.Config) ([]outcome, error) {
	var trials []trial
	for _, c.Nodes = range o.nodes() {
		trials = append(trials, o.everyMove(c)...)
	}
	return o.run(ctx, trials)
}

// linesBySize returns a line for each name, over the logarithm of the network size.
func linesBySize(outcomes []outcome, value func(outcome) float64) (lines []figure.Line) {
	for _, out := range outcomes {
		i := slices.IndexFunc(lines, func(l figure.Line) bool { return l.Name == out.name })
		if i < 0 {
			i = len(lines)
			lines = append(lines, figure.Line{Name: out.name, Marked: true})
		}
		lines[i].Points = append(lines[i].Points, figure.Point{X: math.Log2(float64(out.network.Nodes)), Y: value(out)})
	}
	return lines
}

func (o *walkadOptions) figure3b(ctx context.Context) (figureData, error) {
	outcomes, err := o.bySize(ctx, o.network)
	if err != nil {
		return figureData{}, err
	}
	papers := []string{"100–130", "100–130", "100–130", "up to 200", "800–1500", ""}
	t := figure.Table{Head: []string{"approach", "peers", "paper, ms", "ms", "75 %", "99 %", "hops", "asked"}}
	for i, out := range outcomes {
		paper := ""
		if out.network.Nodes <= 1024 {
			paper = papers[i%len(papers)]
		}
		t.Add(out.name, out.network.Nodes, paper, mean(out.millis), quantile(out.millis, .75), quantile(out.millis, .99), fmt.Sprintf("%.3f", mean(out.hops)), fmt.Sprintf("%.2f", out.asked))
	}
	all := linesBySize(outcomes, func(out outcome) float64 { return mean(out.millis) })
	x, y := figure.Axis{Label: "log2 of the number of peers"}, figure.Axis{Label: "latency, ms, mean"}
	return figureData{tables: []figure.Table{t}, plots: []figure.Plot{
		{Title: "Walkad", X: x, Y: y, Lines: all[:4]},
		{Title: "Walking and lookups", X: x, Y: y, Lines: []figure.Line{all[0], all[4], all[5]}},
	}}, nil
}

// service is the time for which a question occupies a peer, in milliseconds. The paper's bandwidths are not known.
const service = 1.0

func (o *walkadOptions) figure3c(ctx context.Context) (figureData, error) {
	shares := []int{1, 10, 25, 50, 75, 100}
	var trials []trial
	for _, percent := range shares {
		avatars := max(1, o.network.Nodes*percent/100)
		trials = append(trials, trial{network: o.network, run: func(n *walkad.Network) []walkad.Answer {
			return n.Loaded(walkad.Gaits()[0].Speed, avatars, o.seconds, service)
		}})
	}
	outcomes, err := o.run(ctx, trials)
	if err != nil {
		return figureData{}, err
	}
	t := figure.Table{Head: []string{"avatars, % of the peers", "queries", "5 %, ms", "25 %", "50 %", "75 %", "95 %", "99 %", "most"}}
	percentiles := []float64{.05, .25, .5, .75, .95, .99, 1}
	plot := figure.Plot{Title: "Latency of local queries", X: figure.Axis{Label: "peers whose avatar walks, %"}, Y: figure.Axis{Label: "ms"}}
	for _, p := range percentiles {
		plot.Lines = append(plot.Lines, figure.Line{Name: fmt.Sprintf("%g %%", 100*p), Marked: true})
	}
	t.Add("paper", "", "", "", "", "under 200", "", "", "1000")
	for i, out := range outcomes {
		row := []any{fmt.Sprint(shares[i]), len(out.millis)}
		for l, p := range percentiles {
			row = append(row, quantile(out.millis, p))
			plot.Lines[l].Points = append(plot.Lines[l].Points, figure.Point{X: float64(shares[i]), Y: quantile(out.millis, p)})
		}
		t.Add(row...)
	}
	return figureData{tables: []figure.Table{t}, plots: []figure.Plot{plot}}, nil
}

func (o *walkadOptions) figure6(ctx context.Context) (figureData, error) {
	var networks []walkad.Config
	for _, nodes := range o.nodes() {
		c := o.network
		c.Nodes = nodes
		networks = append(networks, c)
	}
	return o.loads(ctx, networks, "log2 of the number of peers", func(c walkad.Config) float64 { return math.Log2(float64(c.Nodes)) })
}

func (o *walkadOptions) figure7(ctx context.Context) (figureData, error) {
	var networks []walkad.Config
	for _, regions := range []int{1, 2, 5, 10, 20, 50, 100} {
		if c := o.network; regions <= o.mostRs {
			c.Regions = regions
			networks = append(networks, c)
		}
	}
	return o.loads(ctx, networks, "regions", func(c walkad.Config) float64 { return float64(c.Regions) })
}

// loads returns the percentiles over the peers of their share of the cells, for Walkad and for the simple approach.
func (o *walkadOptions) loads(ctx context.Context, networks []walkad.Config, axis string, x func(walkad.Config) float64) (figureData, error) {
	type load struct{ walking, hashed []float64 }
	results, err := runAll(ctx, networks, o.seeds, func(c walkad.Config, seed uint64) (load, error) {
		c.Seed += seed
		n := walkad.New(c)
		return load{n.Load(walkad.Walking), n.Load(walkad.SimpleApproach)}, nil
	})
	if err != nil {
		return figureData{}, err
	}
	t := figure.Table{Head: []string{"peers", "regions", "even, %", "50 %", "90 %", "99 %", "most", "simple, 50 %", "90 %", "99 %", "most"}}
	percentiles := []float64{.5, .9, .99, 1}
	panels := []figure.Plot{{Title: "Walkad"}, {Title: "Simple approach"}}
	for i := range panels {
		panels[i].X, panels[i].Y = figure.Axis{Label: axis}, figure.Axis{Label: "share of all cells, %"}
		for _, p := range percentiles {
			panels[i].Lines = append(panels[i].Lines, figure.Line{Name: fmt.Sprintf("%g %% of the peers", 100*p), Marked: true})
		}
	}
	for i, c := range networks {
		var both [2][]float64
		for _, r := range results[i] {
			both[0], both[1] = append(both[0], r.walking...), append(both[1], r.hashed...)
		}
		row := []any{fmt.Sprint(c.Nodes), c.Regions, fmt.Sprintf("%.3f", 100/float64(c.Nodes))}
		for n, shares := range both {
			slices.Sort(shares)
			for l, p := range percentiles {
				v := quantile(shares, p)
				row = append(row, fmt.Sprintf("%.3f", v))
				panels[n].Lines[l].Points = append(panels[n].Lines[l].Points, figure.Point{X: x(c), Y: v})
			}
		}
		t.Add(row...)
	}
	return figureData{tables: []figure.Table{t}, plots: panels}, nil
}

func (o *walkadOptions) growth(ctx context.Context) (figureData, error) {
	t := figure.Table{Head: append([]string{"approach", "links", "peers", "log2 m"}, outcomeHead...)}
	var panels []figure.Plot
	for _, c := range o.variants() {
		outcomes, err := o.bySize(ctx, c)
		if err != nil {
			return figureData{}, err
		}
		for _, out := range outcomes {
			t.Add(append([]any{out.name, out.network.Links, out.network.Nodes, math.Log2(out.perRegion)}, out.cells()...)...)
		}
		lines := linesBySize(outcomes, func(out outcome) float64 { return mean(out.hops) })
		panels = append(panels, figure.Plot{
			Title: fmt.Sprintf("%d links a neighbour cell", c.Links), X: figure.Axis{Label: "log2 of the number of peers"}, Y: figure.Axis{Label: "hops, mean"},
			Lines: []figure.Line{lines[0], lines[3], lines[4], lines[5]},
		})
	}
	return figureData{tables: []figure.Table{t}, plots: panels}, nil
}
