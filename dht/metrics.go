package dht

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/internal/metric"
)

// The kinds of walks through the keyspace, a label of the metrics.
const (
	kindRegion    = "region"
	kindPlayer    = "player"
	kindNearest   = "nearest"
	kindAddress   = "address"
	kindPutRegion = "put_region"
	kindPutPlayer = "put_player"
)

// metrics of a node's part in the network, labelled by kind only.
type metrics struct {
	lookups   *prometheus.CounterVec
	straight  prometheus.Counter
	failures  *prometheus.CounterVec
	contacted *prometheus.HistogramVec
	seconds   *prometheus.HistogramVec
	redials   *prometheus.CounterVec
}

// newMetrics registers the metrics. tableSize returns the number of peers in the routing table.
func newMetrics(reg prometheus.Registerer, tableSize func() int) (*metrics, error) {
	kinds := metric.Values("kind", kindRegion, kindPlayer, kindNearest, kindAddress, kindPutRegion, kindPutPlayer)
	m := &metrics{
		lookups: metric.NewCounterVec(prometheus.CounterOpts{
			Name: "voxeld_dht_lookups_total",
			Help: "DHT lookups, including those before a put.",
		}, kinds),
		straight: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "voxeld_dht_direct_puts_total",
			Help: "Player records put without a lookup.",
		}),
		failures: metric.NewCounterVec(prometheus.CounterOpts{
			Name: "voxeld_dht_lookup_failures_total",
			Help: "DHT lookups that failed; a missing record is no failure.",
		}, kinds),
		contacted: metric.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "voxeld_dht_lookup_contacted_peers",
			Help:    "Peers contacted per DHT lookup.",
			Buckets: []float64{0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64},
		}, kinds),
		seconds: metric.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "voxeld_dht_lookup_seconds",
			Help:    "Duration of a DHT lookup.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
		}, kinds),
		redials: metric.NewCounterVec(prometheus.CounterOpts{
			Name: "voxeld_dht_redials_total",
			Help: "Attempts to connect to bootstrap addresses and known peers.",
		}, metric.Values("result", "reached", "failed")),
	}
	if reg == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{
		m.lookups, m.straight, m.failures, m.contacted, m.seconds, m.redials,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "voxeld_dht_table_peers",
			Help: "Peers in the Kademlia routing table.",
		}, func() float64 { return float64(tableSize()) }),
	} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("register dht metrics: %w", err)
		}
	}
	return m, nil
}
