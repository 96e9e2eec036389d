package gameserver

import (
	"github.com/voxelpopuli/voxeld/player"
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
