package p2p

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/internal/metric"
)

// metrics are the driver's metrics; docs/data/metrics.csv explains each.
type metrics struct {
	packetsIn, packetsOut prometheus.Counter
	bytesIn, bytesOut     prometheus.Counter
	refused               prometheus.Counter
}

func newMetrics(r prometheus.Registerer) metrics {
	direction := metric.Values("direction", "in", "out")
	packets := metric.NewCounterVec(prometheus.CounterOpts{
		Name: "voxeld_overlay_packets_total", Help: "Movement packets exchanged with other gateways.",
	}, direction)
	bytes := metric.NewCounterVec(prometheus.CounterOpts{
		Name: "voxeld_overlay_packet_bytes_total", Help: "Bytes of movement packets exchanged with other gateways.",
	}, direction)
	refused := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "voxeld_overlay_refused_total",
		Help: "Movement of other gateways refused: farther away than the player can have moved.",
	})
	r.MustRegister(packets, bytes, refused)
	return metrics{
		packetsIn: packets.WithLabelValues("in"), packetsOut: packets.WithLabelValues("out"),
		bytesIn: bytes.WithLabelValues("in"), bytesOut: bytes.WithLabelValues("out"),
		refused: refused,
	}
}
