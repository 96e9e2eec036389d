package p2p

import "github.com/prometheus/client_golang/prometheus"

// metrics are the driver's metrics; docs/metrics.md explains each.
type metrics struct {
	packetsIn, packetsOut prometheus.Counter
	bytesIn, bytesOut     prometheus.Counter
	refused               prometheus.Counter
}

func newMetrics(r prometheus.Registerer) metrics {
	packets := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "voxeld_overlay_packets_total", Help: "Movement packets exchanged with other gateways.",
	}, []string{"direction"})
	bytes := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "voxeld_overlay_packet_bytes_total", Help: "Bytes of movement packets exchanged with other gateways.",
	}, []string{"direction"})
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
