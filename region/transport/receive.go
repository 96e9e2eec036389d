package transport

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"github.com/voxelpopuli/voxeld/region/background"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// snapshotTime bounds the transfer of one snapshot.
const snapshotTime = 2 * time.Minute

// SendSnapshot opens a stream to the peer, has write fill it, and calls done with the result.
func (c *Carrier) SendSnapshot(peer string, group uint64, write func(io.Writer) error, done func(error)) {
	started := c.tasks.Start(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, snapshotTime)
		defer cancel()
		done(c.snapshot(ctx, peer, group, write))
	})
	if !started {
		done(background.ErrStopping)
	}
}

func (c *Carrier) snapshot(ctx context.Context, peer string, group uint64, write func(io.Writer) error) error {
	s, stop, err := openStream(ctx, c.peers, peer, SnapshotProtocol)
	if err != nil {
		return err
	}
	defer stop()
	defer s.Close() //nolint:errcheck // the exchange is complete
	if _, err := s.Write(binary.BigEndian.AppendUint64(nil, group)); err != nil {
		return fmt.Errorf("send snapshot: %w", err)
	}
	if err := write(s); err != nil {
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

// ServeSnapshot has the snapshot installed that another node sends, and replies whether it was. The error is why it was not.
func ServeSnapshot(ctx context.Context, stream io.ReadWriteCloser, install func(ctx context.Context, group uint64, in io.Reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, snapshotTime)
	defer cancel()
	s := newPeerStream(stream)
	stop := context.AfterFunc(ctx, s.abort)
	defer stop()
	var group [8]byte
	_, err := io.ReadFull(s.in, group[:])
	if err == nil {
		err = install(ctx, binary.BigEndian.Uint64(group[:]), s.in)
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

// ServeRaft passes the raft messages of another node to receive until the node ends the stream. A message is valid until receive
// returns.
func ServeRaft(ctx context.Context, stream io.ReadWriteCloser, receive func(nodemsg.RaftMessage)) error {
	stop := context.AfterFunc(ctx, newPeerStream(stream).abort)
	defer stop()
	in := nodemsg.RaftReader{R: bufio.NewReaderSize(stream, 64<<10)}
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
