package actor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// ErrLinkClosed is the error of the ends of a closed link; it is wrapped with the cause.
var ErrLinkClosed = errors.New("link closed")

// Subscription is a link within one process. It is also the region's side of every remote link.
type Subscription struct {
	region     *Land
	subscriber *subscriber // for functions in the region's mailbox
	out        *Mailbox[nodemsg.FromRegion]
	credit     chan struct{}        // holds a token for each message that the region has not handled yet
	buffered   []nodemsg.FromRegion // received, and not returned yet
}

// Send sends a message to the region. It blocks while too many messages of the gateway wait.
func (l *Subscription) Send(msg nodemsg.ToRegion) error {
	proven := l.proven(msg.Edits)
	if !l.await() || !l.enqueue(msg, proven) {
		return fmt.Errorf("send to region %d: %w", l.region.ID(), ErrLinkClosed)
	}
	return nil
}

// proven reports of each edit whether its proof is right. That is checked here, so that the region's goroutine need not.
func (l *Subscription) proven(edits []nodemsg.Intent) []bool {
	return l.region.land.Proofs.Proven(edits)
}

// enqueue queues a message for the region; the caller holds a credit for it.
func (l *Subscription) enqueue(msg nodemsg.ToRegion, proven []bool) bool {
	return l.region.mailbox.Put(func() { // as Land.enqueue does, in one closure
		<-l.credit
		if r := l.region.land; r.hub.attached(l.subscriber) {
			r.handleMessage(l.subscriber, msg, proven)
		}
	})
}

// TrySend is a Send that never blocks: it sends the result of take, or reports false without calling take. If the link
// is closed meanwhile, the message is lost, as it is when Send fails.
func (l *Subscription) TrySend(take func() nodemsg.ToRegion) bool {
	select {
	case <-l.out.Ended():
		return false
	default:
	}
	select {
	case l.credit <- struct{}{}:
		msg := take()
		l.enqueue(msg, l.proven(msg.Edits))
		return true
	default:
		return false
	}
}

// await waits for a credit to send one more message. It reports false if the link is closed.
func (l *Subscription) await() bool {
	select {
	case <-l.out.Ended():
		return false
	default:
	}
	select {
	case l.credit <- struct{}{}:
		return true
	case <-l.out.Ended():
		return false
	}
}

// Receive waits for the region's next frame.
func (l *Subscription) Receive(ctx context.Context) (nodemsg.FromRegion, error) {
	return l.ReceiveOrAlive(ctx, 0)
}

// ReceiveOrAlive is Receive that returns an empty frame if none arrives for the duration alive. If alive is 0, it waits
// without limit.
func (l *Subscription) ReceiveOrAlive(ctx context.Context, alive time.Duration) (nodemsg.FromRegion, error) {
	var silent <-chan time.Time
	if alive > 0 {
		timer := time.NewTimer(alive)
		defer timer.Stop()
		silent = timer.C
	}
	for {
		if len(l.buffered) > 0 {
			frame := l.buffered[0]
			l.buffered = l.buffered[1:]
			return frame, nil
		}
		var open bool
		if l.buffered, open = l.out.Drain(); len(l.buffered) > 0 {
			continue
		}
		if !open {
			return nodemsg.FromRegion{}, ErrLinkClosed
		}
		select {
		case <-ctx.Done():
			return nodemsg.FromRegion{}, ctx.Err()
		case <-silent:
			return nodemsg.FromRegion{Alive: true}, nil
		case <-l.out.Wake():
		}
	}
}

// Close ends the subscription. It never fails.
func (l *Subscription) Close() error {
	l.out.Close()
	l.region.enqueue(func(r *land) { r.hub.detach(l.subscriber) })
	return nil
}
