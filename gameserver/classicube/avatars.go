package classicube

import (
	"time"

	"github.com/voxelpopuli/voxeld/gameserver/games"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// Ids of other players: a client with ExtPlayerList has room for more of them.
const (
	plainIDs    = 127
	extendedIDs = 254
)

// avatars are the other players in view, and those of them that the client is shown.
type avatars struct {
	*games.Others[shown]
	free []byte // ids
	list bool   // the client has ExtPlayerList
	next packet // scratch
}

// shown is another player as the client sees them.
type shown struct {
	on bool // they have an id
	id byte
	at place // in the level
}

func newAvatars(list bool, changed func(*sessionmsg.TickDelta)) avatars {
	a := avatars{Others: games.NewOthers[shown](changed), list: list}
	n := plainIDs
	if list {
		n = extendedIDs
	}
	for id := n - 1; id >= 0; id-- {
		a.free = append(a.free, byte(id))
	}
	return a
}

// forget takes everybody out of sight, before a new level.
func (a *avatars) forget(put func(packet)) {
	for _, v := range a.All() {
		a.hide(&v.As, put)
	}
}

func (a *avatars) hide(s *shown, put func(packet)) {
	if !s.on {
		return
	}
	put(begin(packetDespawn).u8(s.id))
	if a.list {
		put(begin(packetRemovePlayerName).u16(uint16(s.id)))
	}
	a.free = append(a.free, s.id)
	s.on = false
}

// move shows the players in view where they are now, in a level with a corner. Whoever comes while there is no id is
// shown as soon as there is one.
func (a *avatars) move(now time.Time, origin grid.Pos, put func(packet)) {
	a.Update(now, func(v *games.Other[shown]) { a.hide(&v.As, put) })
	for _, v := range a.All() {
		s, at := &v.As, placeOf(v.Pose, origin, eyes)
		switch {
		case s.on && s.at != at:
			s.at = at
			a.next = append(a.next[:0], packetTeleport).u8(s.id).place(at)
			put(a.next)
		case !s.on && len(a.free) > 0:
			*s = shown{on: true, id: a.free[len(a.free)-1], at: at}
			a.free = a.free[:len(a.free)-1]
			a.show(v.Name, s, put)
		}
	}
}

func (a *avatars) show(name string, s *shown, put func(packet)) {
	if !a.list {
		put(begin(packetSpawn).u8(s.id).text(name).place(s.at))
		return
	}
	put(begin(packetAddPlayerName).u16(uint16(s.id)).text(name).text(name).text("Players").u8(0))
	put(begin(packetAddEntity2).u8(s.id).text(name).text(name).place(s.at))
}
