// Package isolate lets a panic end one connection, subscription or stream of a node instead of the daemon. It is for
// goroutines whose state others do not depend on, and for locks that are released by defer. A region's loop and raft
// must not use it: their state is shared with other nodes.
//
// Floor 0: of this module it imports only metric.
package isolate

import (
	"errors"
	"log/slog"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/internal/metric"
)

// Panics logs and counts panics. Any goroutine may use it.
type Panics struct {
	count *prometheus.CounterVec // by where
	log   *slog.Logger
}

// New returns a Panics. All of a node share one metric; a nil registerer registers nowhere.
func New(log *slog.Logger, r prometheus.Registerer) *Panics {
	count := metric.NewCounterVec(prometheus.CounterOpts{
		Name: "voxeld_panics_total",
		Help: "Panics (bugs) that ended one part only: connection and writer (of a player), request (HTTP), query (of a player), subscription (of a region), stream (of another node).",
	}, metric.Values("where", "connection", "writer", "request", "query", "subscription", "stream"))
	if r != nil {
		var before prometheus.AlreadyRegisteredError
		if err := r.Register(count); errors.As(err, &before) {
			count = before.ExistingCollector.(*prometheus.CounterVec)
		} else if err != nil {
			panic(err)
		}
	}
	return &Panics{count, log}
}

// Recover ends a panic: it logs it with its stack and the attributes, counts it, and calls end. It must be deferred
// itself. Without a panic it does nothing.
func (p *Panics) Recover(where string, end func(), attributes ...any) {
	v := recover()
	if v == nil {
		return
	}
	p.count.WithLabelValues(where).Inc()
	p.log.Error("panic: only this part has ended; please report it",
		append([]any{"where", where, "panic", v, "stack", string(debug.Stack())}, attributes...)...)
	end()
}
