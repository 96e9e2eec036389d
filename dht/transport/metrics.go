package transport

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/internal/metric"
)

// metrics of one host.
type metrics struct{ streamIn, streamOut prometheus.Counter }

// newMetrics registers the metrics. connected returns the number of connected peers.
func newMetrics(reg prometheus.Registerer, refused prometheus.Collector, connected func() int) (*metrics, error) {
	streamed := metric.NewCounterVec(prometheus.CounterOpts{
		Name: "voxeld_stream_bytes_total",
		Help: "Bytes on streams with other nodes, without Kademlia, encryption and framing.",
	}, metric.Values("direction", "in", "out"))
	m := &metrics{streamIn: streamed.WithLabelValues("in"), streamOut: streamed.WithLabelValues("out")}
	if reg == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{
		streamed, refused,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "voxeld_peers_connected",
			Help: "Peers with an open connection.",
		}, func() float64 { return float64(connected()) }),
	} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("register transport metrics: %w", err)
		}
	}
	return m, nil
}
