package httpd

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// pipes is a listener of connections in memory.
type pipes struct{ accepted chan net.Conn }

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p.accepted
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (p pipes) Close() error   { close(p.accepted); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// pipe is a connection from an address.
type pipe struct{ net.Conn }

func (pipe) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1} }

// A connection that sends no further request is closed within 15 seconds; one that sends none at all, when the time of
// a handshake is over.
func TestIdleConnectionsAreClosed(t *testing.T) {
	for name, text := range map[string]string{"after a page": getPage, "at once": ""} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				listener := pipes{make(chan net.Conn)}
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error)
				go func() {
					ended <- Serve(ctx, listener, Options{
						Files: client, Admit: func(net.Addr) (func(), bool) { return func() {}, true }, Logger: slog.New(slog.DiscardHandler),
						Requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "requests_total", Help: "Requests."}, []string{"code"}),
						Session:  func(context.Context, http.ResponseWriter, *http.Request) {}, Surface: http.NotFoundHandler(),
					})
				}()
				ours, theirs := net.Pipe()
				listener.accepted <- pipe{theirs}
				go io.WriteString(ours, text) //nolint:errcheck // the answer shows it
				start := time.Now()
				answer, err := io.ReadAll(ours)
				if took := time.Since(start); err != nil || took > 15*time.Second || (len(answer) > 0) != (text != "") {
					t.Errorf("closed after %v with %d bytes sent: %v", took, len(answer), err)
				}
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
