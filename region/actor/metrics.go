package actor

import "github.com/prometheus/client_golang/prometheus"

// Metrics are the metrics of actors; docs/metrics.md explains each.
type Metrics struct {
	tickSeconds prometheus.Histogram
	lateTicks   prometheus.Counter
	leaderships prometheus.Counter
	edits       prometheus.Counter
	repaired    prometheus.Counter
	founded     prometheus.Counter
	catalog     prometheus.Gauge
}

// NewMetrics returns metrics that are registered.
func NewMetrics(r prometheus.Registerer) *Metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := &Metrics{
		tickSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "voxeld_region_tick_seconds",
			Help:    "Duration of one tick of one region, in seconds. The budget is 0.05.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .0075, .01, .015, .02, .025, .03, .035, .04, .045, .05, .06, .075, .1, .25, .5, 1},
		}),
		lateTicks:   counter("voxeld_region_late_ticks_total", "Ticks that started more than one tick (0.05 s) late."),
		leaderships: counter("voxeld_region_leaderships_total", "Times that this node became the leader of a region."),
		edits:       counter("voxeld_region_edits_total", "Edits committed and applied by regions on this node."),
		repaired:    counter("voxeld_scrub_repaired_total", "Damaged parts on this node that were repaired from other members."),
		founded:     counter("voxeld_regions_founded_total", "Regions founded by the catalog while this node was a member of it."),
		catalog: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "voxeld_catalog_members",
			Help: "Voting members of the catalog; 0 if this node is not a member.",
		}),
	}
	r.MustRegister(m.tickSeconds, m.lateTicks, m.leaderships, m.edits, m.repaired, m.founded, m.catalog)
	return m
}

// CatalogGone records that this node is no longer a member of the catalog.
func (m *Metrics) CatalogGone() { m.catalog.Set(0) }
