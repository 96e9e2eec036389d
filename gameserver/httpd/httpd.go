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
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/wire"
)

// requestTimeout and replyTimeout bound how long a browser may take to send a request and to fetch a file, idleTimeout how long a
// connection is kept for the next request. They do not apply to WebSockets.
const requestTimeout, replyTimeout, idleTimeout = 30 * time.Second, 5 * time.Minute, 15 * time.Second

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
	client, err := newFiles(o.Files)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", client)
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
		Handler:           withHeaders(mux),
		ReadHeaderTimeout: wire.HandshakeTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      replyTimeout,
		IdleTimeout:       idleTimeout,
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

func report(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "application/json")
	status := map[string]string{"status": "ok"}
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		status = map[string]string{"status": "not ready", "reason": err.Error()}
	}
	json.NewEncoder(w).Encode(status) //nolint:errcheck,errchkjson // the client left
}
