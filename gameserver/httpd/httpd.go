// Package httpd serves the browser client's files, the node's health, and the WebSockets on which sessions run.
package httpd

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/voxelpopuli/voxeld/gameserver/park"
	"github.com/voxelpopuli/voxeld/gameserver/realip"
	"github.com/voxelpopuli/voxeld/gameserver/weborigin"
	"github.com/voxelpopuli/voxeld/internal/isolate"
	"github.com/voxelpopuli/voxeld/wire"
)

// requestTimeout and replyTimeout bound how long a browser may take to send a request and to fetch a file, idleTimeout
// how long a connection is kept for the next request. They do not apply to WebSockets.
const requestTimeout, replyTimeout, idleTimeout = 30 * time.Second, 5 * time.Minute, 15 * time.Second

// Options are the dependencies of a server.
type Options struct {
	Files    fs.FS // the browser client's
	Preview  Preview
	Ready    func() error // why the node should not be sent players now; nil if it may
	Surface  http.Handler // of /surface, surface tiles
	Textures http.Handler // of /textures/{hash}, the world's texture pack
	Map      func() (about Map, public bool)
	Session  func(ctx context.Context, w http.ResponseWriter, r *http.Request)
	Services http.Handler      // of /api/, programs with a key
	Pages    *weborigin.Policy // which pages may reach the node
	TLS      *tls.Config       // nil: plain HTTP
	Proxies  realip.Proxies
	Admit    func(remote net.Addr) (release func(), ok bool) // counts a connection, not a WebSocket, against its address
	Requests *prometheus.CounterVec                          // by code
	Panics   *isolate.Panics                                 // of requests
	Logger   *slog.Logger
}

// StatusCodes returns the status codes that the server answers with: values of the label of Options.Requests.
func StatusCodes() []string {
	var all []string
	for _, code := range []int{
		http.StatusSwitchingProtocols, http.StatusOK, http.StatusPartialContent, http.StatusMovedPermanently, http.StatusNotModified,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden,
		http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusConflict, http.StatusPreconditionFailed, http.StatusRequestEntityTooLarge,
		http.StatusRequestedRangeNotSatisfiable, http.StatusMisdirectedRequest, http.StatusUpgradeRequired, http.StatusTooManyRequests,
		http.StatusInternalServerError, http.StatusNotImplemented, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
	} {
		all = append(all, strconv.Itoa(code))
	}
	return all
}

// Serve serves until ctx ends or the listener fails, and returns when every session has ended.
func Serve(ctx context.Context, l net.Listener, o Options) error {
	ctx, end := context.WithCancel(ctx)
	var sockets handlerGroup
	defer sockets.close()
	defer end() // the sessions of this listener, even when only the listener has failed
	client, err := newFiles(o.Files, o.Preview)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", o.Pages.KnownHosts(client))
	mux.Handle("GET /map", o.Pages.KnownHosts(publicMap(o.Map, client)))
	mux.Handle("GET /map/world", o.Pages.KnownHosts(publicMap(o.Map, nil)))
	mux.Handle("GET /surface", o.Pages.KnownPages(o.Surface))
	mux.Handle("GET /surface/", o.Pages.KnownPages(o.Surface))
	awaited := func(serve http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if !sockets.enter() {
				http.Error(w, "the server is stopping", http.StatusServiceUnavailable)
				return
			}
			defer sockets.leave()
			serve(w, r)
		}
	}
	mux.Handle("GET /textures/{hash}", o.Pages.KnownPages(o.Textures))
	mux.Handle("GET /ws", o.Pages.KnownPages(awaited(func(w http.ResponseWriter, r *http.Request) { o.Session(ctx, w, r) })))
	services := awaited(func(w http.ResponseWriter, r *http.Request) {
		within, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		o.Services.ServeHTTP(w, r.WithContext(within))
	})
	mux.Handle("GET /api/", services) // a page does not have a key: it need not be known
	mux.Handle("POST /api/", services)
	// Health checks name a node as they like, and learn no more than that it runs.
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { report(w, nil) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { report(w, o.Ready()) })
	return serve(ctx, l, o, withHeaders(mux))
}

// ServeRedirect serves plain HTTP with a handler that redirects to HTTPS, within the same limits.
func ServeRedirect(ctx context.Context, l net.Listener, o Options, handler http.Handler) error {
	o.TLS = nil
	return serve(ctx, l, o, handler)
}

func serve(ctx context.Context, l net.Listener, o Options, handler http.Handler) error {
	count := newConnections(o.Proxies, o.Admit)
	handler = isolatePanics(promhttp.InstrumentHandlerCounter(o.Requests, handler), o.Panics)
	server := &http.Server{
		Handler:           o.Proxies.Handler(handler, o.Logger),
		ReadHeaderTimeout: wire.HandshakeTimeout, // of a TLS handshake, too
		ReadTimeout:       requestTimeout,
		WriteTimeout:      replyTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    64 << 10,
		ConnState:         count.track,
		ErrorLog:          slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug), // clients' errors; see isolatePanics
	}
	stop := context.AfterFunc(ctx, func() { server.Close() }) //nolint:errcheck // Serve reports it
	defer stop()
	l = o.Proxies.Listener(l, wire.HandshakeTimeout)
	if o.TLS != nil {
		l = tls.NewListener(park.TransportListener(l), o.TLS)
	}
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve http: %w", err)
	}
	return nil
}

// isolatePanics handles panics of requests, which end only their own connection. The server would log them like
// clients' errors.
func isolatePanics(next http.Handler, panics *isolate.Panics) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer panics.Recover("request", func() { panic(http.ErrAbortHandler) }, "path", r.URL.Path)
		next.ServeHTTP(w, r)
	})
}

// handlerGroup counts running handlers, and admits none once it is closed.
type handlerGroup struct {
	running sync.WaitGroup

	mu struct {
		sync.Mutex
		closed bool
	}
}

// enter reports false when the group is closed.
func (h *handlerGroup) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.mu.closed {
		h.running.Add(1)
	}
	return !h.mu.closed
}

func (h *handlerGroup) leave() { h.running.Done() }

// close waits until all handlers have returned.
func (h *handlerGroup) close() {
	h.mu.Lock()
	h.mu.closed = true
	h.mu.Unlock()
	h.running.Wait()
}

func report(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "application/json")
	status := map[string]string{"status": "ok"}
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		status = map[string]string{"status": "not ready", "reason": wire.ErrorText(err)}
	}
	json.NewEncoder(w).Encode(status) //nolint:errcheck,errchkjson // the client left
}
