package transport

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
)

// Handle serves a protocol. serve runs in a goroutine of its own for each stream that a peer opens. Its context ends
// when the host is closed, and Close waits for it; the stream is closed when it returns. A second call for the same
// protocol replaces the first.
func (h *Host) Handle(proto string, serve func(ctx context.Context, peer string, stream io.ReadWriteCloser)) {
	h.handle(proto, func(ctx context.Context, peer string, s *Stream) { serve(ctx, peer, s) })
}

func (h *Host) handle(proto string, serve serveFunc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.closed {
		return
	}
	h.mu.handlers[proto] = serve
	h.lib.SetStreamHandler(protocol.ID(proto), func(lib network.Stream) {
		s := h.wrap(lib)
		ctx, done := h.beginHandler(context.Background())
		if done == nil {
			s.Reset()
			return
		}
		defer done()
		defer s.closeQuietly()
		serve(ctx, lib.Conn().RemotePeer().String(), s)
	})
}

// wrap protects the stream's connection from being closed as idle while the stream is open.
func (h *Host) wrap(lib network.Stream) *Stream {
	h.mu.Lock()
	h.mu.last++
	tag := "stream " + strconv.FormatUint(h.mu.last, 10)
	h.mu.Unlock()
	id := lib.Conn().RemotePeer()
	conns := h.lib.ConnManager()
	conns.Protect(id, tag)
	return &Stream{
		conn:            libStream{lib},
		reset:           func() { lib.Reset() }, //nolint:errcheck // a stream that cannot be reset has already ended
		release:         func() { conns.Unprotect(id, tag) },
		checkConnection: func() { h.CheckConnections(id) },
		memory:          lib.Scope(),
		in:              h.metrics.streamIn,
		out:             h.metrics.streamOut,
	}
}

// Open opens a stream to a peer and connects first if necessary; if the peer's address is not known here, Open looks it
// up in the DHT. A stream to oneself is a pipe to the local handler.
// The error is ErrNotServed when the peer does not serve the protocol. If cached protocol information is outdated, only
// the first Read or Write returns it.
func (h *Host) Open(ctx context.Context, peer, proto string) (io.ReadWriteCloser, error) {
	s, err := h.open(ctx, peer, proto)
	if err != nil {
		return nil, fmt.Errorf("open %s to %s: %w", proto, peer, err)
	}
	return s, nil
}

func (h *Host) open(ctx context.Context, name, proto string) (*Stream, error) {
	id, err := peer.Decode(name)
	if err != nil {
		return nil, fmt.Errorf("parse peer id: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if id == h.lib.ID() {
		return h.openToSelf(proto)
	}
	if err := h.reach(ctx, id); err != nil {
		return nil, err
	}
	lib, err := h.lib.NewStream(network.WithAllowLimitedConn(ctx, "open"), id, protocol.ID(proto))
	if err != nil {
		if isTimeout(err) {
			h.CheckConnections(id)
		}
		return nil, notServed(err)
	}
	return h.wrap(lib), nil
}

func (h *Host) openToSelf(proto string) (*Stream, error) {
	h.mu.Lock()
	serve := h.mu.handlers[proto]
	h.mu.Unlock()
	if serve == nil {
		return nil, ErrNotServed
	}
	ctx, done := h.beginHandler(context.Background())
	if done == nil {
		return nil, ErrClosed
	}
	near, far := net.Pipe()
	end := func(c net.Conn) func() {
		return func() { c.Close() } //nolint:errcheck // a pipe's Close always succeeds
	}
	nothing := func() {}
	go func() {
		defer done()
		defer h.lib.panics.Recover("stream", end(far), "protocol", proto)
		// Closing the host must end the pipe, as it ends streams to peers.
		stop := context.AfterFunc(ctx, end(far))
		defer stop()
		s := &Stream{conn: far, reset: end(far), release: nothing, checkConnection: nothing}
		defer s.closeQuietly()
		serve(ctx, h.PeerID(), s)
	}()
	return &Stream{conn: near, reset: end(near), release: nothing, checkConnection: nothing}, nil
}
