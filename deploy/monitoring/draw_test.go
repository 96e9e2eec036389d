package monitoring

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What Grafana would show of a dashboard's JSON, as an SVG: grid, titles, units, thresholds, texts instead of values,
// colours of series, legends with last and max. Tooltips, links and annotations are not drawn.

const (
	unitWidth, unitHeight = 54.0, 34.0 // of the grid, in pixels
	lineHeight            = 16.0       // of text
)

var (
	palette = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555"}
	// shades are the colours that Grafana knows by name.
	shades = map[string]string{
		"green": "#56a64b", "red": "#e02f44", "orange": "#ff780a", "yellow": "#f2cc0c", "purple": "#a352cc", "gray": "#9a9a9a",
	}
	braces = regexp.MustCompile(`\{\{(\w+)\}\}`)
)

// look is how values are shown: of a panel, or of one column or series of it.
type look struct {
	Unit       string
	Thresholds struct {
		Steps []struct {
			Value *float64
			Color string
		}
	}
	Mappings []struct {
		Options map[string]struct{ Text, Color string }
	}
	Color struct{ FixedColor string }
}

// lookOf returns the look of a column or series.
func (p panel) lookOf(name string) (look, error) {
	l := p.FieldConfig.Defaults.look
	for _, o := range p.FieldConfig.Overrides {
		for _, property := range o.Properties {
			into := map[string]any{"unit": &l.Unit, "thresholds": &l.Thresholds, "mappings": &l.Mappings, "color": &l.Color}[property.ID]
			if into == nil || o.Matcher.Options != name {
				continue
			}
			if err := json.Unmarshal(property.Value, into); err != nil {
				return l, fmt.Errorf("override of %s: %w", name, err)
			}
		}
	}
	return l, nil
}

// value returns the text of a value, and its colour, if it has one.
func (l look) value(v float64) (text, colour string) {
	for _, m := range l.Mappings {
		if mapped, ok := m.Options[strconv.FormatFloat(v, 'g', -1, 64)]; ok {
			return mapped.Text, shades[mapped.Color]
		}
	}
	for _, s := range l.Thresholds.Steps {
		if s.Value == nil || v >= *s.Value {
			colour = shades[s.Color]
		}
	}
	return inUnit(v, l.Unit), colour
}

// inUnit formats a value in a unit of Grafana.
func inUnit(v float64, unit string) string {
	scaled := func(base float64, names ...string) string {
		i := 0
		for v >= base && i < len(names)-1 {
			v /= base
			i++
		}
		return fmt.Sprintf("%.3g %s", v, names[i])
	}
	switch unit {
	case "percentunit":
		return fmt.Sprintf("%.3g%%", v*100)
	case "s":
		switch {
		case v == 0:
			return "0 s"
		case v < 0.001:
			return fmt.Sprintf("%.3g µs", v*1e6)
		case v < 1:
			return fmt.Sprintf("%.3g ms", v*1000)
		case v < 120:
			return fmt.Sprintf("%.3g s", v)
		case v < 7200:
			return fmt.Sprintf("%.3g min", v/60)
		case v < 2*86400:
			return fmt.Sprintf("%.3g hours", v/3600)
		}
		return fmt.Sprintf("%.3g days", v/86400)
	case "bytes":
		return scaled(1024, "B", "KiB", "MiB", "GiB", "TiB")
	case "binBps":
		return scaled(1024, "B/s", "KiB/s", "MiB/s", "GiB/s")
	case "cps":
		return fmt.Sprintf("%.3g c/s", v)
	}
	return strings.TrimSpace(scaled(1000, "", "K", "Mil"))
}

// series is the answer to a query of a range of time.
type series struct {
	Metric map[string]string
	Values [][2]any // time, value
	name   string
	points [][2]float64
}

// queryRange evaluates an expression over a time.
func (p *prometheus) queryRange(expr string, from, to time.Time) []series {
	p.t.Helper()
	var answer struct{ Result []series }
	step := max(1, math.Round(to.Sub(from).Seconds()/120))
	p.get("/api/v1/query_range", url.Values{
		"query": {expr}, "start": {fmt.Sprint(from.Unix())}, "end": {fmt.Sprint(to.Unix())}, "step": {fmt.Sprint(step)},
	}, &answer)
	for i := range answer.Result {
		for _, point := range answer.Result[i].Values {
			if v, ok := number(point[1]); ok {
				answer.Result[i].points = append(answer.Result[i].points, [2]float64{point[0].(float64), v})
			}
		}
	}
	return answer.Result
}

// number returns the number that Prometheus has written, if it is one.
func number(value any) (float64, bool) {
	text, _ := value.(string)
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil && !math.IsNaN(v)
}

// draw returns the picture of panels, and the titles of those that show nothing.
func (p *prometheus) draw(panels []panel, from, to time.Time) (svg string, empty []string) {
	p.t.Helper()
	var b strings.Builder
	bottom := 0.0
	for _, next := range panels {
		at := next.GridPos
		x, y, w, h := at.X*unitWidth, at.Y*unitHeight, at.W*unitWidth, at.H*unitHeight
		bottom = max(bottom, y+h)
		fmt.Fprintf(&b, `<svg x="%g" y="%g" width="%g" height="%g">`+"\n", x+3, y+3, w-6, h-6)
		if next.Type == "row" {
			writeText(&b, 4, 20, "start", 15, "#222", next.Title)
		} else {
			fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="#fff" stroke="#ddd"/>`+"\n")
			drawn := false
			switch next.Type {
			case "table":
				drawn = p.drawTable(&b, next, w-6)
			case "stat":
				drawn = p.drawNumbers(&b, next, w-6, h-6, from, to)
			case "timeseries":
				drawn = p.drawLines(&b, next, w-6, h-6, from, to)
			default:
				p.t.Errorf("%s: panels of type %s cannot be drawn", next.Title, next.Type)
			}
			if !drawn {
				empty = append(empty, next.Title)
				writeText(&b, (w-6)/2, (h-6)/2, "middle", 13, "#777", cmp.Or(next.FieldConfig.Defaults.NoValue, "No data"))
			}
			writeText(&b, 8, 18, "start", 13, "#222", next.Title)
		}
		b.WriteString("</svg>\n")
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" font-family="system-ui, sans-serif"><rect width="100%%" height="100%%" fill="#f4f5f5"/>`+"\n%s</svg>\n",
		24*unitWidth, bottom, b.String()), empty
}

func writeText(b *strings.Builder, x, y float64, anchor string, size float64, colour, text string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s" font-size="%g" fill="%s">%s</text>`+"\n", x, y, anchor, size, colour, html.EscapeString(text))
}

// of returns the series of a panel, with their names.
func (p *prometheus) of(from panel, begin, end time.Time) (all []series) {
	p.t.Helper()
	for _, target := range from.Targets {
		for _, s := range p.queryRange(variables.Replace(target.Expr), begin, end) {
			s.name = braces.ReplaceAllStringFunc(target.LegendFormat, func(label string) string { return s.Metric[strings.Trim(label, "{}")] })
			if len(s.points) > 0 {
				all = append(all, s)
			}
		}
	}
	return all
}

func (p *prometheus) drawNumbers(b *strings.Builder, from panel, w, h float64, begin, end time.Time) bool {
	p.t.Helper()
	all := p.of(from, begin, end)
	// A series that has ended, such as one whose labels name another number of nodes, is not the newest.
	newest := 0.0
	for _, s := range all {
		newest = max(newest, s.points[len(s.points)-1][0])
	}
	all = slices.DeleteFunc(all, func(s series) bool { return s.points[len(s.points)-1][0] < newest })
	part := w / float64(max(1, len(all)))
	for i, s := range all {
		text, colour := from.FieldConfig.Defaults.value(s.points[len(s.points)-1][1])
		ink := "#fff"
		if from.Options.ColorMode != "background" {
			colour, ink = "#fff", "#222"
		}
		fmt.Fprintf(b, `<rect x="%.1f" y="26" width="%.1f" height="%.1f" fill="%s"/>`+"\n", float64(i)*part+2, part-4, h-28, colour)
		middle := (float64(i) + .5) * part
		writeText(b, middle, h/2+20, "middle", min(30, 1.7*part/float64(len(text)+1)), ink, text)
		writeText(b, middle, h-10, "middle", min(13, 1.7*part/float64(len(s.name)+1)), ink, s.name)
	}
	return len(all) > 0
}

func (p *prometheus) drawLines(b *strings.Builder, from panel, w, h float64, begin, end time.Time) bool {
	p.t.Helper()
	all := p.of(from, begin, end)
	isStacked := from.FieldConfig.Defaults.Custom.Stacking.Mode == "normal"
	shown := min(len(all), 6)
	left, right, top, bottom := 78.0, w-12, 30.0, h-lineHeight*float64(shown)-46
	most := 0.0
	sums := map[float64]float64{}
	for _, s := range all {
		for i, point := range s.points {
			if isStacked {
				sums[point[0]] += point[1]
				s.points[i][1] = sums[point[0]]
			}
			most = max(most, s.points[i][1])
		}
	}
	if most == 0 {
		most = 1
	}
	most *= 1.1
	at := func(point [2]float64) (x, y float64) {
		return left + (point[0]-float64(begin.Unix()))/end.Sub(begin).Seconds()*(right-left), bottom - point[1]/most*(bottom-top)
	}
	defaults := from.FieldConfig.Defaults
	for i := range 4 {
		v := most * float64(i) / 3
		_, y := at([2]float64{0, v})
		fmt.Fprintf(b, `<line x1="%g" x2="%g" y1="%.1f" y2="%[3]g" stroke="#e4e4e4"/>`+"\n", left, right, y)
		writeText(b, left-6, y+4, "end", 11, "#555", inUnit(v, defaults.Unit))
	}
	for _, minute := range []time.Time{begin, begin.Add(end.Sub(begin) / 2), end} {
		x, _ := at([2]float64{float64(minute.Unix()), 0})
		writeText(b, min(x, right-14), bottom+14, "middle", 11, "#555", minute.UTC().Format("15:04:05"))
	}
	legend := bottom + 30
	if from.FieldConfig.Defaults.Custom.ThresholdsStyle.Mode != "off" {
		for _, step := range defaults.Thresholds.Steps {
			if step.Value != nil && *step.Value <= most {
				_, y := at([2]float64{0, *step.Value})
				fmt.Fprintf(b, `<line x1="%g" x2="%g" y1="%.1f" y2="%[3]g" stroke="%s" stroke-dasharray="6 4"/>`+"\n", left, right, y, shades["red"])
			}
		}
	}
	writeText(b, right-80, legend+4, "end", 11, "#555", "last")
	writeText(b, right, legend+4, "end", 11, "#555", "max")
	for i, s := range slices.Backward(all) {
		l, err := from.lookOf(s.name)
		if err != nil {
			p.t.Errorf("%s: %v", from.Title, err)
		}
		colour := cmp.Or(shades[l.Color.FixedColor], palette[i%len(palette)])
		var path strings.Builder
		last, highest := 0.0, math.Inf(-1)
		for j, point := range s.points {
			x, y := at(point)
			fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(j, 1)], x, y)
			last, highest = point[1], max(highest, point[1])
		}
		if isStacked { // over those above it, which were drawn before
			x0, y0 := at([2]float64{s.points[0][0], 0})
			x1, _ := at(s.points[len(s.points)-1])
			area := fmt.Sprintf("%sL%.1f %.1fL%.1f %.1fZ", path.String(), x1, y0, x0, y0)
			fmt.Fprintf(b, `<path d="%s" fill="#fff"/><path d="%[1]s" fill="%s" fill-opacity=".4"/>`+"\n", area, colour)
		}
		fmt.Fprintf(b, `<path d="%s" fill="none" stroke="%s" stroke-width="1.6"/>`+"\n", path.String(), colour)
		if i >= shown {
			continue
		}
		if isStacked { // the legend has the series' own values
			last, highest = own(all, i)
		}
		y := legend + lineHeight*float64(i+1)
		fmt.Fprintf(b, `<rect x="10" y="%.1f" width="12" height="4" fill="%s"/>`+"\n", y, colour)
		writeText(b, 28, y+5, "start", 11, "#222", s.name)
		writeText(b, right-80, y+5, "end", 11, "#222", inUnit(last, defaults.Unit))
		writeText(b, right, y+5, "end", 11, "#222", inUnit(highest, defaults.Unit))
	}
	return slices.ContainsFunc(all, func(s series) bool { return len(s.points) > 1 }) // a point alone is no line
}

// own returns the last and the largest value of a series that is stacked on those before it.
func own(all []series, i int) (last, highest float64) {
	for _, point := range all[i].points {
		below := 0.0
		for _, s := range all[:i] {
			for _, other := range s.points {
				if other[0] == point[0] {
					below = max(below, other[1])
				}
			}
		}
		last = point[1] - below
		highest = max(highest, last)
	}
	return last, highest
}

func (p *prometheus) drawTable(b *strings.Builder, from panel, w float64) bool {
	p.t.Helper()
	rows := map[string]map[string]any{} // by the labels: what is in each field
	for _, target := range from.Targets {
		for _, s := range p.query(variables.Replace(target.Expr)) {
			key := fmt.Sprint(s.Metric)
			if rows[key] == nil {
				rows[key] = map[string]any{}
			}
			for label, value := range s.Metric {
				rows[key][label] = value
			}
			if v, ok := number(s.Value[1]); ok {
				rows[key]["Value #"+target.RefID] = v
			}
		}
	}
	for _, t := range from.Transformations {
		var fields []string
		for field, title := range t.Options.RenameByName {
			if title != "" && (field != "Value" || len(from.Targets) == 1) && !t.Options.ExcludeByName[field] {
				fields = append(fields, field)
			}
		}
		slices.SortFunc(fields, func(a, b string) int { return cmp.Compare(t.Options.IndexByName[a], t.Options.IndexByName[b]) })
		for i, field := range fields {
			title := t.Options.RenameByName[field]
			x, width := w*float64(i)/float64(len(fields)), w/float64(len(fields))
			writeText(b, x+8, 44, "start", 12, "#3274d9", title)
			l, err := from.lookOf(title)
			if err != nil {
				p.t.Errorf("%s: %v", from.Title, err)
			}
			for j, key := range slices.Sorted(maps.Keys(rows)) {
				y := 56 + 28*float64(j)
				text, colour, ink := fmt.Sprint(cmp.Or[any](rows[key][field], "")), "none", "#222"
				if v, ok := rows[key][field].(float64); ok {
					text, colour = l.value(v)
					if colour = cmp.Or(colour, "none"); len(l.Mappings) == 0 && len(l.Thresholds.Steps) == 0 {
						colour = "none"
					}
				}
				if colour != "none" {
					ink = "#fff"
				}
				fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="26" fill="%s"/>`+"\n", x+2, y, width-4, colour)
				writeText(b, x+8, y+18, "start", 13, ink, text)
			}
		}
	}
	return len(rows) > 0
}
