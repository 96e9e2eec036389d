package main

import (
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

// panel shows one or more queries over time or, if it is a number, their newest value.
type panel struct {
	title       string
	description string // what it shows, and what is normal
	unit        string
	queries     []query
	interval    string // shortest distance of two points; empty: the interval of scrapes
	stacked     bool
	number      bool
	bad         float64 // a number is red from here on; 0: it has no colour
}

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

var source = common.DataSourceRef{Type: new("prometheus"), Uid: new("$datasource")}

func (d dashboard) build() (grafana.Dashboard, error) {
	b := grafana.NewDashboardBuilder(d.title).Uid(d.uid).Description(d.description).Tags([]string{"voxeld"}).
		Readonly().Refresh("10s").Time("now-1h", "now").Timezone("browser").Tooltip(grafana.DashboardCursorSyncCrosshair).
		WithVariable(grafana.NewDatasourceVariableBuilder("datasource").Label("Data source").Type("prometheus")).
		WithVariable(labelVariable("job", "Job", "voxeld_ready")).
		WithVariable(labelVariable("instance", "Instance", `voxeld_ready{job=~"$job"}`)).
		Link(grafana.NewDashboardLinkBuilder("voxeld").Type(grafana.DashboardLinkTypeDashboards).Tags([]string{"voxeld"}).
			AsDropdown(true).KeepTime(true).IncludeVars(true))
	for _, r := range d.rows {
		b.WithRow(grafana.NewRowBuilder(r.title))
		for _, p := range r.panels {
			b.WithPanel(p.build())
		}
	}
	return b.Build()
}

// labelVariable lets the reader choose values of a label of the series.
func labelVariable(name, label, series string) *grafana.QueryVariableBuilder {
	return grafana.NewQueryVariableBuilder(name).Label(label).Datasource(source).
		Query(grafana.StringOrMap{String: new("label_values(" + series + ", " + name + ")")}).
		Refresh(grafana.VariableRefreshOnTimeRangeChanged).Sort(grafana.VariableSortAlphabeticalAsc).
		Multi(true).IncludeAll(true).AllValue(".+")
}

func (p panel) build() cog.Builder[grafana.Panel] {
	if p.number {
		b := stat.NewPanelBuilder().Title(p.title).Description(p.description).Datasource(source).Unit(p.unit).Height(4).Span(4).
			GraphMode(common.BigValueGraphModeNone).ColorMode(common.BigValueColorModeNone)
		if p.bad != 0 {
			b.ColorMode(common.BigValueColorModeBackground).Thresholds(grafana.NewThresholdsConfigBuilder().Mode(grafana.ThresholdsModeAbsolute).
				Steps([]grafana.Threshold{{Color: "green"}, {Value: new(p.bad), Color: "red"}}))
		}
		for i, q := range p.queries {
			b.WithTarget(q.build(i))
		}
		return b
	}
	b := timeseries.NewPanelBuilder().Title(p.title).Description(p.description).Datasource(source).Unit(p.unit).Height(8).Span(8).
		Min(0).FillOpacity(10).ShowPoints(common.VisibilityModeNever).
		Legend(common.NewVizLegendOptionsBuilder().DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom).ShowLegend(true)).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending))
	if p.interval != "" {
		b.Interval(p.interval)
	}
	if p.stacked {
		b.Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal)).FillOpacity(40)
	}
	for i, q := range p.queries {
		b.WithTarget(q.build(i))
	}
	return b
}

func (q query) build(i int) *prometheus.DataqueryBuilder {
	return prometheus.NewDataqueryBuilder().Expr(strings.ReplaceAll(q.expr, "SEL", selection)).LegendFormat(q.legend).
		RefId(string(rune('A' + i))).Range()
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
