package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const (
	// answerTime bounds how long a live node takes to answer a hello.
	answerTime = time.Second
)

// Link is a gateway's end of its link to the leader of a region. One goroutine may call Send while another calls
// Receive. Close makes both return.
type Link interface {
	// Send sends a message to the region. It may block while the stream is full.
	Send(nodemsg.ToRegion) error
	// Receive waits for the region's next frame.
	Receive(ctx context.Context) (nodemsg.FromRegion, error)
	Close() error
}

// Follow opens a link to the region on another node and waits for the node's greeting.
func Follow(ctx context.Context, peers Peers, peer string, hello nodemsg.Hello) (Link, error) {
	early, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	stream, err := peers.Open(early, peer, LinkProtocol)
	if err != nil {
		return nil, err
	}
	link := newRemoteLink(stream)
	stop := context.AfterFunc(early, link.abort)
	defer stop()
	if err := link.writeFrame(hello); err != nil {
		link.abort()
		return nil, err
	}
	if err := link.greeting(); err != nil {
		link.abort()
		return nil, err
	}
	return link, nil
}

// remoteLink is a link over a stream to another node.
type remoteLink struct {
	*peerStream

	guard   wire.Guard
	timeout linkTimeout
}

func newRemoteLink(stream io.ReadWriteCloser) *remoteLink {
	l := &remoteLink{peerStream: newPeerStream(stream), guard: wire.GuardOf(stream)}
	l.timeout.onExpiry = l.abort
	return l
}

func (l *remoteLink) Send(msg nodemsg.ToRegion) error {
	if len(msg.Edits) > 0 {
		l.timeout.edited(time.Now())
	}
	if err := l.writeFrame(msg); err != nil {
		return fmt.Errorf("send to region: %w", err)
	}
	return nil
}

func (l *remoteLink) Receive(ctx context.Context) (nodemsg.FromRegion, error) {
	stop := context.AfterFunc(ctx, l.abort) // the read below reports it
	defer stop()
	l.timeout.begin(time.Now())
	defer l.timeout.end()
	for {
		frame, err := wire.ReadGuardedFrame[nodemsg.FromRegion](l.in, wire.MaxFrame, l.guard)
		if err != nil {
			return frame, fmt.Errorf("receive from region: %w", err)
		}
		if !frame.Alive {
			return frame, nil
		}
		l.timeout.begin(time.Now())
	}
}

// greeting waits for the first frame, which only shows that the other side is alive. The caller bounds the wait.
func (l *remoteLink) greeting() error {
	frame, err := wire.ReadFrame[nodemsg.FromRegion](l.in, wire.MaxFrame)
	if err != nil {
		return fmt.Errorf("wait for region: %w", err)
	}
	if !frame.Alive {
		return errors.New("wait for region: first frame is not a greeting")
	}
	return nil
}

func (l *remoteLink) Close() error {
	l.abort()
	return nil
}
