package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// helloTime is how long a peer that opened a stream may take to send its hello.
const helloTime = 5 * time.Second

// Subscription is the region's side of a link, within the process of the region.
type Subscription interface {
	Send(nodemsg.ToRegion) error
	// ReceiveOrAlive waits for the region's next frame. If none arrives for the duration, it returns an empty frame
	// with Alive set.
	ReceiveOrAlive(ctx context.Context, alive time.Duration) (nodemsg.FromRegion, error)
	Close() error
}

// ErrQuarantined is the error of a Subscribe on a node that keeps the region closed until an operator releases it.
var ErrQuarantined = errors.New("the region failed repeatedly, and stays closed until it is released: voxeld doctor")

// Subscribe subscribes to a region that is led on this node.
type Subscribe func(context.Context, nodemsg.Hello) (Subscription, error)

// ServeLink serves one link of another node's gateway, until either side ends it. The error is why it ended. A
// subscription may take the time limit.
func ServeLink(ctx context.Context, stream io.ReadWriteCloser, limit time.Duration, subscribe Subscribe) error {
	remote := newRemoteLink(stream)
	stop := context.AfterFunc(ctx, remote.abort)
	defer stop()
	hello, err := remote.hello()
	if err != nil {
		remote.abort()
		return fmt.Errorf("read hello: %w", err)
	}
	local, err := remote.subscribe(ctx, hello, limit, subscribe)
	if err != nil {
		unsent := remote.writeFrame(nodemsg.FromRegion{Closed: Clip(err), Quarantined: errors.Is(err, ErrQuarantined)})
		remote.peerStream.Close() //nolint:errcheck // what was written arrives, or the peer is gone
		return errors.Join(fmt.Errorf("serve region %d: %w", hello.Region, err), unsent)
	}
	var pump sync.WaitGroup
	pump.Go(func() { remote.pump(ctx, local) })
	defer pump.Wait()
	defer local.Close() //nolint:errcheck // never fails
	for {
		msg, err := wire.ReadGuardedFrame[nodemsg.ToRegion](remote.in, wire.MaxFrame, wire.GuardOf(stream))
		if err != nil {
			remote.abort() // the pump may be writing
			return fmt.Errorf("read from gateway: %w", err)
		}
		if len(msg.Edits) > 0 {
			remote.timeout.edited(time.Now())
		}
		if err := local.Send(msg); err != nil {
			return err // the pump transfers the rest, and the reason
		}
	}
}

// subscribe greets the gateway, to show that this node is alive, and then subscribes it.
func (l *remoteLink) subscribe(ctx context.Context, hello nodemsg.Hello, limit time.Duration, subscribe Subscribe) (Subscription, error) {
	if err := l.writeFrame(nodemsg.FromRegion{Alive: true}); err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var greeter sync.WaitGroup
	defer greeter.Wait()
	found := make(chan struct{})
	defer close(found)
	greeter.Go(func() {
		for {
			select {
			case <-found:
				return
			case <-time.After(aliveEvery):
			}
			if err := l.writeFrame(nodemsg.FromRegion{Alive: true}); err != nil {
				cancel()
				return
			}
		}
	})
	return subscribe(waiting, hello)
}

func (l *remoteLink) hello() (nodemsg.Hello, error) {
	late := time.AfterFunc(helloTime, l.abort)
	defer late.Stop()
	return wire.ReadFrame[nodemsg.Hello](l.in, wire.MaxHandshake)
}

// pump transfers the region's frames until the region ends the link. Closing the stream then ends the reading of it,
// too; what was written still arrives.
func (l *remoteLink) pump(ctx context.Context, local Subscription) {
	for {
		frame, err := local.ReceiveOrAlive(ctx, l.timeout.pause(time.Now()))
		if err != nil {
			l.peerStream.Close() //nolint:errcheck // what was written arrives, or the peer is gone
			return
		}
		if err := l.writeFrame(frame); err != nil {
			l.abort()
			return
		}
	}
}
