// Package httpd serves the browser client's files, the node's health, and the WebSockets on which sessions run. Only package
// gameserver imports it.
package httpd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/wire"
)

// requestTimeout and replyTimeout bound how long a browser may take to send a request and to fetch a file. They do not apply to
// WebSockets.
const requestTimeout, replyTimeout = 30 * time.Second, 5 * time.Minute

// Options are the dependencies of a server.
type Options struct {
	Files   fs.FS        // the browser client's
	Ready   func() error // why the node should not be sent players now; nil if it may
	Session func(ctx context.Context, w http.ResponseWriter, r *http.Request)
}

// Serve serves until ctx ends or the listener fails, and returns when every session has ended.
func Serve(ctx context.Context, l net.Listener, o Options) error {
	ctx, end := context.WithCancel(ctx)
	var sockets handlerGroup
	defer sockets.close()
	defer end() // the sessions of this listener, even when only the listener has failed
	mux := http.NewServeMux()
	mux.Handle("GET /", files(http.FileServerFS(o.Files)))
	mux.HandleFunc("GET /ws", func(w http.ResponseWriter, r *http.Request) {
		if !sockets.enter() {
			http.Error(w, "the server is stopping", http.StatusServiceUnavailable)
			return
		}
		defer sockets.leave()
		o.Session(ctx, w, r)
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { report(w, nil) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { report(w, o.Ready()) })
	server := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: wire.HandshakeTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      replyTimeout,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
	}
	stop := context.AfterFunc(ctx, func() { server.Close() }) //nolint:errcheck // Serve reports it
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve http: %w", err)
	}
	return nil
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

// files lets browsers cache only files with a hash in their name; directories are not listed.
func files(server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" && strings.HasSuffix(r.URL.Path, "/") {
			http.NotFound(w, r)
			return
		}
		if strings.HasPrefix(r.URL.Path, "/assets/") {
			w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		} else {
			w.Header().Set("Cache-Control", "no-cache")
		}
		w.Header().Set("X-Content-Type-Options", "nosniff")
		server.ServeHTTP(w, r)
	})
}

func report(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "application/json")
	status := map[string]string{"status": "ok"}
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		status = map[string]string{"status": "not ready", "reason": err.Error()}
	}
	json.NewEncoder(w).Encode(status) //nolint:errcheck,errchkjson // the client left
}
