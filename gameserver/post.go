package gameserver

import (
	"encoding/binary"

	"github.com/voxelpopuli/voxeld/wire"
)

// This file is the short way of a tick frame: from the beat right into the socket. To wake a writer for each session and
// tick costs as much as half of the write itself, and a crowd's writers get in each other's way. So the writer has only
// what did not fit into the socket, and what is more than news of a tick.

// prompter is a connection that can be written to without waiting. Whoever holds the outbox's lock calls it, while the
// writer does not write.
type prompter interface {
	// try writes as much as the socket takes at once. It gives less than all without an error when that is full.
	try(data []byte) (n int, err error)
	// keep has data written by the next flush, before everything else.
	keep(data []byte)
}

// post is what the beat needs at hand to write frames; it is reused.
type post struct {
	frame    []byte
	messages int
	bytes    int // as metrics count them
}

// deliver writes what the beat or a feed has left for a session; or it wakes the writer, who then does.
func (p *post) deliver(o *outbox) {
	if o.prompt == nil {
		return // whoever left it has woken the writer
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.closed || len(o.mu.motion)+len(o.mu.items) == 0 {
		return
	}
	if o.mu.busy || o.mu.land > 0 || o.mu.bytes > frameLimit {
		wakeUp(o.wake)
		return
	}
	p.compose(o)
	written, err := o.prompt.try(p.frame)
	if written < len(p.frame) || err != nil { // an error comes to the writer too, who ends the connection
		o.prompt.keep(p.frame[written:])
		o.mu.busy = true
		wakeUp(o.wake)
	}
	for _, i := range o.mu.items {
		o.mu.bytes -= len(i.data)
	}
	clear(o.mu.items)
	o.mu.items, o.mu.motion = o.mu.items[:0], o.mu.motion[:0]
}

// compose puts all that waits into the frame, each message with its length before it: pieces that follow one another
// as one, and the motion behind everything, as desk.clear does. The lock is held.
func (p *post) compose(o *outbox) {
	tick := o.mu.tick
	if len(o.mu.motion) > 0 {
		tick = o.mu.first
	}
	p.frame = p.frame[:0]
	for rest, motion := o.mu.items, o.mu.motion; len(rest)+len(motion) > 0; {
		n, bytes := run(rest)
		if n == 0 && len(rest) > 0 {
			p.frame = wire.AppendMessage(p.frame, rest[0].data)
			p.count(len(rest[0].data))
			rest = rest[1:]
			continue
		}
		last := []byte(nil)
		if n == len(rest) {
			last, motion = motion, nil
		}
		const head = 3 // bytes of AppendTick
		p.frame = binary.AppendUvarint(p.frame, uint64(head+bytes+len(last)))
		p.count(head + bytes + len(last))
		p.frame = wire.AppendTick(p.frame, tick)
		for _, i := range rest[:n] {
			p.frame = append(p.frame, i.data...)
		}
		p.frame = append(p.frame, last...)
		rest = rest[n:]
	}
}

func (p *post) count(bytes int) {
	p.messages++
	p.bytes += bytes
}
