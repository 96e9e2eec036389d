package mirror

import (
	"bytes"
	"slices"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

const (
	// maxChatEvents bounds the chat events that wait for a region, and those that were sent and have not come back.
	maxChatEvents = 256
	// chatReturns is how soon a chat event comes back from its region, at the latest. An older one was dropped there.
	chatReturns = 10 * time.Second
)

// outgoing is the next message to a region. While there is no link, only chat is collected: the next link begins with
// the whole state. A message's lists take effect in the order of nodemsg.ToRegion, so a call that revokes an earlier
// one removes it from the message. The subscription's lock guards it.
type outgoing struct {
	linked  bool
	message nodemsg.ToRegion
	moves   map[player.ID]int   // index in message.Moves: the newest pose replaces the one before
	sent    []nodemsg.ChatEvent // over this link, and not come back yet: a region that was divided or merged may not have received it
}

// reset drops everything but chat: the link has broken. Chat that was sent and has not come back waits again, before
// the rest. If others have received it, they do not show it twice.
func (o *outgoing) reset(now time.Time) {
	var again []nodemsg.ChatEvent
	for _, u := range o.sent {
		if now.Sub(time.UnixMilli(u.Wall)) < chatReturns && len(again)+len(o.message.Chat) < maxChatEvents {
			again = append(again, u)
		}
	}
	o.linked, o.message, o.sent = false, nodemsg.ToRegion{Chat: append(again, o.message.Chat...)}, nil
	clear(o.moves)
}

// swap returns the message, and begins the next one. Chat that is not due stays for that.
func (o *outgoing) swap(due func(*nodemsg.ChatEvent) bool) nodemsg.ToRegion {
	if !o.linked {
		return nodemsg.ToRegion{} // the link has just broken: the next one sends it
	}
	out := o.message
	o.message = nodemsg.ToRegion{}
	clear(o.moves)
	events := out.Chat
	out.Chat = nil
	for i := range events {
		if due(&events[i]) {
			out.Chat = append(out.Chat, events[i])
			o.keepSent(events[i])
		} else {
			o.message.Chat = append(o.message.Chat, events[i])
		}
	}
	return out
}

// keepSent keeps a chat event that is sent, if receivers can tell that they have it already.
func (o *outgoing) keepSent(u nodemsg.ChatEvent) {
	if _, counted := u.Clock(); !counted {
		return
	}
	if len(o.sent) == maxChatEvents {
		o.sent = slices.Delete(o.sent, 0, 1)
	}
	o.sent = append(o.sent, u)
}

// returned forgets chat events that the region has sent back.
func (o *outgoing) returned(events []nodemsg.ChatEvent) {
	if len(o.sent) == 0 {
		return
	}
	for i := range events {
		e := &events[i]
		o.sent = slices.DeleteFunc(o.sent, func(u nodemsg.ChatEvent) bool { return u.Player == e.Player && bytes.Equal(u.Stamp, e.Stamp) })
	}
}

// watch requests a chunk. If it was watched until just now, the region sends its whole state again.
func (o *outgoing) watch(pos grid.ChunkPos) {
	if o.linked {
		o.message.Unwatch = slices.DeleteFunc(o.message.Unwatch, func(p grid.ChunkPos) bool { return p == pos })
		o.message.Watch = append(o.message.Watch, pos)
	}
}

func (o *outgoing) unwatch(pos grid.ChunkPos) {
	if o.linked {
		o.message.Watch = slices.DeleteFunc(o.message.Watch, func(p grid.ChunkPos) bool { return p == pos })
		o.message.Unwatch = append(o.message.Unwatch, pos)
	}
}

func (o *outgoing) enter(b nodemsg.Body) {
	if !o.linked {
		return
	}
	o.cancelEnterLeave(b.Player)
	o.message.Enter = append(o.message.Enter, b)
	if i, queued := o.moves[b.Player]; queued {
		o.message.Moves[i].Pose, o.message.Moves[i].Velocity = b.Pose, b.Velocity // moves take effect after enters
	}
}

func (o *outgoing) leave(id player.ID) {
	if o.linked {
		o.cancelEnterLeave(id)
		o.message.Leave = append(o.message.Leave, id)
	}
}

// cancelEnterLeave removes a player's entering and leaving from the message.
func (o *outgoing) cancelEnterLeave(id player.ID) {
	o.message.Enter = slices.DeleteFunc(o.message.Enter, func(b nodemsg.Body) bool { return b.Player == id })
	o.message.Leave = slices.DeleteFunc(o.message.Leave, func(l player.ID) bool { return l == id })
}

// hasMove reports whether the message contains a move of the player.
func (o *outgoing) hasMove(id player.ID) bool {
	_, queued := o.moves[id]
	return queued
}

// move sets a player's move. It reports whether the message had none.
func (o *outgoing) move(m nodemsg.BodyMove) (added bool) {
	if i, queued := o.moves[m.Player]; queued {
		o.message.Moves[i] = m
		return false
	}
	o.moves[m.Player] = len(o.message.Moves)
	o.message.Moves = append(o.message.Moves, m)
	return true
}

// chat adds a chat event. It reports false, and drops the event, when too many wait for a region that cannot be
// reached.
func (o *outgoing) chat(u nodemsg.ChatEvent) bool {
	if len(o.message.Chat) >= maxChatEvents {
		return false
	}
	o.message.Chat = append(o.message.Chat, u)
	return true
}

// said returns the highest count of the player's events that wait; 0 if none does.
func (o *outgoing) said(id player.ID) (count uint64) {
	for i := range o.message.Chat {
		if u := &o.message.Chat[i]; u.Player == id {
			if stamp, counted := u.Clock(); counted {
				count = max(count, stamp.Own())
			}
		}
	}
	return count
}
