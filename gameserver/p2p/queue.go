package p2p

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/gameserver/wake"
)

// This file sends packets of movement to other gateways, over one stream each. A gateway that falls behind misses
// packets; later ones make up for them.

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
	peer    string
	streams Streams
	log     *slog.Logger
	metrics *metrics
	wake    wake.Signal // packets were queued

	mu struct {
		sync.Mutex
		packets [][]byte // at most queueBacklog; the oldest is dropped
		ended   bool     // nothing is written any more
	}
}

func newPeerQueue(peer string, streams Streams, log *slog.Logger, m *metrics) *peerQueue {
	return &peerQueue{peer: peer, streams: streams, log: log, metrics: m, wake: wake.NewSignal()}
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

// run writes packets to a gateway, until the queue was idle for long or ctx ends.
func (q *peerQueue) run(ctx context.Context) {
	for ctx.Err() == nil {
		stream, err := q.streams.Open(ctx, q.peer, Protocol)
		if err == nil {
			err = q.write(ctx, stream)
		}
		if errors.Is(err, errIdle) {
			if q.end() {
				return
			}
			continue
		}
		q.log.Debug("gateway not reached", "peer", q.peer, "error", err)
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
func (q *peerQueue) write(ctx context.Context, stream io.ReadWriteCloser) error {
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
			q.metrics.packetsOut.Inc()
			q.metrics.bytesOut.Add(float64(len(p)))
		}
		idle.Reset(queueIdle)
	}
}
