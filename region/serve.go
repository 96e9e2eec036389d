package region

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// helloTime is how long a peer that opened a stream may take to send its hello.
const helloTime = 5 * time.Second

// ServeLink serves one link of another node's gateway, until either side ends it.
func (h *Host) ServeLink(ctx context.Context, peer string, stream io.ReadWriteCloser) {
	remote := newRemoteLink(stream)
	stop := context.AfterFunc(ctx, remote.abort)
	defer stop()
	if err := h.serveLink(ctx, remote); err != nil {
		h.Logger.Debug("link ended", "peer", peer, "error", err)
	}
}

func (h *Host) serveLink(ctx context.Context, remote *remoteLink) error {
	hello, err := remote.hello()
	if err != nil {
		remote.abort()
		return fmt.Errorf("read hello: %w", err)
	}
	local, err := h.greetAndSubscribe(ctx, remote, hello)
	if err != nil {
		told := remote.write(nodemsg.FromRegion{Closed: clip(err.Error())})
		remote.stream.Close() //nolint:errcheck // what was written arrives, or the peer is gone
		return errors.Join(fmt.Errorf("serve region %d: %w", hello.Region, err), told)
	}
	var pump sync.WaitGroup
	pump.Go(func() { remote.pump(ctx, local) })
	defer pump.Wait()
	defer local.Close() //nolint:errcheck // never fails
	for {
		msg, err := wire.ReadFrame[nodemsg.ToRegion](remote.in, wire.MaxFrame)
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

// greetAndSubscribe greets the gateway, to show that this node is alive, and then subscribes it.
func (h *Host) greetAndSubscribe(ctx context.Context, remote *remoteLink, hello nodemsg.Hello) (*localLink, error) {
	if err := remote.write(nodemsg.FromRegion{Alive: true}); err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, subscribeTime)
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
			if err := remote.write(nodemsg.FromRegion{Alive: true}); err != nil {
				cancel()
				return
			}
		}
	})
	return h.subscribe(waiting, hello)
}

func (l *remoteLink) hello() (nodemsg.Hello, error) {
	late := time.AfterFunc(helloTime, l.abort)
	defer late.Stop()
	return wire.ReadFrame[nodemsg.Hello](l.in, wire.MaxHandshake)
}

// pump transfers the region's frames until the region ends the link. Closing the stream then ends the reading of it, too; what
// was written still arrives.
func (l *remoteLink) pump(ctx context.Context, local *localLink) {
	for {
		frame, err := local.receive(ctx, l.timeout.pause(time.Now()))
		if err != nil {
			l.stream.Close() //nolint:errcheck // what was written arrives, or the peer is gone
			return
		}
		if err := l.write(frame); err != nil {
			local.loop.logger.Debug("link broke", "region", local.loop.info.ID, "error", err)
			l.abort()
			return
		}
	}
}

// clip makes a text valid for the wire.
func clip(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), wire.MaxErrorText)], "")
}
