package transport

import (
	"bufio"
	"context"
	"io"
	"time"

	"github.com/voxelpopuli/voxeld/wire"
)

// writeTime is how long a stream may take to accept one frame. A slower stream is considered dead.
const writeTime = 10 * time.Second

// peerStream is a stream to another node that can be ended at once.
type peerStream struct {
	io.ReadWriteCloser
	in *bufio.Reader
}

func newPeerStream(stream io.ReadWriteCloser) *peerStream {
	return &peerStream{ReadWriteCloser: stream, in: bufio.NewReader(stream)}
}

// openStream opens a stream that is aborted when ctx ends, until stop is called.
func openStream(ctx context.Context, peers Peers, peer, protocol string) (s *peerStream, stop func() bool, err error) {
	stream, err := peers.Open(ctx, peer, protocol)
	if err != nil {
		return nil, nil, err
	}
	s = newPeerStream(stream)
	return s, context.AfterFunc(ctx, s.abort), nil
}

// writeFrame writes one frame. A stream that does not accept it in time is closed.
func (s *peerStream) writeFrame(v interface{ Valid() error }) error {
	late := time.AfterFunc(writeTime, s.abort)
	defer late.Stop()
	return wire.WriteFrame(s, v)
}

// abort closes the stream at once, even while it is read or written. It may be called repeatedly.
func (s *peerStream) abort() {
	if r, ok := s.ReadWriteCloser.(interface{ Reset() }); ok {
		r.Reset()
		return
	}
	s.Close() //nolint:errcheck // readers and writers get an error
}
