package p2p

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/voxelpopuli/voxeld/overlay"
	"github.com/voxelpopuli/voxeld/wire"
)

// This file receives the packets of other gateways.

// Serve receives another gateway's packets, until the stream or ctx ends. It may be called by any goroutine, while Run
// runs.
func (d *Driver) Serve(ctx context.Context, peer string, stream io.ReadWriteCloser) {
	stop := context.AfterFunc(ctx, func() { stream.Close() }) //nolint:errcheck // the read below reports it
	defer stop()
	if err := d.read(ctx, peer, bufio.NewReader(stream), wire.GuardOf(stream)); err != nil && ctx.Err() == nil && !errors.Is(err, io.EOF) {
		d.Logger.Debug("movement stream from gateway ended", "peer", peer, "error", err)
	}
}

func (d *Driver) read(ctx context.Context, peer string, in *bufio.Reader, guard wire.Guard) error {
	if !d.Enabled() {
		return nil
	}
	var packet []byte
	for {
		size, err := wire.ReadFrameSize(in, maxPacket)
		if err != nil {
			return err
		}
		if packet, err = guard.ReadBody(in, packet, size); err != nil {
			return err
		}
		places, err := d.receive(peer, packet)
		select {
		case d.received <- peerPlaces{peer, places}:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

// receive applies a packet of another gateway, and returns the places in it.
func (d *Driver) receive(peer string, packet []byte) (places []overlay.Update, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	messages, err := overlay.ReadPacket(packet, func(to overlay.ID) (overlay.Reference, bool) {
		m := d.mu.locals[to]
		if m == nil {
			return overlay.Reference{}, false
		}
		return overlay.Reference{At: m.at, Round: d.mu.remotes.round}, true
	})
	d.metrics.packetsIn.Inc()
	d.metrics.bytesIn.Add(float64(len(packet)))
	places = d.deliverHere(messages)
	if err != nil {
		return places, fmt.Errorf("packet of %s: %w", peer, err)
	}
	return places, nil
}
