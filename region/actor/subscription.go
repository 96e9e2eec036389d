package actor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region/mailbox"
	"github.com/voxelpopuli/voxeld/wire"
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

// ErrLinkClosed is the error of the ends of a closed link; it is wrapped with the cause.
var ErrLinkClosed = errors.New("link closed")

func newSubscriber() *subscriber {
	return &subscriber{
		out:    mailbox.New[nodemsg.FromRegion](linkBacklog),
		credit: make(chan struct{}, linkCredit),
		watch:  make(map[grid.ChunkPos]struct{}),
		shown:  make(map[grid.ChunkPos]struct{}),
	}
}

// Subscription is a link within one process. It is also the region's side of every remote link.
type Subscription struct {
	land       *Land
	subscriber *subscriber
}

// Send sends a message to the region. It blocks while too many messages of the gateway wait.
func (l *Subscription) Send(msg nodemsg.ToRegion) error {
	if !l.await() || !l.enqueue(msg) {
		return fmt.Errorf("send to region %d: %w", l.land.info.ID, ErrLinkClosed)
	}
	return nil
}

// enqueue queues a message for the region; the caller holds a credit for it.
func (l *Subscription) enqueue(msg nodemsg.ToRegion) bool {
	return l.land.Enqueue(func() {
		<-l.subscriber.credit
		l.land.handleMessage(l.subscriber, msg)
	})
}

// TrySend is a Send that never blocks: it sends the result of take, or reports false without calling take. If the link is closed
// meanwhile, the message is lost, as it is when Send fails.
func (l *Subscription) TrySend(take func() nodemsg.ToRegion) bool {
	select {
	case <-l.subscriber.out.Ended():
		return false
	default:
	}
	select {
	case l.subscriber.credit <- struct{}{}:
		l.enqueue(take())
		return true
	default:
		return false
	}
}

// await waits for a credit to send one more message. It reports false if the link is closed.
func (l *Subscription) await() bool {
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

// Receive waits for the region's next frame.
func (l *Subscription) Receive(ctx context.Context) (nodemsg.FromRegion, error) {
	return l.ReceiveOrAlive(ctx, 0)
}

// ReceiveOrAlive is Receive that returns an empty frame if none arrives for the duration alive. If alive is 0, it waits without limit.
func (l *Subscription) ReceiveOrAlive(ctx context.Context, alive time.Duration) (nodemsg.FromRegion, error) {
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
			return nodemsg.FromRegion{}, ErrLinkClosed
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

// Close ends the subscription. It never fails.
func (l *Subscription) Close() error {
	l.subscriber.out.Close()
	l.land.Enqueue(func() { l.land.hub.detach(l.subscriber) })
	return nil
}

// Subscribe subscribes a gateway. Reading is set if it accepts a read-only subscription where the disk refuses writes. It returns
// nil if the region is being unloaded. Any goroutine may call it.
func (l *Land) Subscribe(reading bool) *Subscription {
	s := newSubscriber()
	s.reading = reading
	if !l.Enqueue(func() { l.attach(s) }) {
		return nil
	}
	return &Subscription{land: l, subscriber: s}
}

func (l *Land) attach(s *subscriber) {
	l.hub.attach(s)
	l.idle = 0
	l.subscribe(s)
}

// handleMessage applies a message from a gateway, field by field in the order that nodemsg.ToRegion documents.
func (l *Land) handleMessage(s *subscriber, msg nodemsg.ToRegion) {
	if _, subscribed := l.hub.subscribers[s]; !subscribed {
		return
	}
	for _, pos := range msg.Unwatch {
		l.hub.unwatch(s, pos)
	}
	for _, pos := range msg.Watch {
		if l.info.Cell.Contains(pos) {
			l.hub.watch(s, pos)
		}
	}
	if l.readOnly {
		msg = nodemsg.ToRegion{Edits: msg.Edits} // no movement or chat in a quarantined region
	}
	for _, body := range msg.Enter {
		l.contents.crowd.Enter(s.number, body)
	}
	for _, move := range msg.Moves {
		l.contents.crowd.Move(s.number, move)
	}
	for _, id := range msg.Leave {
		l.contents.crowd.Leave(s.number, id)
	}
	refused := ""
	switch {
	case l.readOnly:
		refused = wire.RefusedQuarantined
	case l.stalled != nil:
		refused = wire.RefusedUnavailable
	}
	for _, intent := range msg.Edits {
		l.edits.add(s, intent, refused)
	}
	for _, u := range msg.Chat {
		l.contents.crowd.Chat(u)
	}
}
