package p2p

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/gameserver/wake"
)

// This file sends packets of movement to other gateways, over one stream each. A gateway that falls behind misses packets; later
// ones make up for them.

// Protocol is the protocol id of movement between gateways of a world; Driver.Serve serves it.
const Protocol = "/overlay/2"

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
	wake wake.Signal // packets were queued

	mu struct {
		sync.Mutex
		packets [][]byte // at most queueBacklog; the oldest is dropped
		ended   bool     // nothing is written any more
	}
}

// send queues a packet if the gateway can be reached. Run starts the queues.
func (d *Driver) send(peer string, packet []byte, start func(*peerQueue)) {
	if peer == d.Peer || len(packet) > maxPacket {
		return
	}
	q := d.queues[peer]
	if q == nil || !q.enqueue(packet) {
		maps.DeleteFunc(d.queues, func(_ string, q *peerQueue) bool { return q.ended() })
		q = &peerQueue{peer: peer, wake: wake.NewSignal()}
		d.queues[peer] = q
		q.enqueue(packet)
		start(q)
	}
}

// enqueue queues a packet. It reports false if the queue has ended.
func (q *peerQueue) enqueue(packet []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mu.ended {
		return false
	}
	if len(q.mu.packets) == queueBacklog {
		q.mu.packets = q.mu.packets[1:]
	}
	q.mu.packets = append(q.mu.packets, packet)
	q.wake.Set()
	return true
}

func (q *peerQueue) ended() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.mu.ended
}

// end ends the queue, unless packets wait.
func (q *peerQueue) end() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.ended = len(q.mu.packets) == 0
	return q.mu.ended
}

// takeAll removes and returns the waiting packets.
func (q *peerQueue) takeAll() [][]byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	packets := q.mu.packets
	q.mu.packets = nil
	return packets
}

// runQueue writes packets to a gateway, until the queue was idle for long or ctx ends.
func (d *Driver) runQueue(ctx context.Context, q *peerQueue) {
	for ctx.Err() == nil {
		stream, err := d.Streams.Open(ctx, q.peer, Protocol)
		if err == nil {
			err = d.write(ctx, q, stream)
		}
		if errors.Is(err, errIdle) {
			if q.end() {
				return
			}
			continue
		}
		d.Logger.Debug("connect to gateway", "peer", q.peer, "error", err)
		q.takeAll() // the waiting packets are outdated then
		select {
		case <-ctx.Done():
		case <-time.After(queuePause):
		}
		if q.end() {
			return
		}
	}
}

// errIdle ends the stream of an idle queue.
var errIdle = errors.New("nothing to send for long")

// write sends packets over a stream until it fails; errIdle means that the queue was idle for long.
func (d *Driver) write(ctx context.Context, q *peerQueue, stream io.ReadWriteCloser) error {
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
			return errIdle
		case <-q.wake:
		}
		for _, p := range q.takeAll() {
			late := time.AfterFunc(queueTimeout, func() { stream.Close() }) //nolint:errcheck // the write reports it
			_, err := stream.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(p))), p...))
			late.Stop()
			if err != nil {
				return fmt.Errorf("write packet: %w", err)
			}
			d.metrics.packetsOut.Inc()
			d.metrics.bytesOut.Add(float64(len(p)))
		}
		idle.Reset(queueIdle)
	}
}

// Serve receives another gateway's packets, until the stream or ctx ends. It may be called by any goroutine, while Run runs.
func (d *Driver) Serve(ctx context.Context, peer string, stream io.ReadWriteCloser) {
	stop := context.AfterFunc(ctx, func() { stream.Close() }) //nolint:errcheck // the read below reports it
	defer stop()
	if err := d.read(ctx, peer, bufio.NewReader(stream)); err != nil && ctx.Err() == nil && !errors.Is(err, io.EOF) {
		d.Logger.Debug("receive movement from gateway", "peer", peer, "error", err)
	}
}

func (d *Driver) read(ctx context.Context, peer string, in *bufio.Reader) error {
	if !d.Enabled() {
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
