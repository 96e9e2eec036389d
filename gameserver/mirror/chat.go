package mirror

import (
	"github.com/voxelpopuli/voxeld/vclock"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// PublishChat publishes an event to everybody who has the chunk in view in which it was sent.
func (sub *Subscription) PublishChat(u nodemsg.ChatEvent, stamp vclock.Stamp) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	c := sub.mu.chunks[u.Chunk]
	if c == nil {
		return // unwatched meanwhile
	}
	d := c.delta()
	d.Chat = []nodemsg.ChatEvent{u}
	d.ForTick = &sessionmsg.TickDelta{Chunk: u.Chunk, Chat: d.Chat}
	d.Stamp = stamp
	d.Interaction, _ = sessionmsg.InteractionMessage(&u) // nil if the event is no interaction, or of a kind that is shown as text
	c.publish(d)
}

// subtractArriving subtracts events that arrive together with their entering authors from the authors' counts: these
// are to be waited for.
func subtractArriving(came []nodemsg.Body, events []nodemsg.ChatEvent) {
	for i := range events {
		for j := range came {
			b := &came[j]
			if b.Player != events[i].Player {
				continue
			}
			if stamp, counted := events[i].Clock(); counted {
				b.Said = min(b.Said, stamp.Own()-1)
			}
		}
	}
}
