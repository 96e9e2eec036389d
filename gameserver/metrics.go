package gameserver

import "github.com/prometheus/client_golang/prometheus"

// metrics are the gateway's metrics; docs/metrics.md explains each.
type metrics struct {
	sessions     prometheus.Gauge
	refused      prometheus.Counter
	messagesIn   prometheus.Counter
	messagesOut  prometheus.Counter
	bytesIn      prometheus.Counter
	bytesOut     prometheus.Counter
	corrections  *prometheus.CounterVec // by reason
	refusals     *prometheus.CounterVec // by reason
	denials      *prometheus.CounterVec // by reason
	frameSeconds prometheus.Histogram
	skipped      prometheus.Counter
	moved        *prometheus.CounterVec // by outcome: followed, cut, homeless
}

// tickBuckets are those of a region's tick metric, so that the two can be added.
var tickBuckets = []float64{.0001, .00025, .0005, .001, .0025, .005, .0075, .01, .015, .02, .025, .03, .035, .04, .045, .05, .06, .075, .1, .25, .5, 1}

func newMetrics(r prometheus.Registerer) *metrics {
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
		r.MustRegister(g)
		return g
	}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		r.MustRegister(c)
		return c
	}
	vector := func(name, help, label string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
		r.MustRegister(c)
		return c
	}
	histogram := func(name, help string) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: tickBuckets})
		r.MustRegister(h)
		return h
	}
	messages := vector("voxeld_packets_total", "Messages exchanged with clients.", "direction")
	bytes := vector("voxeld_packet_bytes_total", "Bytes of the messages exchanged with clients, framing not counted.", "direction")
	return &metrics{
		sessions:     gauge("voxeld_sessions", "Players who hold a session on this gateway."),
		refused:      counter("voxeld_connections_refused_total", "Game connections that were refused, or ended by an error of the client."),
		messagesIn:   messages.WithLabelValues("in"),
		messagesOut:  messages.WithLabelValues("out"),
		bytesIn:      bytes.WithLabelValues("in"),
		bytesOut:     bytes.WithLabelValues("out"),
		corrections:  vector("voxeld_move_corrections_total", "Moves that were refused.", "reason"),
		frameSeconds: histogram("voxeld_gateway_tick_seconds", "How long the gateway took to make a tick's motion and to hand it to all sessions."),
		skipped:      counter("voxeld_motion_skipped_total", "Ticks whose motion was left out for a session that had not taken what was sent before."),
		refusals:     vector("voxeld_edit_refusals_total", "Edits that were refused.", "reason"),
		denials:      vector("voxeld_deed_refusals_total", "Hits and gifts between players that were refused.", "reason"),
		moved: vector("voxeld_sessions_moved_total", "Sessions that were ended because this node was drained, by what became of them: "+
			"followed to another node, cut off because the client did not leave in time, homeless because no other node took players.", "outcome"),
	}
}

func (m *metrics) sent(bytes int) {
	m.messagesOut.Inc()
	m.bytesOut.Add(float64(bytes))
}

// posted counts what the frame loop has written, once for all sessions.
func (m *metrics) posted(p *frameWriter) {
	m.messagesOut.Add(float64(p.messages))
	m.bytesOut.Add(float64(p.bytes))
	p.messages, p.bytes = 0, 0
}

func (m *metrics) received(bytes int) {
	m.messagesIn.Inc()
	m.bytesIn.Add(float64(bytes))
}
