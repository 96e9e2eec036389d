package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	grafana "github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// dashboard is a page of panels. Every dashboard can be limited to some nodes with its variable instance.
type dashboard struct {
	uid, title, description string
	rows                    []row
}

// row is a titled group of panels.
type row struct {
	title  string
	panels []panel
}

// panel shows queries in one of four ways.
type panel struct {
	title       string
	description string // what it shows, and what is normal
	kind        kind
	unit        string
	queries     []query
	interval    string                                // shortest distance of two points; empty: the interval of scrapes
	alert       string                                // the alert whose limit is drawn
	bad         float64                               // limit of what has no alert; 0: none
	texts       map[string]grafana.ValueMappingResult // instead of these values
	colours     map[string]string                     // of the series with these names
	columns     []column                              // of a table
	width       uint32                                // in 24ths of the page; 0: an equal part of its line
}

// kind is how a panel shows its queries.
type kind int

const (
	lines   kind = iota // over time
	stacked             // lines, one on top of the other
	number              // the newest values
	table               // the newest values, with a row for each node, or for each series if there is one query
)

// query is a PromQL expression. SEL in it stands for the labels that select the nodes.
type query struct{ expr, legend string }

// selection selects the series of the chosen nodes.
const selection = `job=~"$job",instance=~"$instance"`

// The rate of a counter, and a quantile of a histogram, of each node.

func perSecond(metric, by string) string {
	return "sum by (" + by + ") (rate(" + metric + "{SEL}[$__rate_interval]))"
}

func quantile(q, metric, by string) string {
	return "histogram_quantile(" + q + ", sum by (" + by + ", le) (rate(" + metric + "_bucket{SEL}[$__rate_interval])))"
}

// mean returns the mean of a histogram's values.
func mean(metric, by string) string {
	return perSecond(metric+"_sum", by) + " / " + perSecond(metric+"_count", by)
}

// some returns the rates by a label that are not 0, or if all are, a single series "none" with 0: a healthy node has a
// line, not eighteen.
func some(metric, by string) string {
	all := perSecond(metric, by)
	last := by[strings.LastIndex(by, " ")+1:]
	return all + ` > 0 or label_replace(sum(` + all + `), "` + last + `", "none", "", "") == 0`
}

var source = common.DataSourceRef{Type: new("prometheus"), Uid: new("$datasource")}

func (d dashboard) build(l limits) (grafana.Dashboard, error) {
	b := grafana.NewDashboardBuilder(d.title).Uid(d.uid).Description(d.description).Tags([]string{"voxeld"}).
		Readonly().Refresh("10s").Time("now-1h", "now").Timezone("browser").Tooltip(grafana.DashboardCursorSyncCrosshair).
		WithVariable(grafana.NewDatasourceVariableBuilder("datasource").Label("Data source").Type("prometheus")).
		WithVariable(labelVariable("job", "Job", "voxeld_ready")).
		WithVariable(labelVariable("instance", "Instance", `voxeld_ready{job=~"$job"}`)).
		Link(grafana.NewDashboardLinkBuilder("voxeld").Type(grafana.DashboardLinkTypeDashboards).Tags([]string{"voxeld"}).
			AsDropdown(true).KeepTime(true).IncludeVars(true))
	for _, r := range d.rows {
		b.WithRow(grafana.NewRowBuilder(r.title))
		for i, width := range widths(r.panels) {
			p, err := r.panels[i].build(l, width)
			if err != nil {
				return grafana.Dashboard{}, fmt.Errorf("panel %q: %w", r.panels[i].title, err)
			}
			b.WithPanel(p)
		}
	}
	return b.Build()
}

// widths returns the widths of the panels of a row, so that they fill lines of 24 units: six numbers or three others in
// a line, or fewer if they do not fill the last one.
func widths(panels []panel) (all []uint32) {
	for i := 0; i < len(panels); {
		same, most := i, 3
		if panels[i].kind == number {
			most = 6
		}
		for same < len(panels) && panels[same].kind.height() == panels[i].kind.height() && (panels[same].width == 0) == (panels[i].width == 0) {
			same++
		}
		if panels[i].width != 0 {
			all = append(all, panels[i].width)
			i++
			continue
		}
		inLines := (same - i + most - 1) / most
		inLine := (same - i + inLines - 1) / inLines
		for range inLine {
			all = append(all, uint32(24/inLine))
		}
		i += inLine
	}
	return all
}

func (k kind) height() uint32 {
	if k == number {
		return 4
	}
	return 8
}

// labelVariable lets the reader choose values of a label of the series.
func labelVariable(name, label, series string) *grafana.QueryVariableBuilder {
	return grafana.NewQueryVariableBuilder(name).Label(label).Datasource(source).
		Query(grafana.StringOrMap{String: new("label_values(" + series + ", " + name + ")")}).
		Refresh(grafana.VariableRefreshOnTimeRangeChanged).Sort(grafana.VariableSortAlphabeticalAsc).
		Multi(true).IncludeAll(true).AllValue(".+")
}

func (p panel) build(l limits, width uint32) (cog.Builder[grafana.Panel], error) {
	bad, err := l.of(p.alert, p.bad)
	if err != nil {
		return nil, err
	}
	switch p.kind {
	case number:
		return p.number(bad, width), nil
	case table:
		return p.table(l, width)
	default:
		return p.graph(bad, width), nil
	}
}

func (p panel) number(bad limit, width uint32) cog.Builder[grafana.Panel] {
	b := stat.NewPanelBuilder().Title(p.title).Description(p.description).Datasource(source).Unit(p.unit).Height(p.kind.height()).Span(width).
		GraphMode(common.BigValueGraphModeNone).ColorMode(common.BigValueColorModeNone).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"}))
	if p.texts != nil {
		b.ColorMode(common.BigValueColorModeBackground).Mappings(mappings(p.texts))
	}
	if bad.value != 0 {
		b.ColorMode(common.BigValueColorModeBackground).Thresholds(bad.thresholds())
	}
	for i, q := range p.queries {
		b.WithTarget(q.build(i).Range())
	}
	return b
}

func (p panel) graph(bad limit, width uint32) cog.Builder[grafana.Panel] {
	b := timeseries.NewPanelBuilder().Title(p.title).Description(p.description).Datasource(source).Unit(p.unit).Height(p.kind.height()).Span(width).
		Min(0).FillOpacity(10).ShowPoints(common.VisibilityModeNever).
		Legend(common.NewVizLegendOptionsBuilder().DisplayMode(common.LegendDisplayModeTable).Placement(common.LegendPlacementBottom).
			ShowLegend(true).Calcs([]string{"lastNotNull", "max"})).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending))
	if p.interval != "" {
		b.Interval(p.interval)
	}
	if p.kind == stacked {
		b.Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal)).FillOpacity(40)
	}
	if bad.value != 0 {
		b.Thresholds(bad.thresholds()).ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed))
	}
	for _, series := range slices.Sorted(maps.Keys(p.colours)) {
		b.OverrideByName(series, []grafana.DynamicConfigValue{{Id: "color", Value: map[string]string{"mode": "fixed", "fixedColor": p.colours[series]}}})
	}
	for i, q := range p.queries {
		b.WithTarget(q.build(i).Range())
	}
	return b
}

func (q query) build(i int) *prometheus.DataqueryBuilder {
	return prometheus.NewDataqueryBuilder().Expr(strings.ReplaceAll(q.expr, "SEL", selection)).LegendFormat(q.legend).
		RefId(string(rune('A' + i)))
}

// mappings shows texts instead of values.
func mappings(texts map[string]grafana.ValueMappingResult) []grafana.ValueMapping {
	return []grafana.ValueMapping{{ValueMap: &grafana.ValueMap{Type: grafana.MappingTypeValueToText, Options: texts}}}
}

// one returns the only query of a panel.
func one(expr, legend string) []query { return []query{{expr, legend}} }

// The units of panels.
const (
	count   = units.Short
	seconds = units.Seconds
	size    = units.BytesIEC
	traffic = units.BytesPerSecondIEC
	share   = units.PercentUnit
	rate    = "cps" // counts per second
)
