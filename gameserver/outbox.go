package gameserver

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
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

const (
	// outboxLimit is how many bytes may wait for a slow client before it is disconnected. All chunks of the largest view fit in.
	outboxLimit = 16 << 20
	// chunkWindow is how many bytes of whole chunks may be in transit to a client, not counting the one that exceeds it. It is
	// small so that nothing waits long behind them.
	chunkWindow = 32 << 10
	// lateTicks is how many ticks' motion may wait for a writer, which then writes them in one frame. Later motion is dropped and
	// marked as missed.
	lateTicks = 4
	// frameLimit bounds the bytes of pieces in one frame, far below wire.MaxServerLine.
	frameLimit = 1 << 20
	// closeTimeout bounds the delivery of the last message of an ended connection. It also bounds how long a player whose network
	// changed waits for the place that their lost connection still holds.
	closeTimeout = 2 * time.Second
)

// outbox is the queue of messages to one client. Adding never blocks: a client that does not keep up is disconnected with a
// reason, and does not slow down others.
//
// A session with tick frames gets its pieces with them, together with the motion of the tick. Of motion only the newest
// counts: while earlier data is still being written, motion is dropped, and a later frame contains the full state. Another
// session that is late gets no moves either until it has caught up.
type outbox struct {
	wake   wake.Signal       // holds a token while there is something for the writer, or the outbox is closed
	cut    func()            // ends the connection at once
	owner  mirror.Subscriber // for chunks that wait; set before first use
	direct directWriter      // lets the frame loop write without the writer; nil for none; set before first use
	mute   bool              // the protocol has no last message; set before first use

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
		waiting     []*mirror.Chunk // chunks for which there was no room, in the order of watching
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

// directWriter is a connection that can be written to without blocking. It is used with the outbox's lock held, while the writer
// is idle.
type directWriter interface {
	// tryWrite writes as much as the socket accepts. If that is full, it returns less than len(data) and no error.
	tryWrite(data []byte) (n int, err error)
	// writeLater buffers data for the next flush, before everything else.
	writeLater(data []byte)
}

// newOutbox returns an outbox whose messages are in JSON until setCodec.
func newOutbox(cut func()) *outbox {
	o := &outbox{wake: wake.NewSignal(), cut: cut}
	o.mu.codec = codec.JSON
	return o
}

// setCodec sets the encoding of messages from now on.
func (o *outbox) setCodec(c codec.Codec) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.codec = c
}

// put queues an encoded message.
func (o *outbox) put(message []byte) { o.add(item{data: message}) }

// putDeferred queues an encoded message for frameWriter.deliver, which must be called next. It reports false if the outbox cannot
// be written without the writer.
func (o *outbox) putDeferred(message []byte) bool {
	o.add(item{data: message, noWake: o.direct != nil})
	return o.direct != nil
}

// send queues a message in the session's encoding.
func (o *outbox) send(m sessionmsg.FromServer) {
	o.mu.Lock()
	c := o.mu.codec
	o.mu.Unlock()
	o.put(c.Encode(m))
}

// miss records that the client lacks motion: the next frame contains the full state.
func (o *outbox) miss() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.missed = true
}

// putMotion queues the motion that compose appends, and releases queued pieces for writing. Compose is passed whether the client
// has missed motion. If the outbox has a prompter, frameWriter.deliver must be called next.
func (o *outbox) putMotion(tick uint64, compose func(dst []byte, missed bool) []byte) (skipped bool) {
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
	case o.mu.ticks == lateTicks:
		o.mu.motion, o.mu.missed = o.mu.motion[:0], true
		return true
	default: // the writer is late: two ticks go into one frame
		o.mu.motion = sessionmsg.AppendLaterTick(o.mu.motion, tick)
	}
	o.mu.ticks++
	o.mu.motion = compose(o.mu.motion, o.mu.missed)
	o.mu.missed = false
	if o.direct == nil && len(o.mu.motion)+len(o.mu.items) > 0 {
		o.wake.Set()
	}
	return false
}

// putChunk queues a whole chunk.
func (o *outbox) putChunk(message []byte) { o.add(item{data: message, chunk: true}) }

// hasRoom reports whether a whole chunk may be queued. If not, the chunk is recorded for refill.
func (o *outbox) hasRoom(c *mirror.Chunk) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.chunkBytes < chunkWindow || o.mu.closed {
		return true
	}
	o.mu.waiting = append(o.mu.waiting, c)
	return false
}

// refill returns the chunks for which there is room now.
func (o *outbox) refill() []*mirror.Chunk {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.chunkBytes >= chunkWindow || len(o.mu.waiting) == 0 {
		return nil
	}
	n := min(refillChunks, len(o.mu.waiting))
	next := slices.Clone(o.mu.waiting[:n])
	o.mu.waiting = slices.Delete(o.mu.waiting, 0, n)
	return next
}

// refillChunks is how many chunks are requested at once: unmodified ones of the tallest usual worlds fill the window.
const refillChunks = 8

// piece queues a change of one chunk.
func (o *outbox) piece(tick uint64, data []byte) { o.add(item{data: data, tick: tick, part: true}) }

func (o *outbox) add(i item) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.closed {
		return
	}
	if o.mu.bytes += len(i.data); o.mu.bytes > outboxLimit {
		o.mu.items, o.mu.dropped = nil, true
		if o.mute {
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

// end lets the writer write what waits and the last message (if any), and close the connection; all within closeTimeout. Only the
// first call counts.
func (o *outbox) end(last sessionmsg.FromServer) {
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
func (o *outbox) close(last []byte) {
	o.mu.closed, o.mu.final = true, last
	o.mu.cutTimer = time.AfterFunc(closeTimeout, o.cut)
	o.wake.Set()
}

// errEnded reports that the outbox was ended in order.
var errEnded = errors.New("connection ended")

// batch is what the writer takes at once.
type batch struct {
	items  []item
	motion []byte
	tick   uint64
	codec  codec.Codec
	final  []byte
	closed bool
}

// next waits for something to write. The lists of spare are reused. The writer counts as busy until it calls rest.
func (o *outbox) next(spare batch) batch {
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

// behind reports whether data written some ticks ago is still in transit. Then moves of a chunk are not queued for a session
// without tick frames, but recorded as missed: each would be overtaken by the next.
func (o *outbox) behind(c *mirror.Chunk) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if slices.Contains(o.mu.missedMoves, c) {
		return true
	}
	if !o.mu.busy || time.Since(o.mu.since) < lateTicks*region.TickEvery {
		return false
	}
	o.mu.missedMoves = append(o.mu.missedMoves, c)
	return true
}

// missedChunks returns the chunks with missed moves.
func (o *outbox) missedChunks() []*mirror.Chunk {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.mu.missedMoves)
}

// caughtUp records that the moves of a chunk are queued again, or no longer needed.
func (o *outbox) caughtUp(c *mirror.Chunk) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.missedMoves = slices.DeleteFunc(o.mu.missedMoves, func(m *mirror.Chunk) bool { return m == c })
}

// wrote subtracts written bytes from the counts, and reports whether to go on.
func (o *outbox) wrote(bytes, land int) (goOn bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.bytes -= bytes
	o.mu.chunkBytes -= land
	return !o.mu.dropped
}

// idle records that all that was taken has been written.
func (o *outbox) idle() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.busy = false
}

// sink receives messages; a conn.
type sink interface {
	// write sends a message, now or with the next flush. It does not retain it.
	write(message []byte) error
	// flush sends buffered messages.
	flush() error
}

// drain writes until the outbox is ended or a write fails. It is the body of the connection's writer.
func (o *outbox) drain(to sink) error {
	var desk writeBuffers
	for {
		if err := desk.clear(o, to); err != nil {
			return err
		}
		for _, c := range o.refill() {
			c.Retry(o.owner)
		}
		for _, c := range o.missedChunks() {
			c.CatchUp(o.owner, func() { o.caughtUp(c) })
		}
	}
}

// writeBuffers holds the reused buffers of a writer.
type writeBuffers struct {
	batch  batch
	pieces []json.RawMessage
	frame  []byte
}

// clear waits for something to write, and writes it. At the end of the outbox it writes the last message and returns errEnded.
func (d *writeBuffers) clear(o *outbox, to sink) error {
	l := o.next(d.batch)
	d.batch = l
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
			data = d.compose(&l, rest[:n], n == len(rest))
		}
		if err := to.write(data); err != nil {
			return err
		}
		if land > 0 { // the window counts what the connection has not accepted
			if err := to.flush(); err != nil {
				return err
			}
		}
		if !o.wrote(bytes, land) {
			break // the outbox was closed, and waiting items dropped
		}
		rest = rest[n:]
	}
	if l.closed && l.final != nil {
		if err := to.write(l.final); err != nil {
			return err
		}
	}
	if err := to.flush(); err != nil {
		return err
	}
	o.idle()
	if l.closed {
		return errEnded
	}
	return nil
}

// compose encodes pieces and, if they are the last, the motion as one frame, in a buffer that the next call overwrites.
func (d *writeBuffers) compose(l *batch, items []item, last bool) []byte {
	f := codec.Frame{Tick: l.tick, Pieces: d.pieces[:0]}
	for _, i := range items {
		f.PieceTick, f.Pieces = i.tick, append(f.Pieces, i.data)
	}
	if last {
		f.Motion, l.motion = l.motion, nil
	}
	d.frame, d.pieces = l.codec.AppendFrame(d.frame[:0], f), f.Pieces
	return d.frame
}

// run returns how many items at the front are pieces of one frame, and their bytes.
func run(items []item) (n, bytes int) {
	for n < len(items) && items[n].part && (n == 0 || bytes+len(items[n].data) <= frameLimit) {
		bytes += len(items[n].data)
		n++
	}
	return n, bytes
}

// markClosed is called when the connection is closed and nothing more will be written.
func (o *outbox) markClosed() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.closed, o.mu.items = true, nil
	if o.mu.cutTimer != nil {
		o.mu.cutTimer.Stop()
	}
}
