package integrity

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/region/actor"
)

// Metrics are the metrics of failures, and of comparing, repairing and replacing copies; docs/metrics.md explains each.
type Metrics struct {
	scrubs *prometheus.CounterVec // by result: sound, repaired, damaged, failed
	scrubbedChunks,
	damaged,
	reseeded,
	bases,
	missingBases prometheus.Counter
	damagedNow  prometheus.Gauge
	isolated    *prometheus.CounterVec // by reason: panic, slow, group, storage
	quarantined prometheus.Gauge
}

// NewMetrics returns metrics that are registered.
func NewMetrics(r prometheus.Registerer) *Metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := &Metrics{
		scrubs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "voxeld_scrubs_total",
			Help: "Comparisons of all copies of a region that this node made as its leader, by result: sound, repaired, damaged (and not repaired), failed.",
		}, []string{"result"}),
		scrubbedChunks: counter("voxeld_scrub_parts_total", "Parts of regions (chunks, and what is remembered of the players) that were compared."),
		damaged:        counter("voxeld_scrub_damaged_total", "Copies of parts that were found damaged, on any member of a region that this node leads."),
		reseeded:       counter("voxeld_copies_discarded_total", "Copies of regions on this node that could not be used any more, and were discarded so that the other members bring a new one."),
		bases:          counter("voxeld_bases_fetched_total", "Chunks whose terrain this node generates differently than their edits need, fetched from another node."),
		missingBases:   counter("voxeld_bases_missing_total", "Attempts to fetch such terrain that found nobody who has it."),
		isolated: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "voxeld_regions_isolated_total",
			Help: "Times that a region, or the catalog, failed on this node and was ended here alone.",
		}, []string{"reason"}),
		quarantined: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "voxeld_regions_quarantined",
			Help: "Regions that failed again and are shut away on this node: their land can be seen, and not changed.",
		}),
		damagedNow: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "voxeld_damaged_copies",
			Help: "Copies that this node knows to be damaged and not repaired; voxeld region scrub names them.",
		}),
	}
	r.MustRegister(m.scrubs, m.scrubbedChunks, m.damaged, m.reseeded, m.bases, m.missingBases, m.damagedNow, m.isolated, m.quarantined)
	for _, kind := range []actor.FaultKind{actor.Panicked, actor.Slow, actor.Broken, actor.Refused} {
		m.isolated.WithLabelValues(kind.String()) // so that an alert sees the first failure, too
	}
	return m
}

// Isolated counts a region, or the catalog, that failed here.
func (m *Metrics) Isolated(kind actor.FaultKind) { m.isolated.WithLabelValues(kind.String()).Inc() }
