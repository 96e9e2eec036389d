// Package outbox is the output queue of a client's connection, and writes it. A connection has a goroutine that runs
// Drain; a frame loop may write into the socket itself ([FrameWriter]) while that goroutine is idle. An outbox's lock
// is a leaf: nothing else is locked under it.
package outbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/gameserver/codec"
	"github.com/voxelpopuli/voxeld/gameserver/mirror"
	"github.com/voxelpopuli/voxeld/gameserver/wake"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

const (
	// outboxLimit is how many bytes may wait for a slow client before it is disconnected. All chunks of the largest
	// view fit in.
	outboxLimit = 16 << 20
	// chunkWindow is how many bytes of whole chunks may be in transit to a client, not counting the one that exceeds
	// it. It is small so that nothing waits long behind them.
	chunkWindow = 32 << 10
	// LateTicks is how many ticks' motion may wait for a writer, which then writes them in one frame. Later motion is
	// dropped and marked as missed.
	LateTicks = 4
	// frameLimit bounds the bytes of pieces in one frame, far below wire.MaxServerLine.
	frameLimit = 1 << 20
	// CloseTimeout bounds the delivery of the last message of an ended connection. It also bounds how long a player
	// whose network changed waits for the place that their lost connection still holds.
	CloseTimeout = 2 * time.Second
)

// Outbox is the queue of messages to one client. Adding never blocks: a client that does not keep up is disconnected
// with a reason, and does not slow down others.
//
// A session with tick frames gets its pieces with them, together with the motion of the tick. Of motion only the newest
// counts: while earlier data is still being written, motion is dropped, and a later frame contains the full state.
// Another session that is late gets no moves either until it has caught up.
type Outbox struct {
	// These are set before first use.
	Owner  mirror.Subscriber // for chunks that wait
	Direct DirectWriter      // lets the frame loop write without the writer; nil for none, and with codecs without tick frames
	Mute   bool              // the protocol has no last message
	Pace   int               // ticks of motion that are written together, unless something else waits; at most LateTicks. 0: one

	wake wake.Signal // holds a token while there is something for the writer, or the outbox is closed
	cut  func()      // ends the connection at once

	mu struct {
		sync.Mutex
		codec       codec.Codec
		items       []item
		motion      []byte          // written after the items
		tick        uint64          // of the newest frame
		first       uint64          // of the motion's first tick
		ticks       int             // number of ticks in the motion
		missed      bool            // the client lacks motion of an earlier frame
		busy        bool            // the writer is writing, or must write before anybody else does
		since       time.Time       // when the writer took what it writes
		missedMoves []*mirror.Chunk // chunks with moves that a client without tick frames has missed
		chunkBytes  int             // bytes of whole chunks in items
		waiting     waitingChunks   // chunks in view for which there was no room, in the order of watching
		bytes       int             // of the items, and of those that the writer has taken but not yet written
		final       []byte          // written last, before the connection is closed; nil for none
		closed      bool            // accepts nothing more
		dropped     bool            // waiting items are not to be written any more
		cutTimer    *time.Timer     // cuts the connection; nil until it is closed
	}
}

// item is a message, or a piece of a frame. Consecutive pieces are written as one frame.
type item struct {
	data   []byte
	tick   uint64
	part   bool
	chunk  bool // a whole chunk
	noWake bool // does not wake the writer
}

// DirectWriter is a connection that can be written to without blocking. It is used with the outbox's lock held, while
// the writer is idle.
type DirectWriter interface {
	// TryWrite writes as much as the socket accepts, and returns the rest; nil if there is none. It may be empty: then
	// the writer has to flush what the connection holds.
	TryWrite(data []byte) (rest []byte, err error)
	// AppendHead appends what precedes a message of so many bytes.
	AppendHead(dst []byte, size int) []byte
	// WriteLater buffers data for the next flush, before everything else.
	WriteLater(data []byte)
}

// New returns an outbox whose messages are in JSON until SetCodec.
func New(cut func()) *Outbox {
	o := &Outbox{wake: wake.NewSignal(), cut: cut}
	o.mu.codec = codec.JSON
	return o
}

// SetCodec sets the encoding of messages from now on.
func (o *Outbox) SetCodec(c codec.Codec) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.codec = c
}

// Put queues an encoded message.
func (o *Outbox) Put(message []byte) { o.add(item{data: message}) }

// PutDeferred queues an encoded message for FrameWriter.Deliver, which must be called next. It reports false if the
// outbox cannot be written without the writer.
func (o *Outbox) PutDeferred(message []byte) bool {
	o.add(item{data: message, noWake: o.Direct != nil})
	return o.Direct != nil
}

// Send queues a message in the session's encoding.
func (o *Outbox) Send(m sessionmsg.FromServer) {
	o.mu.Lock()
	c := o.mu.codec
	o.mu.Unlock()
	o.Put(c.Encode(m))
}

// Miss records that the client lacks motion: the next frame contains the full state.
func (o *Outbox) Miss() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.missed = true
}

// PutMotion queues the motion that compose appends, and releases queued pieces for writing. Compose is passed whether
// the client has missed motion. If the outbox has a DirectWriter, FrameWriter.Deliver must be called next.
func (o *Outbox) PutMotion(tick uint64, compose func(dst []byte, missed bool) []byte) (skipped bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.closed {
		return false
	}
	o.mu.tick = tick
	switch {
	case o.mu.busy && o.mu.missed:
		return true // until the writer has written what it holds
	case len(o.mu.motion) == 0:
		o.mu.ticks, o.mu.first = 0, tick
	case o.mu.ticks == LateTicks:
		o.mu.motion, o.mu.missed = o.mu.motion[:0], true
		return true
	default: // the writer is late: two ticks go into one frame
		o.mu.motion = sessionmsg.AppendLaterTick(o.mu.motion, tick)
	}
	o.mu.ticks++
	o.mu.motion = compose(o.mu.motion, o.mu.missed)
	o.mu.missed = false
	if o.Direct == nil && (len(o.mu.items) > 0 || len(o.mu.motion) > 0 && o.mu.ticks >= o.Pace) {
		o.wake.Set()
	}
	return false
}

// PutChunk queues a whole chunk.
func (o *Outbox) PutChunk(message []byte) { o.add(item{data: message, chunk: true}) }

// HasRoom reports whether a whole chunk may be queued. If not, the chunk waits for refill, until RemoveChunk.
func (o *Outbox) HasRoom(c *mirror.Chunk) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.chunkBytes < chunkWindow || o.mu.closed {
		return true
	}
	o.mu.waiting.add(c)
	return false
}

// refill returns the chunks for which there is room now.
func (o *Outbox) refill() []*mirror.Chunk {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.chunkBytes >= chunkWindow {
		return nil
	}
	return o.mu.waiting.take(refillChunks)
}

// refillChunks is how many chunks are requested at once: unmodified ones of the tallest usual worlds fill the window.
const refillChunks = 8

// RemoveChunk sends the client that a chunk is out of view, and drops the chunk from those that wait for room. The
// caller must have stopped watching it. The message also wakes the writer, which then continues with other chunks.
func (o *Outbox) RemoveChunk(pos grid.ChunkPos) {
	o.mu.Lock()
	o.mu.waiting.remove(pos)
	o.mu.missedMoves = slices.DeleteFunc(o.mu.missedMoves, func(c *mirror.Chunk) bool { return c.At() == pos })
	o.mu.Unlock()
	o.Send(sessionmsg.ChunkGone{Chunk: pos})
}

// Piece queues a change of one chunk.
func (o *Outbox) Piece(tick uint64, data []byte) { o.add(item{data: data, tick: tick, part: true}) }

func (o *Outbox) add(i item) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.closed {
		return
	}
	if o.mu.bytes += len(i.data); o.mu.bytes > outboxLimit {
		o.mu.items, o.mu.dropped = nil, true
		if o.Mute {
			o.close(nil)
			return
		}
		o.close(o.mu.codec.Encode(sessionmsg.Failure{Code: wire.FailSlow, Message: fmt.Sprintf(
			"Your connection is too slow: %d MiB wait to be sent. Choose a smaller view distance.", outboxLimit>>20)}))
		return
	}
	if i.chunk {
		o.mu.chunkBytes += len(i.data)
	}
	o.mu.items = append(o.mu.items, i)
	if !i.noWake && (!i.part || !o.mu.codec.HasTickFrames()) {
		o.wake.Set()
	}
}

// End lets the writer write what waits and the last message (if any), and close the connection; all within
// CloseTimeout. Only the first call counts.
func (o *Outbox) End(last sessionmsg.FromServer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.closed {
		return
	}
	if last == nil {
		o.close(nil)
		return
	}
	o.close(o.mu.codec.Encode(last))
}

// close is called once, with the lock held.
func (o *Outbox) close(last []byte) {
	o.mu.closed, o.mu.final = true, last
	o.mu.cutTimer = time.AfterFunc(CloseTimeout, o.cut)
	o.wake.Set()
}

// ErrEnded reports that the outbox was ended in order.
var ErrEnded = errors.New("connection ended")

// batch is what the writer takes at once.
type batch struct {
	items  []item
	motion []byte
	tick   uint64
	codec  codec.Codec
	final  []byte
	closed bool
}

// next waits for something to write. The lists of spare are reused. The writer counts as busy until it calls idle.
func (o *Outbox) next(spare batch) batch {
	<-o.wake
	o.mu.Lock()
	defer o.mu.Unlock()
	l := batch{items: o.mu.items, motion: o.mu.motion, tick: o.mu.tick, codec: o.mu.codec, final: o.mu.final, closed: o.mu.closed}
	if len(l.motion) > 0 {
		l.tick = o.mu.first
	}
	o.mu.items, o.mu.motion = spare.items[:0], spare.motion[:0]
	o.mu.busy, o.mu.since = true, time.Now()
	return l
}

// Behind reports whether data written some ticks ago is still in transit. Then moves of a chunk are not queued for a
// session without tick frames, but recorded as missed: each would be overtaken by the next.
func (o *Outbox) Behind(c *mirror.Chunk) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if slices.Contains(o.mu.missedMoves, c) {
		return true
	}
	if !o.mu.busy || time.Since(o.mu.since) < LateTicks*region.TickEvery {
		return false
	}
	o.mu.missedMoves = append(o.mu.missedMoves, c)
	return true
}

// missedChunks returns the chunks with missed moves.
func (o *Outbox) missedChunks() []*mirror.Chunk {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.mu.missedMoves)
}

// caughtUp records that the moves of a chunk are queued again, or no longer needed.
func (o *Outbox) caughtUp(c *mirror.Chunk) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.missedMoves = slices.DeleteFunc(o.mu.missedMoves, func(m *mirror.Chunk) bool { return m == c })
}

// Wake wakes the writer: it flushes, whether or not something waits.
func (o *Outbox) Wake() { o.wake.Set() }

// Woken reports whether there is something for the writer.
func (o *Outbox) Woken() bool { return len(o.wake) > 0 }

// Backlog returns how many bytes have not been written yet.
func (o *Outbox) Backlog() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mu.bytes + len(o.mu.motion)
}

// wrote subtracts written bytes from the counts, and reports whether to go on.
func (o *Outbox) wrote(bytes, land int) (goOn bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.bytes -= bytes
	o.mu.chunkBytes -= land
	return !o.mu.dropped
}

// idle records that all that was taken has been written.
func (o *Outbox) idle() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.busy = false
}

// Sink is the connection that a Writer writes to.
type Sink interface {
	// Send sends a message, now or with the next flush. It does not retain it.
	Send(message []byte) error
	// Flush sends buffered messages.
	Flush() error
}

// Drain writes until the outbox is ended or a write fails. It is the body of the connection's writer.
func (o *Outbox) Drain(to Sink) error {
	var w Writer
	for {
		if err := w.WriteNext(o, to); err != nil {
			return err
		}
		for _, c := range o.refill() {
			c.Retry(o.Owner)
		}
		for _, c := range o.missedChunks() {
			c.CatchUp(o.Owner, func() { o.caughtUp(c) })
		}
	}
}

// Writer holds the reused buffers of a writer.
type Writer struct {
	batch  batch
	pieces []json.RawMessage
	frame  []byte
}

// WriteNext waits for something to write, and writes it. At the end of the outbox it writes the last message and
// returns ErrEnded.
func (w *Writer) WriteNext(o *Outbox, to Sink) error {
	l := o.next(w.batch)
	w.batch = l
	defer clear(l.items) // written messages can be garbage collected
	rest := l.items
	for len(rest) > 0 || len(l.motion) > 0 {
		n, bytes := run(rest)
		var data []byte
		land := 0
		switch {
		case n == 0 && len(rest) > 0:
			n, bytes, data = 1, len(rest[0].data), rest[0].data
			if rest[0].chunk {
				land = bytes
			}
		default:
			data = w.compose(&l, rest[:n], n == len(rest))
		}
		if err := to.Send(data); err != nil {
			return err
		}
		if land > 0 { // the window counts what the connection has not accepted
			if err := to.Flush(); err != nil {
				return err
			}
		}
		if !o.wrote(bytes, land) {
			break // the outbox was closed, and waiting items dropped
		}
		rest = rest[n:]
	}
	if l.closed && l.final != nil {
		if err := to.Send(l.final); err != nil {
			return err
		}
	}
	if err := to.Flush(); err != nil {
		return err
	}
	o.idle()
	if l.closed {
		return ErrEnded
	}
	return nil
}

// compose encodes pieces and, if they are the last, the motion as one frame, in a buffer that the next call overwrites.
func (w *Writer) compose(l *batch, items []item, last bool) []byte {
	f := codec.Frame{Tick: l.tick, Pieces: w.pieces[:0]}
	for _, i := range items {
		f.PieceTick, f.Pieces = i.tick, append(f.Pieces, i.data)
	}
	if last {
		f.Motion, l.motion = l.motion, nil
	}
	w.frame, w.pieces = l.codec.AppendFrame(w.frame[:0], f), f.Pieces
	return w.frame
}

// run returns how many items at the front are pieces of one frame, and their bytes.
func run(items []item) (n, bytes int) {
	for n < len(items) && items[n].part && (n == 0 || bytes+len(items[n].data) <= frameLimit) {
		bytes += len(items[n].data)
		n++
	}
	return n, bytes
}

// MarkClosed is called when the connection is closed and nothing more will be written.
func (o *Outbox) MarkClosed() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.closed, o.mu.items = true, nil
	if o.mu.cutTimer != nil {
		o.mu.cutTimer.Stop()
	}
}
