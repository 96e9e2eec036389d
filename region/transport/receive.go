package transport

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/internal/background"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// snapshotTime bounds the time that the transfer of snapshotStep bytes of a snapshot takes, and then that of the rest.
const (
	snapshotTime = 2 * time.Minute
	snapshotStep = 1 << 20
)

// progress sets back the alarm each time that snapshotStep bytes were transferred.
type progress struct {
	in    io.Reader
	out   io.Writer
	alarm *time.Timer
	bytes int // since the alarm was set back
}

// whileProgress returns a context that ends when the alarm is not set back for snapshotTime.
func whileProgress(ctx context.Context) (progressing context.Context, alarm *time.Timer, cancel context.CancelFunc) {
	progressing, end := context.WithCancel(ctx)
	alarm = time.AfterFunc(snapshotTime, end)
	return progressing, alarm, func() {
		alarm.Stop()
		end()
	}
}

func (p *progress) Read(b []byte) (int, error) {
	n, err := p.in.Read(b)
	p.count(n)
	return n, err
}

func (p *progress) Write(b []byte) (int, error) {
	n, err := p.out.Write(b)
	p.count(n)
	return n, err
}

func (p *progress) count(n int) {
	if p.bytes += n; p.bytes >= snapshotStep {
		p.bytes = 0
		p.alarm.Reset(snapshotTime)
	}
}

// SendSnapshot opens a stream to the peer, has write fill it, and calls done with the result.
func (c *Carrier) SendSnapshot(peer string, group uint64, write func(io.Writer) error, done func(error)) {
	started := c.tasks.Start(func(ctx context.Context) {
		ctx, alarm, cancel := whileProgress(ctx)
		defer cancel()
		done(c.snapshot(ctx, alarm, peer, group, write))
	})
	if !started {
		done(background.ErrStopping)
	}
}

func (c *Carrier) snapshot(ctx context.Context, alarm *time.Timer, peer string, group uint64, write func(io.Writer) error) error {
	s, stop, err := openStream(ctx, c.peers, peer, SnapshotProtocol)
	if err != nil {
		return err
	}
	defer stop()
	defer s.Close() //nolint:errcheck // the exchange is complete
	if _, err := s.Write(binary.BigEndian.AppendUint64(nil, group)); err != nil {
		return fmt.Errorf("send snapshot: %w", err)
	}
	if err := write(&progress{out: s, alarm: alarm}); err != nil {
		s.abort()
		return err
	}
	var taken [1]byte
	if _, err := io.ReadFull(s, taken[:]); err != nil {
		return fmt.Errorf("receive reply to snapshot: %w", err)
	}
	if taken[0] != 0 {
		return fmt.Errorf("%s refused the snapshot", peer)
	}
	return nil
}

// ServeSnapshot has the snapshot installed that another node sends, and replies whether it was. The error is why it was
// not.
func ServeSnapshot(ctx context.Context, stream io.ReadWriteCloser, install func(ctx context.Context, group uint64, in io.Reader) error) error {
	ctx, alarm, cancel := whileProgress(ctx)
	defer cancel()
	s := newPeerStream(stream)
	stop := context.AfterFunc(ctx, s.abort)
	defer stop()
	var group [8]byte
	_, err := io.ReadFull(s.in, group[:])
	if err == nil {
		err = install(ctx, binary.BigEndian.Uint64(group[:]), &progress{in: s.in, alarm: alarm})
	}
	answer := []byte{0}
	if err != nil {
		answer[0] = 1
	}
	if _, unsent := s.Write(answer); err == nil && unsent != nil {
		return fmt.Errorf("answer snapshot: %w", unsent)
	}
	return err
}

// RaftServer receives raft messages, over one stream from each node: a new stream ends the one before. The zero value
// is ready. Any goroutine may use it.
type RaftServer struct {
	mu      sync.Mutex
	streams map[string]*peerStream
}

// Serve passes the raft messages of another node to receive until the node ends the stream, or begins another one. A
// message is valid until receive returns. The memory that it keeps for the stream counts as the node's.
func (r *RaftServer) Serve(ctx context.Context, peer string, stream io.ReadWriteCloser, receive func(nodemsg.RaftMessage)) error {
	s := newPeerStream(stream)
	stop := context.AfterFunc(ctx, s.abort)
	defer stop()
	r.begin(peer, s)
	defer r.end(peer, s)
	err := s.readRaft(receive)
	if !errors.Is(err, io.EOF) {
		s.abort() // the node may be writing
	}
	return err
}

func (r *RaftServer) begin(peer string, s *peerStream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.streams == nil {
		r.streams = make(map[string]*peerStream)
	}
	if before := r.streams[peer]; before != nil {
		before.abort()
	}
	r.streams[peer] = s
}

func (r *RaftServer) end(peer string, s *peerStream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.streams[peer] == s {
		delete(r.streams, peer)
	}
}

func (s *peerStream) readRaft(receive func(nodemsg.RaftMessage)) error {
	const buffer = 64 << 10
	if holder, ok := s.ReadWriteCloser.(interface {
		Hold(bytes int) (release func(), err error)
	}); ok {
		if _, err := holder.Hold(buffer + nodemsg.MaxKept); err != nil {
			return err // the stream's end releases what was held
		}
	}
	in := nodemsg.RaftReader{R: bufio.NewReaderSize(s.ReadWriteCloser, buffer), Guard: wire.GuardOf(s.ReadWriteCloser)}
	for {
		messages, err := in.Read()
		if err != nil {
			return err
		}
		for _, m := range messages {
			receive(m)
		}
	}
}
