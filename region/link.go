package region

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const (
	// linkBacklog is how many frames (ticks) a gateway may fall behind before its link is cut. It then follows the region again,
	// starting from whole chunks.
	linkBacklog = 200
	// linkCredit is how many messages of one gateway may wait for the region's next tick. Further sends block, so that a late
	// region slows its gateways down instead of accumulating their messages.
	linkCredit = 16
)

// errLinkClosed is the error of the ends of a closed link; it is wrapped with the cause.
var errLinkClosed = errors.New("link closed")

// Link is a gateway's end of its link to the leader of a region.
type Link = transport.Link

// ServeLink serves one link of another node's gateway, until either side ends it.
func (h *Host) ServeLink(ctx context.Context, peer string, stream io.ReadWriteCloser) {
	err := transport.ServeLink(ctx, stream, subscribeTime, func(ctx context.Context, hello nodemsg.Hello) (transport.Subscription, error) {
		return h.subscribe(ctx, hello)
	})
	if err != nil {
		h.Logger.Debug("link ended", "peer", peer, "error", err)
	}
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
	return l.loop.inbox.Put(func() {
		<-l.subscriber.credit
		l.loop.handleMessage(l.subscriber, msg)
	})
}

// TrySend is a Send that never blocks: it sends the result of take, or reports false without calling take. If the link is closed
// meanwhile, the message is lost, as it is when Send fails.
func (l *localLink) TrySend(take func() nodemsg.ToRegion) bool {
	select {
	case <-l.subscriber.out.Ended():
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
	case <-l.subscriber.out.Ended():
		return false
	default:
	}
	select {
	case l.subscriber.credit <- struct{}{}:
		return true
	case <-l.subscriber.out.Ended():
		return false
	}
}

func (l *localLink) Receive(ctx context.Context) (nodemsg.FromRegion, error) {
	return l.ReceiveOrAlive(ctx, 0)
}

// ReceiveOrAlive is Receive that returns an empty frame if none arrives for the duration alive. If alive is 0, it waits without limit.
func (l *localLink) ReceiveOrAlive(ctx context.Context, alive time.Duration) (nodemsg.FromRegion, error) {
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
		if l.subscriber.buffered, open = l.subscriber.out.Drain(); len(l.subscriber.buffered) > 0 {
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
		case <-l.subscriber.out.Wake():
		}
	}
}

func (l *localLink) Close() error {
	l.subscriber.out.Close()
	l.loop.inbox.Put(func() { l.loop.detach(l.subscriber) })
	return nil
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
			g.host.detector.Suspect(g.info.Leader)
		}
	default:
		g.host.Directory.invalidate(g.info)
	}
	return frame, err
}
