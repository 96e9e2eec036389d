package outbox

import (
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// This file writes tick frames from the frame loop directly into the socket. Waking a writer for each session and tick
// costs half as much as the write itself, and the writers of a crowd compete for the processors. So the writer writes
// only what did not fit into the socket, and what is more than a tick's updates.

// FrameWriter holds the reused buffers of the frame loop for writing frames.
type FrameWriter struct {
	frame    []byte
	messages int
	bytes    int
}

// Deliver writes what the frame loop or a subscription has queued for a session, or wakes the writer to do so.
func (p *FrameWriter) Deliver(o *Outbox) {
	if o.Direct == nil {
		return // the writer was woken when the message was queued
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.closed || len(o.mu.motion)+len(o.mu.items) == 0 {
		return
	}
	if o.mu.busy || o.mu.chunkBytes > 0 || o.mu.bytes > frameLimit {
		o.wake.Set()
		return
	}
	p.compose(o)
	rest, err := o.Direct.TryWrite(p.frame)
	if rest != nil || err != nil { // the writer gets the error too, and ends the connection
		o.Direct.WriteLater(rest)
		o.mu.busy = true
		o.wake.Set()
	}
	for _, i := range o.mu.items {
		o.mu.bytes -= len(i.data)
	}
	clear(o.mu.items)
	o.mu.items, o.mu.motion = o.mu.items[:0], o.mu.motion[:0]
}

// compose puts all that waits into the frame, each message in its frame: consecutive pieces as one message, and the
// motion last, as Writer.WriteNext does. The lock is held.
func (p *FrameWriter) compose(o *Outbox) {
	tick := o.mu.tick
	if len(o.mu.motion) > 0 {
		tick = o.mu.first
	}
	p.frame = p.frame[:0]
	for rest, motion := o.mu.items, o.mu.motion; len(rest)+len(motion) > 0; {
		n, bytes := run(rest)
		if n == 0 && len(rest) > 0 {
			p.frame = append(o.Direct.AppendHead(p.frame, len(rest[0].data)), rest[0].data...)
			p.count(len(rest[0].data))
			rest = rest[1:]
			continue
		}
		last := []byte(nil)
		if n == len(rest) {
			last, motion = motion, nil
		}
		const head = 3 // bytes of AppendTick
		p.frame = o.Direct.AppendHead(p.frame, head+bytes+len(last))
		p.count(head + bytes + len(last))
		p.frame = sessionmsg.AppendTick(p.frame, tick)
		for _, i := range rest[:n] {
			p.frame = append(p.frame, i.data...)
		}
		p.frame = append(p.frame, last...)
		rest = rest[n:]
	}
}

// Counts returns how many messages and bytes were written since the last call.
func (p *FrameWriter) Counts() (messages, bytes int) {
	messages, bytes = p.messages, p.bytes
	p.messages, p.bytes = 0, 0
	return messages, bytes
}

func (p *FrameWriter) count(bytes int) {
	p.messages++
	p.bytes += bytes
}
