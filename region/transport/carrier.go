package transport

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/internal/background"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const (
	// maxQueueBytes bounds the messages queued for one node. Raft retransmits what is dropped, and a node that does not
	// read must not exhaust memory.
	maxQueueBytes = 8 << 20
	// frameBytes bounds one frame, far below wire.MaxFrame.
	frameBytes = 1 << 20
	// redialPause is the pause before a node that could not be reached is dialled again.
	redialPause = 250 * time.Millisecond
	// frameWriteTime is how long a node may take to accept a frame before its stream is given up. The effective limit
	// is up to a second shorter.
	frameWriteTime = 5 * time.Second
)

// Carrier sends raft messages to other nodes. Each destination has one stream, one goroutine and a bounded queue; a
// frame holds messages of many groups. Snapshots use streams of their own. Sending never blocks. It works while Run
// runs, which must outlive the replica.Host that uses it.
type Carrier struct {
	peers   Peers
	logger  *slog.Logger
	tasks   *background.Tasks
	dropped prometheus.Counter

	mu struct {
		sync.Mutex
		queues map[string]*peerQueue
	}
}

// peerQueue holds the messages for one node. It ends when nothing was sent for queueIdle.
type peerQueue struct {
	queue []nodemsg.RaftMessage
	bytes int
	wake  chan struct{}
	spare []nodemsg.RaftMessage // the previous batch, kept to reuse its memory
}

const (
	queueIdle = time.Minute
	// spareMessages bounds the memory that an idle queue keeps.
	spareMessages = 4096
)

// NewCarrier returns a carrier. It sends nothing before Run is called.
func NewCarrier(peers Peers, logger *slog.Logger, r prometheus.Registerer) *Carrier {
	c := &Carrier{
		peers: peers, logger: logger, tasks: background.NewTasks(),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "voxeld_raft_messages_dropped_total",
			Help: "Raft messages dropped: the peer was unreachable or its queue was full. They are sent again.",
		}),
	}
	r.MustRegister(c.dropped)
	c.mu.queues = make(map[string]*peerQueue)
	return c
}

// Run sends until ctx ends, and returns when all its goroutines have returned.
func (c *Carrier) Run(ctx context.Context) error {
	c.tasks.Run(ctx)
	return nil
}

// Send queues a message. If the queue is full, the oldest messages are dropped: raft's newer messages supersede them.
func (c *Carrier) Send(peer string, group uint64, data []byte) {
	c.mu.Lock()
	l := c.mu.queues[peer]
	fresh := l == nil
	if fresh {
		l = &peerQueue{wake: make(chan struct{}, 1)}
		c.mu.queues[peer] = l
	}
	l.queue = append(l.queue, nodemsg.RaftMessage{Group: group, Data: data})
	l.bytes += len(data)
	for l.bytes > maxQueueBytes && len(l.queue) > 1 {
		l.bytes -= len(l.queue[0].Data)
		l.queue = l.queue[1:]
		c.dropped.Inc()
	}
	c.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
	if fresh && !c.tasks.Start(func(ctx context.Context) { c.drive(ctx, peer, l) }) {
		c.close(peer)
	}
}

func (c *Carrier) close(peer string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.mu.queues, peer)
}

// nextBatch removes and returns at most one frame of messages. They are valid until the next call.
func (c *Carrier) nextBatch(l *peerQueue) []nodemsg.RaftMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, bytes := 0, 0
	for n < len(l.queue) && n < nodemsg.MaxRaftMessages && (n == 0 || bytes+len(l.queue[n].Data) <= frameBytes) {
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

// drive is the goroutine of a queue. It sends frames to the node until nothing was sent for queueIdle.
func (c *Carrier) drive(ctx context.Context, peer string, l *peerQueue) {
	out := raftStream{peer: peer}
	defer out.close()
	idle := time.NewTimer(queueIdle)
	defer idle.Stop()
	for {
		idle.Reset(queueIdle)
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
		for batch := c.nextBatch(l); len(batch) > 0; batch = c.nextBatch(l) {
			if err := c.write(ctx, &out, batch); err != nil {
				c.logger.Debug("raft messages not delivered", "peer", peer, "error", err)
				c.dropped.Add(float64(len(batch)))
				select {
				case <-ctx.Done():
					return
				case <-time.After(redialPause):
				}
			}
		}
	}
}

// retire ends a queue if it is empty.
func (c *Carrier) retire(peer string, l *peerQueue) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(l.queue) > 0 {
		return false
	}
	delete(c.mu.queues, peer)
	return true
}

// raftStream is the stream of a queue. It belongs to drive.
type raftStream struct {
	peer     string
	stream   io.ReadWriteCloser // nil until it is opened, and after an error
	out      nodemsg.RaftWriter
	deadline time.Time // write deadline that is set on the stream
}

func (e *raftStream) close() {
	if e.stream != nil {
		e.stream.Close() //nolint:errcheck // no longer needed, or broken
	}
	e.stream, e.deadline = nil, time.Time{}
}

// write writes one frame to the node's stream and opens the stream first if necessary. After an error the stream is
// closed.
func (c *Carrier) write(ctx context.Context, e *raftStream, batch []nodemsg.RaftMessage) error {
	if e.stream == nil {
		opening, cancel := context.WithTimeout(ctx, frameWriteTime)
		defer cancel()
		stream, err := c.peers.Open(opening, e.peer, RaftProtocol)
		if err != nil {
			return err
		}
		e.stream, e.out.W = stream, stream
	}
	// Setting a deadline starts a timer, which costs more than half of the write. So it is set only when the current
	// one runs low.
	if s, ok := e.stream.(interface{ SetWriteDeadline(time.Time) error }); ok && time.Until(e.deadline) < frameWriteTime-time.Second {
		e.deadline = time.Now().Add(frameWriteTime)
		if err := s.SetWriteDeadline(e.deadline); err != nil {
			e.close()
			return err
		}
	}
	if err := e.out.Write(nodemsg.RaftFrame{Messages: batch}); err != nil {
		e.close()
		return err
	}
	return nil
}
