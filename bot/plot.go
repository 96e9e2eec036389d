package bot

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// The picture's frame, in pixels.
const (
	plotWidth, plotHeight         = 900, 420
	plotLeft, plotRight           = 70, 60
	plotTop, plotBottom   float64 = 50, 50
)

type curve struct {
	name, color string
	value       func(Second) (v float64, ok bool)
}

// WriteSVG draws the run as a picture: latencies (left axis, milliseconds) and players (right axis, grey) over time.
func (r Report) WriteSVG(w io.Writer) error {
	latency := func(of func(Second) Latency, at func(Latency) Millis) func(Second) (float64, bool) {
		return func(s Second) (float64, bool) { return float64(at(of(s))), of(s).Count > 0 }
	}
	ack, seen := func(s Second) Latency { return s.Ack }, func(s Second) Latency { return s.Seen }
	p50, p99 := func(l Latency) Millis { return l.P50 }, func(l Latency) Millis { return l.P99 }
	left := []curve{
		{"edit→ack p50", "#1b7837", latency(ack, p50)},
		{"edit→ack p99", "#7fbf7b", latency(ack, p99)},
		{"move→seen p50", "#2166ac", latency(seen, p50)},
		{"move→seen p99", "#67a9cf", latency(seen, p99)},
	}
	right := []curve{{"players", "#999999", func(s Second) (float64, bool) { return float64(s.Players), true }}}

	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n",
		plotWidth, plotHeight)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<text x="%d" y="20" font-size="14">%s</text>`+"\n", plotLeft,
		html.EscapeString(fmt.Sprintf("%s, %s protocol: %d players at %s", r.Mode, r.Protocol, r.Players, r.Target)))

	end := 1.0
	for _, s := range r.Series {
		end = max(end, float64(s.At))
	}
	x := func(t float64) float64 { return plotLeft + t/end*(plotWidth-plotLeft-plotRight) }
	scaleLeft, scaleRight := niceMax(left, r.Series), niceMax(right, r.Series)
	y := func(v, scale float64) float64 {
		return plotHeight - plotBottom - v/scale*(plotHeight-plotTop-plotBottom)
	}
	for i := 0; i <= 5; i++ {
		f := float64(i) / 5
		fmt.Fprintf(&b, `<line x1="%d" x2="%d" y1="%.1f" y2="%[3]f" stroke="#dddddd"/>`+"\n",
			plotLeft, plotWidth-plotRight, y(f, 1))
		fmt.Fprintf(&b, `<text x="%d" y="%.1f" text-anchor="end">%g ms</text>`+"\n", plotLeft-6, y(f, 1)+4, f*scaleLeft)
		fmt.Fprintf(&b, `<text x="%d" y="%.1f" fill="#777777">%g</text>`+"\n", plotWidth-plotRight+6, y(f, 1)+4, f*scaleRight)
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="middle">%.0f s</text>`+"\n", x(f*end), plotHeight-plotBottom+18, f*end)
	}
	draw := func(curves []curve, scale float64) {
		for _, c := range curves {
			var points strings.Builder
			for _, s := range r.Series {
				if v, ok := c.value(s); ok {
					fmt.Fprintf(&points, "%.1f,%.1f ", x(float64(s.At)), y(v, scale))
				}
			}
			if points.Len() > 0 {
				fmt.Fprintf(&b, `<polyline fill="none" stroke="%s" stroke-width="1.5" points="%s"/>`+"\n",
					c.color, strings.TrimSpace(points.String()))
			}
		}
	}
	draw(right, scaleRight)
	draw(left, scaleLeft)
	for i, c := range append(left, right...) {
		fmt.Fprintf(&b, `<text x="%d" y="38" fill="%s">%s</text>`+"\n", plotLeft+i*130, c.color, c.name)
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// niceMax returns the smallest of 1, 2, 5, 10, 20, … that no point of the curves exceeds.
func niceMax(curves []curve, series []Second) float64 {
	top := 1.0
	for _, c := range curves {
		for _, s := range series {
			if v, ok := c.value(s); ok {
				top = max(top, v)
			}
		}
	}
	base := math.Pow(10, math.Floor(math.Log10(top)))
	for _, m := range []float64{1, 2, 5} {
		if m*base >= top {
			return m * base
		}
	}
	return 10 * base
}
