package mirror

import (
	"slices"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// maxChatEvents bounds the chat events that wait for a region.
const maxChatEvents = 256

// outgoing is the next message to a region. While there is no link, only chat is collected: the next link begins with the whole
// state. A message's lists take effect in the order of nodemsg.ToRegion, so a call that revokes an earlier one removes it from the
// message. The subscription's lock guards it.
type outgoing struct {
	linked  bool
	message nodemsg.ToRegion
	moves   map[player.ID]int // index in message.Moves: the newest pose replaces the one before
}

// reset drops everything but chat: the link has broken.
func (o *outgoing) reset() {
	o.linked, o.message = false, nodemsg.ToRegion{Chat: o.message.Chat}
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
		} else {
			o.message.Chat = append(o.message.Chat, events[i])
		}
	}
	return out
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

// chat adds a chat event. It reports false, and drops the event, when too many wait for a region that cannot be reached.
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
