package gameserver

import "github.com/prometheus/client_golang/prometheus"

// metrics are the gateway's metrics; docs/metrics.md explains each.
type metrics struct {
	sessions     prometheus.Gauge
	refused      prometheus.Counter
	requests     *prometheus.CounterVec // by code
	messagesIn   prometheus.Counter
	messagesOut  prometheus.Counter
	bytesIn      prometheus.Counter
	bytesOut     prometheus.Counter
	corrections  *prometheus.CounterVec // by reason
	refusals     *prometheus.CounterVec // by reason
	denials      *prometheus.CounterVec // by reason
	frameSeconds prometheus.Histogram
	skipped      prometheus.Counter
	moved        *prometheus.CounterVec // by outcome: followed, disconnected, no_target
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
	bytes := vector("voxeld_packet_bytes_total", "Bytes of messages exchanged with clients, without framing.", "direction")
	return &metrics{
		sessions:     gauge("voxeld_sessions", "Open player sessions on this gateway."),
		refused:      counter("voxeld_connections_refused_total", "Game connections refused, or closed because of a client error."),
		requests:     vector("voxeld_http_requests_total", "HTTP requests served, by status code; 101 is a session over WebSocket, counted when it ends.", "code"),
		messagesIn:   messages.WithLabelValues("in"),
		messagesOut:  messages.WithLabelValues("out"),
		bytesIn:      bytes.WithLabelValues("in"),
		bytesOut:     bytes.WithLabelValues("out"),
		corrections:  vector("voxeld_move_corrections_total", "Player moves refused and corrected, by reason.", "reason"),
		frameSeconds: histogram("voxeld_gateway_tick_seconds", "Time to encode the movement of one tick and queue it for all sessions, in seconds."),
		skipped:      counter("voxeld_motion_skipped_total", "Movement updates skipped because a session had not drained the previous one."),
		refusals:     vector("voxeld_edit_refusals_total", "Edits refused, by reason.", "reason"),
		denials:      vector("voxeld_interaction_refusals_total", "Interactions between players (hits and gifts) refused, by reason.", "reason"),
		moved: vector("voxeld_sessions_moved_total", "Sessions closed because this node was drained, by outcome: "+
			"followed (reconnected to another node), disconnected (the client did not leave in time), no_target (no other node accepted players).", "outcome"),
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
