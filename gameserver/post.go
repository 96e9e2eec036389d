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

// deliver writes what the beat has left for a session; or it wakes the writer, who then does.
func (p *post) deliver(o *outbox) {
	if o.prompt == nil {
		return // the beat has woken the writer
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.closed || len(o.mu.motion)+len(o.mu.items) == 0 {
		return
	}
	n, pieces := run(o.mu.items)
	if o.mu.busy || n < len(o.mu.items) {
		wakeUp(o.wake)
		return
	}
	size := p.compose(o, pieces)
	written, err := o.prompt.try(p.frame)
	if written < len(p.frame) || err != nil { // an error comes to the writer too, who ends the connection
		o.prompt.keep(p.frame[written:])
		o.mu.busy = true
		wakeUp(o.wake)
	}
	p.messages++
	p.bytes += size
	o.mu.bytes -= pieces
	clear(o.mu.items)
	o.mu.items, o.mu.motion = o.mu.items[:0], o.mu.motion[:0]
}

// compose makes the frame of all that waits, its length before it, and gives the size without that. The lock is held.
func (p *post) compose(o *outbox, pieces int) (size int) {
	const head = 3 // bytes of AppendTick
	size = head + pieces + len(o.mu.motion)
	p.frame = binary.AppendUvarint(p.frame[:0], uint64(size))
	tick := o.mu.tick
	if len(o.mu.motion) > 0 {
		tick = o.mu.first
	}
	p.frame = wire.AppendTick(p.frame, tick)
	for _, i := range o.mu.items {
		p.frame = append(p.frame, i.data...)
	}
	p.frame = append(p.frame, o.mu.motion...)
	return size
}
