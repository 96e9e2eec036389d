package gameserver

import (
	"github.com/voxelpopuli/voxeld/gameserver/chat"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/vclock"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// PublishChat publishes an event to everybody who has the chunk in view in which it was sent.
func (sub *subscription) PublishChat(u nodemsg.ChatEvent, stamp vclock.Stamp) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	mc := sub.mu.chunks[u.Chunk]
	if mc == nil {
		return // unwatched meanwhile
	}
	events := []nodemsg.ChatEvent{u}
	sub.publish(mc, &chunkDelta{
		ChunkDelta: nodemsg.ChunkDelta{Chunk: u.Chunk, Chat: events}, tickNews: &sessionmsg.TickDelta{Chunk: u.Chunk, Chat: events},
		tick: sub.mu.tick, sub: sub, chunk: mc, stamp: stamp, interaction: interactionOf(&u),
	})
}

// interactionOf returns the message for an interaction; nil if the event is none, or of a kind that is shown as text.
func interactionOf(u *nodemsg.ChatEvent) sessionmsg.FromServer {
	m, _ := sessionmsg.InteractionMessage(u)
	return m
}

// departedTicks is how long chat is waited for of a player who has gone out of sight: they may be on the way to another region,
// which is slower to send it. It is longer than events wait.
const departedTicks = 2 * uint64(chat.Wait/region.TickEvery)

// departed is a player who has gone out of sight: the number of their last event when they came, and the tick when they went.
type departed struct{ met, tick uint64 }

// awaitedAuthors returns those players of a clock who are in view here, each with the number of their last event when they came
// into sight.
func (ix *interestIndex) awaitedAuthors(c vclock.Clock) map[vclock.ID]uint64 {
	seen := make(map[vclock.ID]uint64)
	ix.mu.Lock()
	defer ix.mu.Unlock()
	for e := range c.All() {
		id := playerOf(e.ID)
		if a := ix.mu.actors[id]; a != nil {
			seen[e.ID] = a.firstAwaited
		} else if p, gone := ix.mu.departed[id]; gone {
			seen[e.ID] = p.met
		}
	}
	return seen
}

// firstAwaited returns the number up to which a player's events are not waited for, when they come into sight. The lock is held.
func (ix *interestIndex) firstAwaited(b *nodemsg.Body) uint64 {
	p, back := ix.mu.departed[b.Player]
	if delete(ix.mu.departed, b.Player); back {
		return p.met
	}
	return b.Said
}

// noteDeparted records a player who goes out of sight. The lock is held.
func (ix *interestIndex) noteDeparted(id player.ID, met uint64) {
	ix.mu.departed[id] = departed{met, ix.mu.tick}
}

// dropDeparted removes players who have been out of sight for long. The lock is held.
func (ix *interestIndex) dropDeparted() {
	for id, p := range ix.mu.departed {
		if ix.mu.tick-p.tick > departedTicks {
			delete(ix.mu.departed, id)
		}
	}
}

// subtractArriving subtracts events that arrive together with their entering authors from the authors' counts: these are to be
// waited for.
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

// playerOf returns the player of a clock's entry; the zero ID, which no player has, if it cannot be one.
func playerOf(id vclock.ID) (p player.ID) {
	if len(id) == len(p) {
		copy(p[:], id)
	}
	return p
}

// chunkOf returns the chunk in which a player's avatar is.
func (ix *interestIndex) chunkOf(id player.ID) (at grid.ChunkPos, there bool) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	a := ix.mu.actors[id]
	if a == nil || a.bucket == nil {
		return at, false
	}
	return a.bucket.at, true
}
