package region

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const (
	// LinkProtocol names the streams that carry links, without the world's prefix.
	LinkProtocol = "/link/3"

	// linkBacklog is how many frames (ticks) a gateway may fall behind before its link is cut. It then follows the region again,
	// starting from whole chunks.
	linkBacklog = 200
	// linkCredit is how many messages of one gateway may wait for the region's next tick. Further sends block, so that a late
	// region slows its gateways down instead of accumulating their messages.
	linkCredit = 16
	// writeTime is how long a stream may take to accept one frame. A slower stream is considered dead.
	writeTime = 10 * time.Second
	// aliveEvery is how often the region's node sends a frame when it has nothing else to send, and silence is how long no frame
	// may arrive before the link is given up. Both apply while a player has edited lately, and until the subscription is
	// accepted.
	aliveEvery     = 250 * time.Millisecond
	silenceTimeout = 1200 * time.Millisecond
	// calmEvery and calmTimeout are the same for links without recent edits. Most links are such, since players see further than
	// they reach. The first edit must be answered within silenceTimeout, so calmEvery is well below that.
	calmEvery   = 750 * time.Millisecond
	calmTimeout = 3 * time.Second
	// eagerFor is how long after an edit a gateway uses the short intervals. The region uses them for twice as long, because it
	// receives the edit later.
	eagerFor = 5 * time.Second
)

// errLinkClosed is the error of the ends of a closed link; it is wrapped with the cause.
var errLinkClosed = errors.New("link closed")

// Link is a gateway's end of its link to the leader of a region. One goroutine may call Send while another calls Receive. Close
// makes both return.
type Link interface {
	// Send sends a message to the region. It may block while the stream is full.
	Send(nodemsg.ToRegion) error
	// Receive waits for the region's next frame.
	Receive(ctx context.Context) (nodemsg.FromRegion, error)
	Close() error
}

// localLink is a link within one process. It is also the region's side of every remote link.
type localLink struct {
	loop       *loop
	subscriber *subscriber
}

func (l *localLink) Send(msg nodemsg.ToRegion) error {
	if !l.await() || !l.put(msg) {
		return fmt.Errorf("send to region %d: %w", l.loop.info.ID, errLinkClosed)
	}
	return nil
}

// put queues a message for the loop; the caller holds a credit for it.
func (l *localLink) put(msg nodemsg.ToRegion) bool {
	return l.loop.inbox.put(func() {
		<-l.subscriber.credit
		l.loop.handleMessage(l.subscriber, msg)
	})
}

// TrySend is a Send that never blocks: it sends the result of take, or reports false without calling take. If the link is closed
// meanwhile, the message is lost, as it is when Send fails.
func (l *localLink) TrySend(take func() nodemsg.ToRegion) bool {
	select {
	case <-l.subscriber.out.ended:
		return false
	default:
	}
	select {
	case l.subscriber.credit <- struct{}{}:
		l.put(take())
		return true
	default:
		return false
	}
}

// await waits for a credit to send one more message. It reports false if the link is closed.
func (l *localLink) await() bool {
	select {
	case <-l.subscriber.out.ended:
		return false
	default:
	}
	select {
	case l.subscriber.credit <- struct{}{}:
		return true
	case <-l.subscriber.out.ended:
		return false
	}
}

func (l *localLink) Receive(ctx context.Context) (nodemsg.FromRegion, error) {
	return l.receive(ctx, 0)
}

// receive is Receive that returns an empty frame if none arrives for the duration alive. If alive is 0, it waits without limit.
func (l *localLink) receive(ctx context.Context, alive time.Duration) (nodemsg.FromRegion, error) {
	var silent <-chan time.Time
	if alive > 0 {
		timer := time.NewTimer(alive)
		defer timer.Stop()
		silent = timer.C
	}
	for {
		if len(l.subscriber.buffered) > 0 {
			frame := l.subscriber.buffered[0]
			l.subscriber.buffered = l.subscriber.buffered[1:]
			return frame, nil
		}
		var open bool
		if l.subscriber.buffered, open = l.subscriber.out.drain(); len(l.subscriber.buffered) > 0 {
			continue
		}
		if !open {
			return nodemsg.FromRegion{}, errLinkClosed
		}
		select {
		case <-ctx.Done():
			return nodemsg.FromRegion{}, ctx.Err()
		case <-silent:
			return nodemsg.FromRegion{Alive: true}, nil
		case <-l.subscriber.out.wake:
		}
	}
}

func (l *localLink) Close() error {
	l.subscriber.out.close()
	l.loop.inbox.put(func() { l.loop.detach(l.subscriber) })
	return nil
}

// remoteLink is a link over a stream to another node.
type remoteLink struct {
	stream  io.ReadWriteCloser
	in      *bufio.Reader
	timeout linkTimeout
}

func newRemoteLink(stream io.ReadWriteCloser) *remoteLink {
	l := &remoteLink{stream: stream, in: bufio.NewReader(stream)}
	l.timeout.onExpiry = l.abort
	return l
}

func (l *remoteLink) Send(msg nodemsg.ToRegion) error {
	if len(msg.Edits) > 0 {
		l.timeout.edited(time.Now())
	}
	if err := l.write(msg); err != nil {
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
		frame, err := wire.ReadFrame[nodemsg.FromRegion](l.in, wire.MaxFrame)
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

// write writes one frame. A stream that does not accept it in time is closed.
func (l *remoteLink) write(v interface{ Valid() error }) error {
	late := time.AfterFunc(writeTime, l.abort)
	defer late.Stop()
	return wire.WriteFrame(l.stream, v)
}

// abort closes the stream at once, even while it is read or written. It may be called repeatedly.
func (l *remoteLink) abort() {
	if s, ok := l.stream.(interface{ Reset() }); ok {
		s.Reset()
		return
	}
	l.stream.Close() //nolint:errcheck // readers and writers get an error
}

// routedLink is the end of a link that was found by a route. If the other side ends the link, the route is corrected or
// invalidated.
type routedLink struct {
	Link
	host *Host
	info nodemsg.Region
}

// TrySend is the TrySend of a link within this process. It reports false for a link to another node, which may block.
func (g routedLink) TrySend(take func() nodemsg.ToRegion) bool {
	local, ok := g.Link.(*localLink)
	return ok && local.TrySend(take)
}

func (g routedLink) Receive(ctx context.Context) (nodemsg.FromRegion, error) {
	frame, err := g.Link.Receive(ctx)
	switch {
	case frame.Closed != "" && frame.Leader != "":
		g.host.Directory.moved(g.info, frame.Leader)
	case frame.Closed == "" && (err == nil || ctx.Err() != nil):
	case len(g.info.Members) > 1:
		// Another member will lead; the other members know which one.
		if frame.Closed == "" && g.info.Leader != g.host.Self.Peer {
			g.host.unresponsive.add(g.info.Leader)
		}
	default:
		g.host.Directory.invalidate(g.info)
	}
	return frame, err
}
