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
		Name: "voxeld_overlay_packets_total", Help: "Packets of movement exchanged with other gateways, one a tick at most with each.",
	}, []string{"direction"})
	bytes := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "voxeld_overlay_packet_bytes_total", Help: "Bytes of these packets.",
	}, []string{"direction"})
	refused := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "voxeld_overlay_refused_total",
		Help: "Updates of movement of other gateways that were farther away than a player can have got.",
	})
	r.MustRegister(packets, bytes, refused)
	return metrics{
		packetsIn: packets.WithLabelValues("in"), packetsOut: packets.WithLabelValues("out"),
		bytesIn: bytes.WithLabelValues("in"), bytesOut: bytes.WithLabelValues("out"),
		refused: refused,
	}
}
