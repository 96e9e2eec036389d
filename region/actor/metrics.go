package actor

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/internal/metric"
)

// phase is a part of a tick.
type phase int

const (
	phaseInput   phase = iota // what gateways and other nodes have sent
	phaseApply                // what the group has committed
	phaseStore                // changed rows are passed to the store
	phasePropose              // edits become log entries
	phasePublish              // changes and moves are sent to gateways
	phases
)

var phaseNames = [phases]string{"input", "apply", "store", "propose", "publish"}

// TickBuckets bound the histograms of a tick, in seconds. The budget is one of them.
var TickBuckets = []float64{.0001, .00025, .0005, .001, .0025, .005, .0075, .01, .015, .02, .025, .03, .035, .04, .045, .05, .06, .075, .1, .25, .5, 1}

// Metrics are the metrics of actors; docs/data/metrics.csv explains each.
type Metrics struct {
	tickSeconds prometheus.Histogram
	phases      [phases]prometheus.Observer
	lateness    prometheus.Histogram
	lateTicks   prometheus.Counter
	leaderships prometheus.Counter
	edits       prometheus.Counter
	repaired    prometheus.Counter
	founded     prometheus.Counter
	vacated     prometheus.Counter
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
			Help:    "Duration of one tick of one region.",
			Buckets: TickBuckets,
		}),
		lateness: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "voxeld_region_tick_lateness_seconds",
			Help:    "Time by which a tick of a region in use started late.",
			Buckets: TickBuckets,
		}),
		lateTicks:   counter("voxeld_region_late_ticks_total", "Ticks that started more than a tick (0.05 s) late."),
		leaderships: counter("voxeld_region_leaderships_total", "Times that this node became the leader of a region."),
		edits:       counter("voxeld_region_edits_total", "Edits committed and applied by regions on this node."),
		repaired:    counter("voxeld_scrub_repaired_total", "Damaged parts on this node that scrubs repaired."),
		founded:     counter("voxeld_regions_founded_total", "Regions founded while this node was a member of the catalog."),
		vacated:     counter("voxeld_regions_vacated_total", "Regions given up while this node was a member of the catalog, because nothing was ever built there."),
		catalog: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "voxeld_catalog_members",
			Help: "Voting members of the catalog; 0 on a node that is none.",
		}),
	}
	inPhase := metric.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "voxeld_region_tick_phase_seconds",
		Help:    "Duration of the parts of a tick: input (of gateways), apply (committed entries), store, propose (edits to the log), publish (to gateways).",
		Buckets: []float64{.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .5},
	}, metric.Values("phase", phaseNames[:]...))
	for i, name := range phaseNames {
		m.phases[i] = inPhase.WithLabelValues(name)
	}
	budget := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "voxeld_region_tick_budget_seconds",
		Help: "Length of a tick, 0.05.",
	})
	budget.Set(TickEvery.Seconds())
	r.MustRegister(inPhase, budget, m.lateness, m.tickSeconds, m.lateTicks, m.leaderships, m.edits, m.repaired, m.founded, m.vacated, m.catalog)
	return m
}

// CatalogGone records that this node is no longer a member of the catalog.
func (m *Metrics) CatalogGone() { m.catalog.Set(0) }

// phaseClock measures the phases of one tick.
type phaseClock struct {
	metrics *Metrics
	at      time.Time
}

func (m *Metrics) startTick() phaseClock { return phaseClock{m, time.Now()} }

// end ends the phase that began with the tick, or with the end of the one before.
func (c *phaseClock) end(p phase) {
	now := time.Now()
	c.metrics.phases[p].Observe(now.Sub(c.at).Seconds())
	c.at = now
}
