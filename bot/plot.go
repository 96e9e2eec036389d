package bot

import (
	"fmt"
	"io"
	"math"

	"github.com/voxelpopuli/voxeld/testkit/figure"
)

// WriteSVG draws the run as a picture: latencies (left axis, milliseconds) and players (right axis) over time.
func (r Report) WriteSVG(w io.Writer) error {
	latency := func(name string, of func(Second) Latency, at func(Latency) Millis) figure.Line {
		return r.line(name, func(s Second) float64 {
			if of(s).Count == 0 {
				return math.NaN()
			}
			return float64(at(of(s)))
		})
	}
	ack, seen := func(s Second) Latency { return s.Ack }, func(s Second) Latency { return s.Seen }
	p50, p99 := func(l Latency) Millis { return l.P50 }, func(l Latency) Millis { return l.P99 }
	players := r.line("players", func(s Second) float64 { return float64(s.Players) })
	players.Right, players.Dashed = true, true
	return figure.Draw(w, figure.Plot{
		Title: fmt.Sprintf("%s, %s protocol: %d players at %s", r.Mode, r.Protocol, r.Players, r.Target),
		X:     figure.Axis{Label: "time, s"}, Y: figure.Axis{Label: "latency, ms"}, Y2: figure.Axis{Label: "players"},
		Lines: []figure.Line{
			latency("edit→ack p50", ack, p50), latency("edit→ack p99", ack, p99),
			latency("move→seen p50", seen, p50), latency("move→seen p99", seen, p99), players,
		},
	})
}

// line returns the line of a value over the seconds of the run.
func (r Report) line(name string, value func(Second) float64) figure.Line {
	l := figure.Line{Name: name}
	for _, s := range r.Series {
		l.Points = append(l.Points, figure.Point{X: float64(s.At), Y: value(s)})
	}
	return l
}
