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
	// lineBacklog is the number of packets that may wait for a gateway.
	lineBacklog = 4
	// lineTimeout bounds the writing of a packet, and linePause is the time between attempts to reach a gateway.
	lineTimeout, linePause = 2 * time.Second, time.Second
	// lineIdle is the time after which an unused queue ends.
	lineIdle = 30 * time.Second
)

// Streams opens streams to other nodes.
type Streams interface {
	Open(ctx context.Context, peer, protocol string) (io.ReadWriteCloser, error)
}

// line is the queue of packets to one other gateway.
type line struct {
	peer string
	wake chan struct{}

	mu struct {
		sync.Mutex
		packets [][]byte // at most lineBacklog; the oldest is dropped
	}
}

// send queues a packet if the gateway can be reached.
func (w *swarm) send(peer string, packet []byte) {
	if peer == w.g.Peer || len(packet) > maxPacket {
		return
	}
	w.mu.Lock()
	l := w.mu.lines[peer]
	isNew := l == nil
	if isNew {
		l = &line{peer: peer, wake: make(chan struct{}, 1)}
		w.mu.lines[peer] = l
	}
	w.mu.Unlock()
	l.mu.Lock()
	if len(l.mu.packets) == lineBacklog {
		l.mu.packets = l.mu.packets[1:]
	}
	l.mu.packets = append(l.mu.packets, packet)
	l.mu.Unlock()
	wakeUp(l.wake)
	if isNew {
		w.g.run(func(ctx context.Context) { w.runLine(ctx, l) })
	}
}

// take removes and returns the waiting packets.
func (l *line) take() [][]byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	packets := l.mu.packets
	l.mu.packets = nil
	return packets
}

func (l *line) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.mu.packets) == 0
}

// runLine writes packets to a gateway, until the queue was idle for long or ctx ends. A packet queued just before the end is
// lost; the next one starts a new queue.
func (w *swarm) runLine(ctx context.Context, l *line) {
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.mu.lines, l.peer)
	}()
	for ctx.Err() == nil {
		stream, err := w.g.Streams.Open(ctx, l.peer, OverlayProtocol)
		if err == nil {
			err = w.write(ctx, l, stream)
			if errors.Is(err, errEnded) {
				return
			}
		}
		w.g.Logger.Debug("gateway not reached", "peer", l.peer, "error", err)
		l.take() // the waiting packets are outdated then
		select {
		case <-ctx.Done():
		case <-time.After(linePause):
		}
		if l.idle() {
			return
		}
	}
}

// write sends packets over a stream until it fails; errEnded means that the queue was idle for long.
func (w *swarm) write(ctx context.Context, l *line, stream io.ReadWriteCloser) error {
	stop := context.AfterFunc(ctx, func() { stream.Close() }) //nolint:errcheck // the write below reports it
	defer stop()
	defer stream.Close() //nolint:errcheck // the other side expects nothing more
	idle := time.NewTimer(lineIdle)
	defer idle.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-idle.C:
			return errEnded
		case <-l.wake:
		}
		for _, p := range l.take() {
			late := time.AfterFunc(lineTimeout, func() { stream.Close() }) //nolint:errcheck // the write reports it
			_, err := stream.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(p))), p...))
			late.Stop()
			if err != nil {
				return fmt.Errorf("write packet: %w", err)
			}
			w.g.metrics.packetsOut.Inc()
			w.g.metrics.swarmOut.Add(float64(len(p)))
		}
		idle.Reset(lineIdle)
	}
}

// ServeOverlay receives another gateway's packets, until the stream or ctx ends.
func (g *Gateway) ServeOverlay(ctx context.Context, peer string, stream io.ReadWriteCloser) {
	stop := context.AfterFunc(ctx, func() { stream.Close() }) //nolint:errcheck // the read below reports it
	defer stop()
	if err := g.swarm.read(ctx, peer, bufio.NewReader(stream)); !gone(err) {
		g.Logger.Debug("movement from another gateway", "peer", peer, "error", err)
	}
}

func (w *swarm) read(ctx context.Context, peer string, in *bufio.Reader) error {
	if !w.on() {
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
			return fmt.Errorf("a packet of %d bytes", size)
		}
		if uint32(cap(packet)) < size {
			packet = make([]byte, size)
		}
		packet = packet[:size]
		if _, err := io.ReadFull(in, packet); err != nil {
			return err
		}
		places, err := w.receive(peer, packet)
		select {
		case w.parcels <- parcel{peer, places}:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}
