package figure

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// Point is one point of a line.
type Point struct{ X, Y float64 }

// Line is one line of a plot.
type Line struct {
	Name   string
	Points []Point
	Right  bool // measured on the right axis
	Dashed bool
	Marked bool // a dot at each point
}

// Axis is one axis of a plot. It begins at 0.
type Axis struct {
	Label string  // with its unit
	Max   float64 // at least so far; 0: up to the largest point
}

// Plot is one panel: lines over a common X.
type Plot struct {
	Title string
	X     Axis
	Y     Axis
	Y2    Axis // of the lines with Right set; without a label there is none
	Lines []Line
}

// A panel, in pixels.
const (
	panelWidth, panelHeight = 640, 360
	padLeft, padRight       = 64.0, 64.0
	padTop, padBottom       = 62.0, 48.0
)

// Colours that are distinguishable with colour blindness (Okabe and Ito).
var colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555"}

// WriteSVG draws panels into a file.
func WriteSVG(path string, panels ...Plot) error {
	return writeFile(path, func(w io.Writer) error { return Draw(w, panels...) })
}

// Draw draws panels as an SVG, two in a row if there are more than one.
func Draw(w io.Writer, panels ...Plot) error {
	columns := min(2, len(panels))
	rows := (len(panels) + columns - 1) / columns
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" font-size="12" fill="#222">`+"\n",
		columns*panelWidth, rows*panelHeight)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", columns*panelWidth, rows*panelHeight)
	for i, p := range panels {
		fmt.Fprintf(&b, `<g transform="translate(%d %d)">`+"\n", i%columns*panelWidth, i/columns*panelHeight)
		p.draw(&b)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// scale maps values from 0 to most to pixels.
type scale struct{ most, step, from, to float64 }

func (s scale) at(v float64) float64 { return s.from + v/s.most*(s.to-s.from) }

// scaleOf returns a scale that covers all values and ends at a round one.
func scaleOf(most, from, to float64) scale {
	if most <= 0 || math.IsNaN(most) || math.IsInf(most, 0) {
		most = 1
	}
	step := math.Pow(10, math.Floor(math.Log10(most)))
	for _, f := range []float64{.2, .25, .5, 1, 2} {
		if most/(step*f) <= 6 {
			step *= f
			break
		}
	}
	return scale{most: math.Ceil(most/step-1e-9) * step, step: step, from: from, to: to}
}

func (p Plot) draw(b *strings.Builder) {
	x, y, y2 := p.scales()
	fmt.Fprintf(b, `<text x="%g" y="20" font-size="14" font-weight="600">%s</text>`+"\n", padLeft, html.EscapeString(p.Title))
	p.legend(b)
	for v := 0.0; v <= y.most*1.0001; v += y.step {
		fmt.Fprintf(b, `<line x1="%g" x2="%g" y1="%.1f" y2="%.1[3]f" stroke="#e4e4e4"/>`+"\n", x.from, x.to, y.at(v))
		fmt.Fprintf(b, `<text x="%g" y="%.1f" text-anchor="end">%s</text>`+"\n", x.from-8, y.at(v)+4, tickLabel(v))
	}
	for v := 0.0; v <= x.most*1.0001; v += x.step {
		fmt.Fprintf(b, `<line x1="%.1f" x2="%.1[1]f" y1="%g" y2="%g" stroke="#888"/>`+"\n", x.at(v), y.from, y.from+5)
		fmt.Fprintf(b, `<text x="%.1f" y="%g" text-anchor="middle">%s</text>`+"\n", x.at(v), y.from+19, tickLabel(v))
	}
	fmt.Fprintf(b, `<line x1="%g" x2="%g" y1="%g" y2="%[3]g" stroke="#888"/>`+"\n", x.from, x.to, y.from)
	middle := (y.from + y.to) / 2
	fmt.Fprintf(b, `<text x="%g" y="%g" text-anchor="middle">%s</text>`+"\n", (x.from+x.to)/2, y.from+38, html.EscapeString(p.X.Label))
	fmt.Fprintf(b, `<text transform="translate(16 %g) rotate(-90)" text-anchor="middle">%s</text>`+"\n", middle, html.EscapeString(p.Y.Label))
	if p.Y2.Label != "" {
		for v := 0.0; v <= y2.most*1.0001; v += y2.step {
			fmt.Fprintf(b, `<text x="%g" y="%.1f" fill="#555">%s</text>`+"\n", x.to+8, y2.at(v)+4, tickLabel(v))
		}
		fmt.Fprintf(b, `<text transform="translate(%g %g) rotate(90)" text-anchor="middle" fill="#555">%s</text>`+"\n",
			panelWidth-14.0, middle, html.EscapeString(p.Y2.Label))
	}
	for i, l := range p.Lines {
		on := y
		if l.Right {
			on = y2
		}
		l.draw(b, colours[i%len(colours)], x, on)
	}
}

func (p Plot) scales() (x, y, y2 scale) {
	mx, my, my2 := p.X.Max, p.Y.Max, p.Y2.Max
	for _, l := range p.Lines {
		for _, pt := range l.Points {
			if math.IsNaN(pt.Y) || math.IsInf(pt.Y, 0) {
				continue
			}
			mx = max(mx, pt.X)
			if l.Right {
				my2 = max(my2, pt.Y)
			} else {
				my = max(my, pt.Y)
			}
		}
	}
	return scaleOf(mx, padLeft, panelWidth-padRight), scaleOf(my, panelHeight-padBottom, padTop), scaleOf(my2, panelHeight-padBottom, padTop)
}

func (p Plot) legend(b *strings.Builder) {
	at := padLeft
	for i, l := range p.Lines {
		dash := ""
		if l.Dashed {
			dash = ` stroke-dasharray="5 4"`
		}
		fmt.Fprintf(b, `<line x1="%g" x2="%g" y1="38" y2="38" stroke="%s" stroke-width="2"%s/>`+"\n", at, at+20, colours[i%len(colours)], dash)
		name := l.Name
		if l.Right {
			name += " (right)"
		}
		fmt.Fprintf(b, `<text x="%g" y="42">%s</text>`+"\n", at+25, html.EscapeString(name))
		at += 25 + 6.6*float64(len([]rune(name))) + 18
	}
}

func (l Line) draw(b *strings.Builder, colour string, x, y scale) {
	var path strings.Builder
	pen := "M"
	for _, pt := range l.Points {
		if math.IsNaN(pt.Y) || math.IsInf(pt.Y, 0) {
			pen = "M"
			continue
		}
		fmt.Fprintf(&path, "%s%.1f %.1f", pen, x.at(pt.X), y.at(pt.Y))
		pen = "L"
		if l.Marked {
			fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", x.at(pt.X), y.at(pt.Y), colour)
		}
	}
	dash := ""
	if l.Dashed {
		dash = ` stroke-dasharray="5 4"`
	}
	fmt.Fprintf(b, `<path d="%s" fill="none" stroke="%s" stroke-width="1.8" stroke-linejoin="round"%s/>`+"\n", path.String(), colour, dash)
}

// tickLabel formats a value on an axis.
func tickLabel(v float64) string {
	if math.Abs(v) < 1e-9 {
		return "0"
	}
	return fmt.Sprintf("%.4g", v)
}
