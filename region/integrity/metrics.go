package integrity

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/internal/metric"
	"github.com/voxelpopuli/voxeld/region/actor"
	"github.com/voxelpopuli/voxeld/region/copies"
)

// Metrics are the metrics of failures, and of comparing, repairing and replacing copies; docs/data/metrics.csv explains
// each.
type Metrics struct {
	scrubs *prometheus.CounterVec // by result: sound, repaired, damaged, failed
	scrubbedChunks,
	damaged,
	bases,
	missingBases prometheus.Counter
	damagedNow prometheus.Gauge
	discarded  *prometheus.CounterVec // by reason: those of copies.Replace
	isolated   *prometheus.CounterVec // by reason: panic, slow, group, storage
}

// NewMetrics returns metrics that are registered.
func NewMetrics(r prometheus.Registerer) *Metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	var replaced []string
	for _, row := range copies.Table {
		if row.Action == copies.Replace {
			replaced = append(replaced, row.Reason.String())
		}
	}
	m := &Metrics{
		scrubs: metric.NewCounterVec(prometheus.CounterOpts{
			Name: "voxeld_scrubs_total",
			Help: "Scrubs (comparisons of all replicas) of regions led by this node: sound, repaired, damaged (not repaired), failed.",
		}, metric.Values("result", "sound", "repaired", "damaged", "failed")),
		scrubbedChunks: counter("voxeld_scrub_parts_total", "Parts compared by scrubs: chunks, and the player state of a region."),
		damaged:        counter("voxeld_scrub_damaged_total", "Damaged parts found by scrubs, on any member of a region led by this node."),
		bases:          counter("voxeld_terrain_fetches_total", "Chunks of terrain fetched from a node that generates the terrain under the edits."),
		missingBases:   counter("voxeld_terrain_fetch_failures_total", "Attempts to fetch terrain that no reachable node had."),
		discarded: metric.NewCounterVec(prometheus.CounterOpts{
			Name: "voxeld_replicas_discarded_total",
			Help: "Unusable replicas discarded, which the other members replace: " + strings.Join(replaced, ", ") + " (the table in docs/runbook.md).",
		}, metric.Values("reason", replaced...)),
		isolated: metric.NewCounterVec(prometheus.CounterOpts{
			Name: "voxeld_regions_isolated_total",
			Help: "Regions that failed and were closed on this node only.",
		}, metric.Values("reason", actor.Panicked.String(), actor.Slow.String(), actor.Broken.String(), actor.Refused.String())),
		damagedNow: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "voxeld_replicas_damaged",
			Help: "Damaged replicas that are not repaired (voxeld region scrub).",
		}),
	}
	r.MustRegister(m.scrubs, m.scrubbedChunks, m.damaged, m.discarded, m.bases, m.missingBases, m.damagedNow, m.isolated)
	return m
}
