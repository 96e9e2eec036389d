package dht

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/multiformats/go-multistream"
	"github.com/prometheus/client_golang/prometheus"
)

// ErrNotServed means that the peer is reachable, but does not serve the protocol.
var ErrNotServed = errors.New("peer does not serve this protocol")

// openTimeout bounds opening a stream when the caller sets no deadline: address lookup, dial and negotiation.
const openTimeout = 15 * time.Second

// Stream is one ordered, encrypted byte stream with a peer. Handle and Open return it as an io.ReadWriteCloser; a caller
// that needs deadlines asserts the method.
type Stream struct {
	conn interface {
		io.ReadWriteCloser
		SetDeadline(time.Time) error
		SetReadDeadline(time.Time) error
		SetWriteDeadline(time.Time) error
	}
	reset           func()
	release         func()
	checkConnection func()             // called when the peer is silent, to check the connection
	in, out         prometheus.Counter // of bytes; nil for a stream to oneself
}

// Read reads what the peer wrote; io.EOF after the peer has closed its side.
func (s *Stream) Read(p []byte) (int, error) {
	n, err := uncheckedReader{s}.Read(p)
	return n, s.checkOnTimeout(err)
}

// uncheckedReader reads from a stream on which the peer may be silent: a timeout does not trigger a check.
type uncheckedReader struct{ stream *Stream }

func (p uncheckedReader) Read(b []byte) (int, error) {
	n, err := p.stream.conn.Read(b)
	if p.stream.in != nil {
		p.stream.in.Add(float64(n))
	}
	return n, err
}

// Write sends bytes to the peer. It blocks while the peer does not read.
func (s *Stream) Write(p []byte) (int, error) {
	n, err := s.conn.Write(p)
	if s.out != nil {
		s.out.Add(float64(n))
	}
	return n, s.checkOnTimeout(err)
}

// checkOnTimeout has the connection checked if the error is a timeout.
func (s *Stream) checkOnTimeout(err error) error {
	if err != nil && isTimeout(err) {
		s.checkConnection()
	}
	return notServed(err)
}

// Close ends the stream in both directions. Data written before still arrives.
func (s *Stream) Close() error {
	s.release()
	return s.conn.Close()
}

// Reset ends the stream in both directions at once; the peer sees an error. The caller may have waited for the peer in
// vain, so the connection is checked: if it is dead, all streams on it end.
func (s *Stream) Reset() {
	s.release()
	s.reset()
	s.checkConnection()
}

// SetDeadline bounds reads and writes. The zero time means no bound.
func (s *Stream) SetDeadline(t time.Time) error { return s.conn.SetDeadline(t) }

// SetReadDeadline bounds reads.
func (s *Stream) SetReadDeadline(t time.Time) error { return s.conn.SetReadDeadline(t) }

// SetWriteDeadline bounds writes.
func (s *Stream) SetWriteDeadline(t time.Time) error { return s.conn.SetWriteDeadline(t) }

// Handle serves a protocol. serve runs in a goroutine of its own for each stream that a peer opens. Its context ends when
// the host is closed, and Close waits for it; the stream is closed when it returns. A second call for the same protocol
// replaces the first.
func (h *Host) Handle(proto string, serve func(ctx context.Context, peer string, stream io.ReadWriteCloser)) {
	h.handle(proto, func(ctx context.Context, peer string, s *Stream) { serve(ctx, peer, s) })
}

type serveFunc func(ctx context.Context, peer string, stream *Stream)

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

// beginHandler registers a handler. Its context also ends when the host is closed, and Close waits until done is called.
// If the host is already closing, done is nil.
func (h *Host) beginHandler(parent context.Context) (ctx context.Context, done func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.closed {
		return nil, nil
	}
	ctx, cancel := context.WithCancel(parent)
	h.mu.last++
	name := h.mu.last
	h.mu.running[name] = cancel
	h.serves.Add(1)
	return ctx, func() {
		cancel()
		h.mu.Lock()
		delete(h.mu.running, name)
		h.mu.Unlock()
		h.serves.Done()
	}
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
		conn:            lib,
		reset:           func() { lib.Reset() }, //nolint:errcheck // a stream that cannot be reset has already ended
		release:         func() { conns.Unprotect(id, tag) },
		checkConnection: func() { h.checkConnections(id) },
		in:              h.metrics.streamIn,
		out:             h.metrics.streamOut,
	}
}

// closeQuietly closes a stream and ignores the error.
func (s *Stream) closeQuietly() {
	if err := s.Close(); err != nil {
		s.Reset()
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
			h.checkConnections(id)
		}
		return nil, notServed(err)
	}
	return h.wrap(lib), nil
}

// reach connects to a peer, by the addresses known here or by those found in the DHT.
func (h *Host) reach(ctx context.Context, id peer.ID) error {
	if h.lib.Network().Connectedness(id) == network.Connected {
		return nil
	}
	h.mu.Lock()
	find, closed := h.mu.find, h.mu.closed
	h.mu.Unlock()
	if closed {
		return ErrClosed
	}
	h.mayDial(id)
	known := h.lib.Peerstore().Addrs(id)
	var dialed error
	if len(known) > 0 || find == nil {
		dialed = h.lib.Connect(ctx, peer.AddrInfo{ID: id})
		if dialed == nil || find == nil || ctx.Err() != nil || !h.maySearch(id) {
			return dialed
		}
	}
	info, err := find(ctx, id)
	if err != nil {
		return errors.Join(dialed, fmt.Errorf("find its address: %w", err))
	}
	return h.lib.Connect(ctx, info)
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
		// Closing the host must end the pipe, as it ends streams to peers.
		stop := context.AfterFunc(ctx, end(far))
		defer stop()
		s := &Stream{conn: far, reset: end(far), release: nothing, checkConnection: nothing}
		defer s.closeQuietly()
		serve(ctx, h.PeerID(), s)
	}()
	return &Stream{conn: near, reset: end(near), release: nothing, checkConnection: nothing}, nil
}

// notServed converts libp2p's errors for an unknown protocol to ErrNotServed.
func notServed(err error) error {
	var unknown multistream.ErrNotSupported[protocol.ID]
	if errors.As(err, &unknown) {
		return ErrNotServed
	}
	return err
}
