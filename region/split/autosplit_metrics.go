package split

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/grid"
)

// metrics are the metrics of regions by the size of their cells.
type metrics struct{ depth *prometheus.GaugeVec }

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "voxeld_regions_by_depth",
		Help: "Regions that this node leads, by how often their cell was halved.",
	}, []string{"depth"})}
	r.MustRegister(m.depth)
	return m
}

// observe exports how many regions there are by the length of their labels.
func (m *metrics) observe(lengths [grid.MaxLabel + 1]int) {
	for depth, n := range lengths[grid.FoundingLabel:] {
		m.depth.WithLabelValues(strconv.Itoa(depth)).Set(float64(n))
	}
}
