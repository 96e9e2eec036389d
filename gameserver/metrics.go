package gameserver

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/voxelpopuli/voxeld/gameserver/httpd"
	"github.com/voxelpopuli/voxeld/gameserver/outbox"
	"github.com/voxelpopuli/voxeld/internal/isolate"
	"github.com/voxelpopuli/voxeld/internal/metric"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// metrics are the gateway's metrics; docs/data/metrics.csv explains each.
type metrics struct {
	sessions     prometheus.Gauge
	joins        *prometheus.CounterVec // by outcome
	requests     *prometheus.CounterVec // by code
	frameSeconds prometheus.Histogram
	skipped      prometheus.Counter
	moved        *prometheus.CounterVec // by outcome: followed, disconnected, no_target

	messagesIn, messagesOut, bytesIn, bytesOut prometheus.Counter
	corrections, refusals, denials             *prometheus.CounterVec // of moves, edits and interactions, by reason

	panics *isolate.Panics // of what is served to players
}

func newMetrics(r prometheus.Registerer) *metrics {
	auto := promauto.With(r)
	vector := func(name, help, label string, values ...string) *prometheus.CounterVec {
		v := metric.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, metric.Values(label, values...))
		r.MustRegister(v)
		return v
	}
	messages := vector("voxeld_packets_total", "Messages exchanged with clients.", "direction", "in", "out")
	bytes := vector("voxeld_packet_bytes_total", "Bytes of messages exchanged with clients, without framing.", "direction", "in", "out")
	m := &metrics{
		sessions: auto.NewGauge(prometheus.GaugeOpts{Name: "voxeld_sessions", Help: "Open sessions of players."}),
		joins: vector("voxeld_joins_total", "Players who joined, or could not: joined, joined_original (VoxelPopuli's client), redirected (this node drains), gone (the client left first), internal, or the code of the refusal (docs/protocol.md).", "outcome",
			append([]string{"joined", "joined_original", "redirected", "gone"}, wire.FailLabels()...)...),
		requests:    vector("voxeld_http_requests_total", "HTTP requests served; 101 is a session over WebSocket, counted when it ends.", "code", httpd.StatusCodes()...),
		messagesIn:  messages.WithLabelValues("in"),
		messagesOut: messages.WithLabelValues("out"),
		bytesIn:     bytes.WithLabelValues("in"),
		bytesOut:    bytes.WithLabelValues("out"),
		corrections: vector("voxeld_move_corrections_total", "Player moves refused and corrected.", "reason",
			player.NotFinite, player.OutOfWorld, player.TooFast, insideBlock, wire.RefusedClaimed, wire.RefusedOutsideBorder),
		frameSeconds: auto.NewHistogram(prometheus.HistogramOpts{
			Name: "voxeld_gateway_tick_seconds", Help: "Time to encode the movement of one tick and queue it for all sessions.", Buckets: region.TickBuckets,
		}),
		skipped:  auto.NewCounter(prometheus.CounterOpts{Name: "voxeld_motion_skipped_total", Help: "Movement updates skipped because a session had not drained the last one."}),
		refusals: vector("voxeld_edit_refusals_total", "Edits refused.", "reason", wire.RefusalLabels()...),
		denials: vector("voxeld_interaction_refusals_total", "Hits and gifts refused.", "reason",
			sessionmsg.DeniedUnknownPlayer, sessionmsg.DeniedSelf, sessionmsg.DeniedOutOfReach, sessionmsg.DeniedBehindBlock, sessionmsg.DeniedRate,
			sessionmsg.DeniedUnknownBlock, sessionmsg.DeniedNotPlaceable, sessionmsg.DeniedUnavailable),
		moved: vector("voxeld_sessions_moved_total", "Sessions closed because this node was drained: followed (now on another node), disconnected (did not leave in time), no_target.", "outcome", followed, cutOff, noTarget),
	}
	return m
}

// noteRefusedJoin counts a player who could not join.
func (m *metrics) noteRefusedJoin(err error) {
	outcome := "gone"
	switch last := failureOf(err).(type) {
	case sessionmsg.Reconnect:
		outcome = "redirected"
	case sessionmsg.Failure:
		outcome = last.Code
	}
	m.joins.WithLabelValues(outcome).Inc()
}

func (m *metrics) sent(bytes int) {
	m.messagesOut.Inc()
	m.bytesOut.Add(float64(bytes))
}

// posted counts what the frame loop has written, once for all sessions.
func (m *metrics) posted(p *outbox.FrameWriter) {
	messages, bytes := p.Counts()
	m.messagesOut.Add(float64(messages))
	m.bytesOut.Add(float64(bytes))
}

func (m *metrics) received(bytes int) {
	m.messagesIn.Inc()
	m.bytesIn.Add(float64(bytes))
}
