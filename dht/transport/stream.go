package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/multiformats/go-multistream"
	"github.com/prometheus/client_golang/prometheus"
)

// ErrNotServed means that the peer is reachable, but does not serve the protocol.
var ErrNotServed = errors.New("peer does not serve this protocol")

// openTimeout bounds opening a stream when the caller sets no deadline: address lookup, dial and negotiation.
const openTimeout = 15 * time.Second

// Stream is one ordered, encrypted byte stream with a peer. Handle and Open return it as an io.ReadWriteCloser; a
// caller that needs deadlines asserts the method.
type Stream struct {
	conn interface {
		io.ReadWriteCloser
		SetDeadline(time.Time) error
		SetReadDeadline(time.Time) error
		SetWriteDeadline(time.Time) error
	}
	reset           func()
	release         func()
	checkConnection func()                // called when the peer is silent, to check the connection
	memory          network.ResourceScope // of what the peer has sent in part; nil for a stream to oneself
	in, out         prometheus.Counter    // of bytes; nil for a stream to oneself
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

// libStream is a libp2p stream whose Close does not wait for the peer. libp2p's does, for up to 10 s, until the peer
// has agreed to the protocol, unless the stream is closed for reading.
type libStream struct{ network.Stream }

func (s libStream) Close() error { return errors.Join(s.CloseRead(), s.Stream.Close()) }

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

// Hold counts bytes as memory that the peer uses here, until release is called or the stream ends. The error is that
// the peer, or all of them together, would use too much.
func (s *Stream) Hold(bytes int) (release func(), err error) {
	if s.memory == nil {
		return func() {}, nil
	}
	if err := s.memory.ReserveMemory(bytes, network.ReservationPriorityAlways); err != nil {
		return nil, fmt.Errorf("hold %d bytes: %w", bytes, err)
	}
	return func() { s.memory.ReleaseMemory(bytes) }, nil
}

// frameTime bounds the arrival of a frame, once it has begun.
const frameTime = 10 * time.Second

// Guard is a wire.Guard: it counts what is missing of a frame as memory that the peer uses here, and resets the stream
// if it does not arrive in time.
func (s *Stream) Guard(missing int) (done func(), err error) {
	release, err := s.Hold(missing)
	if err != nil {
		return nil, err
	}
	late := time.AfterFunc(frameTime, s.Reset)
	return func() {
		late.Stop()
		release()
	}, nil
}

// closeQuietly closes a stream and ignores the error.
func (s *Stream) closeQuietly() {
	if err := s.Close(); err != nil {
		s.Reset()
	}
}

// notServed converts libp2p's errors for an unknown protocol to ErrNotServed.
func notServed(err error) error {
	var unknown multistream.ErrNotSupported[protocol.ID]
	if errors.As(err, &unknown) {
		return ErrNotServed
	}
	return err
}

// isTimeout reports whether the error is the timeout of a stream's deadline or of a context.
func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}
