package gameserver

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// This file sends packets of movement to other gateways, over one stream each. A gateway that falls behind misses packets; later
// ones make up for them.

// OverlayProtocol is the protocol id of movement between gateways of a world; ServeOverlay serves it.
const OverlayProtocol = "/overlay/2"

const (
	// maxPacket is the longest packet, in bytes.
	maxPacket = 1 << 20
	// queueBacklog is the number of packets that may wait for a gateway.
	queueBacklog = 4
	// queueTimeout bounds the writing of a packet, and queuePause is the time between attempts to reach a gateway.
	queueTimeout, queuePause = 2 * time.Second, time.Second
	// queueIdle is the time after which an unused queue ends.
	queueIdle = 30 * time.Second
)

// Streams opens streams to other nodes.
type Streams interface {
	Open(ctx context.Context, peer, protocol string) (io.ReadWriteCloser, error)
}

// peerQueue is the queue of packets to one other gateway.
type peerQueue struct {
	peer string
	wake chan struct{}

	mu struct {
		sync.Mutex
		packets [][]byte // at most queueBacklog; the oldest is dropped
	}
}

// send queues a packet if the gateway can be reached.
func (d *p2pDriver) send(peer string, packet []byte) {
	if peer == d.g.Peer || len(packet) > maxPacket {
		return
	}
	d.mu.Lock()
	q := d.mu.queues[peer]
	isNew := q == nil
	if isNew {
		q = &peerQueue{peer: peer, wake: make(chan struct{}, 1)}
		d.mu.queues[peer] = q
	}
	d.mu.Unlock()
	q.mu.Lock()
	if len(q.mu.packets) == queueBacklog {
		q.mu.packets = q.mu.packets[1:]
	}
	q.mu.packets = append(q.mu.packets, packet)
	q.mu.Unlock()
	wakeUp(q.wake)
	if isNew {
		d.g.run(func(ctx context.Context) { d.runQueue(ctx, q) })
	}
}

// takeAll removes and returns the waiting packets.
func (q *peerQueue) takeAll() [][]byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	packets := q.mu.packets
	q.mu.packets = nil
	return packets
}

func (q *peerQueue) idle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.mu.packets) == 0
}

// runQueue writes packets to a gateway, until the queue was idle for long or ctx ends. A packet queued just before the end is
// lost; the next one starts a new queue.
func (d *p2pDriver) runQueue(ctx context.Context, q *peerQueue) {
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.mu.queues, q.peer)
	}()
	for ctx.Err() == nil {
		stream, err := d.g.Streams.Open(ctx, q.peer, OverlayProtocol)
		if err == nil {
			err = d.write(ctx, q, stream)
			if errors.Is(err, errEnded) {
				return
			}
		}
		d.g.Logger.Debug("connect to gateway", "peer", q.peer, "error", err)
		q.takeAll() // the waiting packets are outdated then
		select {
		case <-ctx.Done():
		case <-time.After(queuePause):
		}
		if q.idle() {
			return
		}
	}
}

// write sends packets over a stream until it fails; errEnded means that the queue was idle for long.
func (d *p2pDriver) write(ctx context.Context, q *peerQueue, stream io.ReadWriteCloser) error {
	stop := context.AfterFunc(ctx, func() { stream.Close() }) //nolint:errcheck // the write below reports it
	defer stop()
	defer stream.Close() //nolint:errcheck // the other side expects nothing more
	idle := time.NewTimer(queueIdle)
	defer idle.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-idle.C:
			return errEnded
		case <-q.wake:
		}
		for _, p := range q.takeAll() {
			late := time.AfterFunc(queueTimeout, func() { stream.Close() }) //nolint:errcheck // the write reports it
			_, err := stream.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(p))), p...))
			late.Stop()
			if err != nil {
				return fmt.Errorf("write packet: %w", err)
			}
			d.g.metrics.packetsOut.Inc()
			d.g.metrics.p2pOut.Add(float64(len(p)))
		}
		idle.Reset(queueIdle)
	}
}

// ServeOverlay receives another gateway's packets, until the stream or ctx ends.
func (g *Gateway) ServeOverlay(ctx context.Context, peer string, stream io.ReadWriteCloser) {
	stop := context.AfterFunc(ctx, func() { stream.Close() }) //nolint:errcheck // the read below reports it
	defer stop()
	if err := g.p2p.read(ctx, peer, bufio.NewReader(stream)); !isClosed(err) {
		g.Logger.Debug("receive movement from gateway", "peer", peer, "error", err)
	}
}

func (d *p2pDriver) read(ctx context.Context, peer string, in *bufio.Reader) error {
	if !d.enabled() {
		return nil
	}
	var head [4]byte
	var packet []byte
	for {
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return err
		}
		size := binary.BigEndian.Uint32(head[:])
		if size > maxPacket {
			return fmt.Errorf("packet of %d bytes exceeds the limit", size)
		}
		if uint32(cap(packet)) < size {
			packet = make([]byte, size)
		}
		packet = packet[:size]
		if _, err := io.ReadFull(in, packet); err != nil {
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
