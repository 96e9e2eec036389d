package region

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/wire"
)

const (
	// RaftProtocol names the streams that carry raft messages, without the world's prefix.
	RaftProtocol = "/raft/1"

	// laneBytes bounds what waits for one node. Raft repeats what is dropped; a node that does not take
	// its messages must not cost the others memory.
	laneBytes = 8 << 20
	// frameBytes bounds one frame, far below wire.MaxFrame.
	frameBytes = 1 << 20
	// laneRetry is the pause before a node that could not be reached is dialled again.
	laneRetry = 250 * time.Millisecond
	// laneWrite is how long a node may take to accept a frame before its stream is given up; up to a second less.
	laneWrite = 5 * time.Second
)

// Carrier takes raft messages to other nodes: one stream and one goroutine for each node that is spoken
// to, a bounded queue before it, many groups' messages in a frame. Snapshots go on streams of their own.
// Sending never blocks. It works while Run runs, which has to outlive the replica.Host that uses it.
type Carrier struct {
	peers   Peers
	logger  *slog.Logger
	spawn   chan func(context.Context)
	stop    chan struct{} // closed when Run begins to end
	dropped prometheus.Counter

	mu struct {
		sync.Mutex
		lanes map[string]*lane
	}
}

// lane is the way to one node. It ends when nothing was sent for laneIdle.
type lane struct {
	queue []wire.RaftMessage
	bytes int
	wake  chan struct{}
	spare []wire.RaftMessage // what was taken last: its memory is used again
}

const (
	laneIdle = time.Minute
	// spareMessages bounds the memory that an idle lane keeps.
	spareMessages = 4096
)

// NewCarrier makes a carrier; nothing is sent before Run is called.
func NewCarrier(peers Peers, logger *slog.Logger, r prometheus.Registerer) *Carrier {
	c := &Carrier{
		peers: peers, logger: logger, spawn: make(chan func(context.Context)), stop: make(chan struct{}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "voxeld_raft_messages_dropped_total",
			Help: "Raft messages that were not delivered to another node: it was not reached, or did not take them in time. Raft repeats what matters.",
		}),
	}
	r.MustRegister(c.dropped)
	c.mu.lanes = make(map[string]*lane)
	return c
}

// Run sends until ctx ends, and returns when all its goroutines have.
func (c *Carrier) Run(ctx context.Context) error {
	var crew sync.WaitGroup
	defer crew.Wait()
	defer close(c.stop)
	for {
		select {
		case <-ctx.Done():
			return nil
		case task := <-c.spawn:
			crew.Go(func() { task(ctx) })
		}
	}
}

// start runs a task in a goroutine that Run awaits. It never blocks for long: Run waits for nothing else.
// It reports false when the carrier has ended.
func (c *Carrier) start(task func(context.Context)) bool {
	select {
	case c.spawn <- task:
		return true
	case <-c.stop:
		return false
	}
}

// Send queues a message. When the queue is full the oldest messages go first: raft's newest ones say the
// same and more.
func (c *Carrier) Send(peer string, group uint64, data []byte) {
	c.mu.Lock()
	l := c.mu.lanes[peer]
	fresh := l == nil
	if fresh {
		l = &lane{wake: make(chan struct{}, 1)}
		c.mu.lanes[peer] = l
	}
	l.queue = append(l.queue, wire.RaftMessage{Group: group, Data: data})
	l.bytes += len(data)
	for l.bytes > laneBytes && len(l.queue) > 1 {
		l.bytes -= len(l.queue[0].Data)
		l.queue = l.queue[1:]
		c.dropped.Inc()
	}
	c.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
	if fresh && !c.start(func(ctx context.Context) { c.drive(ctx, peer, l) }) {
		c.close(peer)
	}
}

func (c *Carrier) close(peer string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.mu.lanes, peer)
}

// take gives up to a frame of messages. They are valid until the next take.
func (c *Carrier) take(l *lane) []wire.RaftMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, bytes := 0, 0
	for n < len(l.queue) && n < wire.MaxRaftMessages && (n == 0 || bytes+len(l.queue[n].Data) <= frameBytes) {
		bytes += len(l.queue[n].Data)
		n++
	}
	batch := l.queue[:n:n]
	if l.bytes -= bytes; n < len(l.queue) {
		l.queue = l.queue[n:]
		return batch
	}
	clear(l.spare)
	l.queue, l.spare = l.spare[:0], batch
	if cap(l.spare) > spareMessages {
		l.spare = nil
	}
	return batch
}

// drive is a lane's goroutine: it takes frames to the node until nothing was sent for laneIdle.
func (c *Carrier) drive(ctx context.Context, peer string, l *lane) {
	out := laneEnd{peer: peer}
	defer out.close()
	idle := time.NewTimer(laneIdle)
	defer idle.Stop()
	for {
		idle.Reset(laneIdle)
		select {
		case <-ctx.Done():
			return
		case <-idle.C:
			if c.retire(peer, l) {
				return
			}
			continue
		case <-l.wake:
		}
		for batch := c.take(l); len(batch) > 0; batch = c.take(l) {
			if err := c.write(ctx, &out, batch); err != nil {
				c.logger.Debug("raft messages not delivered", "peer", peer, "error", err)
				c.dropped.Add(float64(len(batch)))
				select {
				case <-ctx.Done():
					return
				case <-time.After(laneRetry):
				}
			}
		}
	}
}

// retire ends a lane on which nothing waits.
func (c *Carrier) retire(peer string, l *lane) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(l.queue) > 0 {
		return false
	}
	delete(c.mu.lanes, peer)
	return true
}

// laneEnd is the stream of a lane. It belongs to drive.
type laneEnd struct {
	peer    string
	stream  io.ReadWriteCloser // nil until it is opened, and after an error
	out     wire.RaftWriter
	patient time.Time // until when the stream may be written to without saying so again
}

func (e *laneEnd) close() {
	if e.stream != nil {
		e.stream.Close() //nolint:errcheck // done with, or given up
	}
	e.stream, e.patient = nil, time.Time{}
}

// write puts one frame on the node's stream, which is opened first if need be. After an error the stream
// is gone.
func (c *Carrier) write(ctx context.Context, e *laneEnd, batch []wire.RaftMessage) error {
	if e.stream == nil {
		opening, cancel := context.WithTimeout(ctx, laneWrite)
		defer cancel()
		stream, err := c.peers.Open(opening, e.peer, RaftProtocol)
		if err != nil {
			return err
		}
		e.stream, e.out.W = stream, stream
	}
	// Setting a deadline makes a timer: more than half of the write.
	if s, ok := e.stream.(interface{ SetWriteDeadline(time.Time) error }); ok && time.Until(e.patient) < laneWrite-time.Second {
		e.patient = time.Now().Add(laneWrite)
		if err := s.SetWriteDeadline(e.patient); err != nil {
			e.close()
			return err
		}
	}
	if err := e.out.Write(wire.RaftFrame{Messages: batch}); err != nil {
		e.close()
		return err
	}
	return nil
}
