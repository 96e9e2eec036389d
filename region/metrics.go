package region

import "github.com/prometheus/client_golang/prometheus"

// metrics are the metrics of regions; docs/metrics.md explains each.
type metrics struct {
	tickSeconds prometheus.Histogram
	lateTicks   prometheus.Counter
	loaded      prometheus.Gauge
	leaderships prometheus.Counter
	led         prometheus.Gauge
	members     prometheus.Gauge
	under       prometheus.Gauge
	hibernated  prometheus.Counter
	woken       prometheus.Counter
	changes     *prometheus.CounterVec // by change: add, promote, remove, transfer
	edits       prometheus.Counter
	founded     prometheus.Counter
	catalog     prometheus.Gauge
	isolated    *prometheus.CounterVec // by reason: panic, slow, group, storage
	quarantined prometheus.Gauge
	located     *prometheus.CounterVec // by source: cache, neighbour, dht, catalog, founded
	scrubMetrics
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		tickSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "voxeld_region_tick_seconds",
			Help:    "Time that one tick of one region took; the budget is 0.05.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .0075, .01, .015, .02, .025, .03, .035, .04, .045, .05, .06, .075, .1, .25, .5, 1},
		}),
		lateTicks: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "voxeld_region_late_ticks_total",
			Help: "Ticks that began more than one tick length after they were due.",
		}),
		loaded: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "voxeld_regions_loaded",
			Help: "Regions whose tick loop runs on this node.",
		}),
		leaderships: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "voxeld_region_leaderships_total",
			Help: "Times that this node took over the leadership of a region.",
		}),
		led: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "voxeld_regions_led",
			Help: "Loaded regions that this node leads, the catalog included.",
		}),
		members: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "voxeld_region_members",
			Help: "Members with a vote that are heard of, of all loaded regions that this node leads, added up.",
		}),
		under: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "voxeld_regions_under_replicated",
			Help: "Loaded regions led by this node that have fewer members that are heard of than configured.",
		}),
		hibernated: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "voxeld_regions_slept_total",
			Help: "Times that a region of several members was put to sleep on this node because nobody watched it.",
		}),
		woken: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "voxeld_regions_roused_total",
			Help: "Times that a region was opened on this node because another member spoke to it.",
		}),
		changes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "voxeld_region_member_changes_total",
			Help: "Changes of members and leaders that this node made as a region's leader.",
		}, []string{"change"}),
		edits: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "voxeld_region_edits_total",
			Help: "Edits that were committed and applied by regions of this node.",
		}),
		founded: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "voxeld_regions_founded_total",
			Help: "Regions that the catalog founded while it was on this node.",
		}),
		catalog: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "voxeld_catalog_members",
			Help: "Members of the catalog that have a vote, as this node knows; 0 if it is none of them.",
		}),
		isolated: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "voxeld_regions_fenced_total",
			Help: "Times that a region, or the catalog, failed on this node and was ended here alone.",
		}, []string{"reason"}),
		quarantined: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "voxeld_regions_quarantined",
			Help: "Regions that failed again and are shut away on this node: their land can be seen, and not changed.",
		}),
		located: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "voxeld_locate_total",
			Help: "Searches for the region of a chunk, by the source that knew it.",
		}, []string{"source"}),
		scrubMetrics: newScrubMetrics(r),
	}
	r.MustRegister(m.tickSeconds, m.lateTicks, m.loaded, m.leaderships, m.led, m.members, m.under, m.hibernated, m.woken, m.changes, m.edits, m.founded, m.catalog, m.located)
	r.MustRegister(m.isolated, m.quarantined)
	for _, kind := range []faultKind{panicked, slow, broken, refused} {
		m.isolated.WithLabelValues(kind.String()) // so that an alert sees the first failure, too
	}
	return m
}

// scrubMetrics are the metrics of comparing, repairing and replacing copies.
type scrubMetrics struct {
	scrubs *prometheus.CounterVec // by result: sound, repaired, damaged, failed
	scrubbedChunks,
	damaged,
	repaired,
	reseeded,
	bases,
	missingBases prometheus.Counter
	damagedNow prometheus.Gauge
}

func newScrubMetrics(r prometheus.Registerer) scrubMetrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := scrubMetrics{
		scrubs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "voxeld_scrubs_total",
			Help: "Comparisons of all copies of a region that this node made as its leader, by result: sound, repaired, damaged (and not repaired), failed.",
		}, []string{"result"}),
		scrubbedChunks: counter("voxeld_scrub_parts_total", "Parts of regions (chunks, and what is remembered of the players) that were compared."),
		damaged:        counter("voxeld_scrub_damaged_total", "Copies of parts that were found damaged, on any member of a region that this node leads."),
		repaired:       counter("voxeld_scrub_repaired_total", "Parts of this node's copies that were repaired from the other members."),
		reseeded:       counter("voxeld_copies_discarded_total", "Copies of regions on this node that could not be used any more, and were discarded so that the other members bring a new one."),
		bases:          counter("voxeld_bases_fetched_total", "Chunks whose terrain this node generates differently than their edits need, fetched from another node."),
		missingBases:   counter("voxeld_bases_missing_total", "Attempts to fetch such terrain that found nobody who has it."),
		damagedNow: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "voxeld_damaged_copies",
			Help: "Copies that this node knows to be damaged and not repaired; voxeld region scrub names them.",
		}),
	}
	r.MustRegister(m.scrubs, m.scrubbedChunks, m.damaged, m.repaired, m.reseeded, m.bases, m.missingBases, m.damagedNow)
	return m
}
