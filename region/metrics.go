package region

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/region/membership"
)

// metrics are the metrics of open regions, and of all regions by state; docs/data/metrics.csv explains each.
type metrics struct {
	loaded        prometheus.Gauge
	hibernated    prometheus.Counter
	woken         prometheus.Counter
	node          *prometheus.GaugeVec // by state
	world         *prometheus.GaugeVec // by state
	catalogQuorum prometheus.Gauge
	skew          prometheus.Gauge
}

func newMetrics(r prometheus.Registerer) *metrics {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	byState := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"state"})
	}
	m := &metrics{
		loaded: gauge("voxeld_regions_loaded", "Regions open on this node."),
		hibernated: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "voxeld_regions_hibernated_total",
			Help: "Regions closed on this node because nobody watched them.",
		}),
		woken: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "voxeld_regions_woken_total",
			Help: "Regions opened on this node by a message of another member.",
		}),
		node: byState("voxeld_node_regions",
			"Replicas on this node, the catalog included, by state of the region: healthy, under_replicated, no_quorum, quarantined, unknown."),
		world: byState("voxeld_world_regions",
			"All regions but the catalog, by state, on nodes that hold the catalog."),
		catalogQuorum: gauge("voxeld_catalog_quorum", "1 if this node sees a catalog with a leader that a majority follows, else 0."),
		skew:          gauge("voxeld_clock_skew_seconds", "Largest difference between the clocks of this node and of another one; 0 if too small to measure."),
	}
	r.MustRegister(m.loaded, m.hibernated, m.woken, m.node, m.world, m.catalogQuorum, m.skew)
	return m
}

// observe exports the states.
func (m *metrics) observe(now States) {
	for _, state := range membership.States {
		m.node.WithLabelValues(state.String()).Set(float64(now.Node[state]))
		if now.World != nil {
			m.world.WithLabelValues(state.String()).Set(float64(now.World[state]))
		}
	}
	if now.World == nil {
		m.world.Reset()
	}
	m.catalogQuorum.Set(0)
	if now.CatalogQuorum {
		m.catalogQuorum.Set(1)
	}
	m.skew.Set(now.Skew.Seconds())
}
