package main

import (
	"github.com/voxelpopuli/voxeld/test/bench/measure"
	"github.com/voxelpopuli/voxeld/test/testkit/figure"
)

// smooth returns the mean over five moments around each, to smooth out the coarse CPU clock.
func smooth(points []figure.Point) []figure.Point {
	const around = 5
	out := make([]figure.Point, len(points))
	for i, p := range points {
		from, to := max(0, i-around/2), min(len(points), i+around/2+1)
		sum := 0.0
		for _, q := range points[from:to] {
			sum += q.Y
		}
		out[i] = figure.Point{X: p.X, Y: sum / float64(to-from)}
	}
	return out
}

// utilisationPlot plots CPU and memory over time, as figure 4.3 of the dissertation does.
func utilisationPlot(title string, series []measure.Moment) figure.Plot {
	var cpu, rss []figure.Point
	for _, m := range series {
		c, r := m.Total()
		cpu = append(cpu, figure.Point{X: m.At, Y: percent(c)})
		rss = append(rss, figure.Point{X: m.At, Y: float64(r) / (1 << 20)})
	}
	return figure.Plot{
		Title: title, X: figure.Axis{Label: "time, s"}, Y: figure.Axis{Label: "CPU, % of one core"},
		Y2:    figure.Axis{Label: "resident memory, MiB"},
		Lines: []figure.Line{{Name: "CPU", Points: smooth(cpu)}, {Name: "memory", Points: rss, Right: true}},
	}
}

// meanOver returns the mean CPU share and the mean memory of all daemons together, from that time on.
func meanOver(series []measure.Moment, from float64) (cpu, rss float64) {
	n := 0.0
	for _, m := range series {
		if m.At < from {
			continue
		}
		c, r := m.Total()
		cpu, rss, n = cpu+c, rss+float64(r), n+1
	}
	return ratio(cpu, n), ratio(rss, n)
}
