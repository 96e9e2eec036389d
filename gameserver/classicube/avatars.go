package classicube

import (
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// Ids of other players: a client with ExtPlayerList has room for more of them.
const (
	plainIDs    = 127
	extendedIDs = 254
)

// avatars are the other players in view, and those of them that the client is shown.
type avatars struct {
	self    player.ID
	tick    time.Duration // of the gateway
	decoder *sessionmsg.AvatarDecoder
	readAt  time.Time // when the newest frame arrived
	others  map[player.ID]*avatar
	free    []byte // ids
	list    bool   // the client has ExtPlayerList
	moves   uint64 // calls of move
}

// avatar is another player.
type avatar struct {
	name  string
	at    place  // in the level
	seen  uint64 // the call of move that saw them last
	shown bool
	id    byte // for the client, if shown
}

func newAvatars(list bool) avatars {
	a := avatars{decoder: new(sessionmsg.AvatarDecoder), others: make(map[player.ID]*avatar), list: list}
	n := plainIDs
	if list {
		n = extendedIDs
	}
	for id := n - 1; id >= 0; id-- {
		a.free = append(a.free, byte(id))
	}
	return a
}

// enter names a player who comes into view with the frame that is being read.
func (a *avatars) enter(id player.ID, name string) { a.of(id).name = name }

func (a *avatars) of(id player.ID) *avatar {
	v := a.others[id]
	if v == nil {
		v = &avatar{seen: a.moves}
		a.others[id] = v
	}
	return v
}

// read applies a tick frame, and passes its pieces on.
func (a *avatars) read(frame []byte, now time.Time, to sessionmsg.TickReader) error {
	a.readAt = now
	return a.decoder.Read(frame, to)
}

// forget takes everybody out of sight, before a new level.
func (a *avatars) forget(put func(packet)) {
	for _, v := range a.others {
		a.hide(v, put)
	}
}

func (a *avatars) hide(v *avatar, put func(packet)) {
	if !v.shown {
		return
	}
	put(begin(packetDespawn).u8(v.id))
	if a.list {
		put(begin(packetRemovePlayerName).u16(uint16(v.id)))
	}
	a.free = append(a.free, v.id)
	v.shown = false
}

// move shows the players in view where they are now, in a level with a corner. Whoever comes while there is no id is shown as soon as there
// is one.
func (a *avatars) move(now time.Time, origin grid.Pos, put func(packet)) {
	a.moves++
	newcomers := false
	after := min(float64(now.Sub(a.readAt))/float64(max(a.tick, 1)), sessionmsg.TickExtrapolation)
	a.decoder.Each(max(0, after), func(id player.ID, pose motion.Pose) {
		if id == a.self {
			return
		}
		v, at := a.of(id), placeOf(pose, origin, eyes)
		if v.shown && v.at != at {
			put(begin(packetTeleport).u8(v.id).place(at))
		}
		v.at, v.seen = at, a.moves
		newcomers = newcomers || !v.shown
	})
	for id, v := range a.others {
		if v.seen != a.moves {
			a.hide(v, put)
			delete(a.others, id)
		}
	}
	for _, v := range a.others {
		if !newcomers || len(a.free) == 0 {
			break
		}
		if !v.shown {
			a.show(v, put)
		}
	}
}

func (a *avatars) show(v *avatar, put func(packet)) {
	v.id, v.shown = a.free[len(a.free)-1], true
	a.free = a.free[:len(a.free)-1]
	if !a.list {
		put(begin(packetSpawn).u8(v.id).text(v.name).place(v.at))
		return
	}
	put(begin(packetAddPlayerName).u16(uint16(v.id)).text(v.name).text(v.name).text("Players").u8(0))
	put(begin(packetAddEntity2).u8(v.id).text(v.name).text(v.name).place(v.at))
}
