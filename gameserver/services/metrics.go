package services

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/voxelpopuli/voxeld/internal/metric"
)

// metrics are those of the API; docs/data/metrics.csv explains each.
type metrics struct {
	requests *prometheus.CounterVec // by request and outcome
	edits    *prometheus.CounterVec // by outcome
	events   *prometheus.CounterVec // by event
	streams  prometheus.Gauge
}

// Outcomes of requests.
const (
	answered = "answered"
	refused  = "refused"
	failed   = "failed"
)

// outcomeOf returns the outcome of a request.
func outcomeOf(err error) string {
	switch {
	case err == nil:
		return answered
	case refusalOf(err).status < http.StatusInternalServerError:
		return refused
	}
	return failed
}

func newMetrics(r prometheus.Registerer) *metrics {
	var names []string
	for _, to := range routes {
		names = append(names, to.name())
	}
	auto := promauto.With(r)
	m := &metrics{
		requests: metric.NewCounterVec(prometheus.CounterOpts{
			Name: "voxeld_service_requests_total", Help: "Requests of services: answered, refused (the request is wrong, or not allowed), or failed (this node or the land could not answer).",
		}, metric.Values("request", names...), metric.Values("outcome", answered, refused, failed)),
		edits: metric.NewCounterVec(prometheus.CounterOpts{
			Name: "voxeld_service_edits_total", Help: "Edits of services that were answered: applied, or refused. A bulk edit counts once.",
		}, metric.Values("outcome", "applied", refused)),
		events: metric.NewCounterVec(prometheus.CounterOpts{
			Name: "voxeld_service_events_total", Help: "Events sent to services.",
		}, metric.Values("event", "ready", "edit", "chat", "players", "join", "leave", "end")),
		streams: auto.NewGauge(prometheus.GaugeOpts{Name: "voxeld_service_streams", Help: "Open streams of events of services."}),
	}
	r.MustRegister(m.requests, m.edits, m.events)
	return m
}
