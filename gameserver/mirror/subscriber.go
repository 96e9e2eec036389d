package mirror

import (
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Subscriber watches chunks, on behalf of one connection of a client. Unless a method's comment says otherwise, it is called with
// the subscription's lock held: it must not block, nor call the subscription.
type Subscriber interface {
	// SendChunk sends a chunk with everybody who is in it, or sends it again in its current state. Again means that entering and
	// leaving since then were published as deltas.
	SendChunk(c *Chunk, again bool)
	// HasRoom reports whether the subscriber can take another whole chunk. If not, it calls Chunk.Retry when it can.
	HasRoom(c *Chunk) bool
	// SendDelta sends the delta of a chunk in view.
	SendDelta(d *Delta)
	// WantsEveryMove reports whether the subscriber gets moves from deltas instead of the frame loop. It never changes.
	WantsEveryMove() bool
	// Predictable reports whether the region may be sent predictions of the subscriber's player instead of every move. It never
	// changes.
	Predictable() bool
	// SendResult sends the result of an edit. It reports whether the result waits for Flush.
	SendResult(r nodemsg.EditResult) (waits bool)
	// Flush sends what waits. It is called without a lock.
	Flush()
	// SendNotice sends the player a text; several subscriptions may send the same.
	SendNotice(text string)
}

// subscriberState is what a subscriber has of a chunk.
type subscriberState uint8

const (
	awaitsChunk   subscriberState = iota // waits for the whole chunk; gets no deltas
	awaitsRefresh                        // waits for the whole chunk again; gets deltas
	upToDate                             // gets deltas

	// With awaitsChunk or awaitsRefresh: the chunk waits until the subscriber has taken earlier ones.
	deferredChunk subscriberState = 4
)
