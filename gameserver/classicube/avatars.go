package classicube

import (
	"maps"
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
	names   map[player.ID]string
	shown   map[player.ID]*shown
	free    []byte // ids
	list    bool   // the client has ExtPlayerList

	seen map[player.ID]motion.Pose // scratch
}

// shown is another player as the client sees them.
type shown struct {
	id byte
	at place
}

func newAvatars(list bool) avatars {
	a := avatars{
		decoder: new(sessionmsg.AvatarDecoder), names: make(map[player.ID]string), shown: make(map[player.ID]*shown),
		seen: make(map[player.ID]motion.Pose), list: list,
	}
	n := plainIDs
	if list {
		n = extendedIDs
	}
	for id := n - 1; id >= 0; id-- {
		a.free = append(a.free, byte(id))
	}
	return a
}

// read applies a tick frame, and passes its pieces on.
func (a *avatars) read(frame []byte, now time.Time, to sessionmsg.TickReader) error {
	a.readAt = now
	return a.decoder.Read(frame, to)
}

// forget takes everybody out of sight, before a new level.
func (a *avatars) forget(put func(packet)) {
	for id := range a.shown {
		a.hide(id, put)
	}
}

func (a *avatars) hide(id player.ID, put func(packet)) {
	s := a.shown[id]
	put(begin(packetDespawn).u8(s.id))
	if a.list {
		put(begin(packetRemovePlayerName).u16(uint16(s.id)))
	}
	a.free = append(a.free, s.id)
	delete(a.shown, id)
}

// move shows the players in view where they are now, in a level with a corner. Whoever comes while there is no id is shown as soon as there
// is one.
func (a *avatars) move(now time.Time, origin grid.Pos, put func(packet)) {
	clear(a.seen)
	after := min(float64(now.Sub(a.readAt))/float64(max(a.tick, 1)), sessionmsg.TickExtrapolation)
	a.decoder.Each(max(0, after), func(id player.ID, pose motion.Pose) {
		if id != a.self {
			a.seen[id] = pose
		}
	})
	for id := range a.shown {
		if _, here := a.seen[id]; !here {
			a.hide(id, put)
		}
	}
	for id, pose := range a.seen {
		at := placeOf(pose, origin, eyes)
		s := a.shown[id]
		switch {
		case s == nil && len(a.free) > 0:
			a.show(id, at, put)
		case s != nil && s.at != at:
			s.at = at
			put(begin(packetTeleport).u8(s.id).place(at))
		}
	}
	maps.DeleteFunc(a.names, func(id player.ID, _ string) bool { _, here := a.seen[id]; return !here })
}

func (a *avatars) show(id player.ID, at place, put func(packet)) {
	s := &shown{id: a.free[len(a.free)-1], at: at}
	a.free = a.free[:len(a.free)-1]
	a.shown[id] = s
	name := a.names[id]
	if !a.list {
		put(begin(packetSpawn).u8(s.id).text(name).place(at))
		return
	}
	put(begin(packetAddPlayerName).u16(uint16(s.id)).text(name).text(name).text("Players").u8(0))
	put(begin(packetAddEntity2).u8(s.id).text(name).text(name).place(at))
}
