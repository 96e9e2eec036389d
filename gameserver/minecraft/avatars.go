package minecraft

import (
	"maps"
	"math"
	"time"

	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// selfEntity is the number of the client's own player.
const selfEntity = 1

// avatars are the other players in view, as the client is shown them.
type avatars struct {
	self     player.ID
	tick     time.Duration // of the gateway
	decoder  *sessionmsg.AvatarDecoder
	readAt   time.Time // when the newest frame arrived
	names    map[player.ID]string
	shown    map[player.ID]*shown
	entities map[int32]player.ID // of the shown
	last     int32               // entity; they are not used again

	seen map[player.ID]motion.Pose // scratch
}

// shown is another player as the client sees them.
type shown struct {
	entity int32
	at     place
}

// unit is that of a place, in a block.
const unit = 4096

// place is a pose as it is sent: in 1/4096 of a block, and 1/256 of a turn.
type place struct {
	x, y, z    int64
	yaw, pitch byte
}

func placeOf(p motion.Pose) place {
	fixed := func(v float64) int64 { return int64(math.Round(v * unit)) }
	angle := func(v float32) byte { return byte(int64(math.Round(float64(v) / (2 * math.Pi) * 256))) } //nolint:gosec // modulo a turn
	return place{fixed(p.X), fixed(p.Y), fixed(p.Z), angle(p.Yaw), angle(-p.Pitch)}
}

func (at place) position() (x, y, z float64) {
	return float64(at.x) / unit, float64(at.y) / unit, float64(at.z) / unit
}

func newAvatars() avatars {
	return avatars{
		decoder: new(sessionmsg.AvatarDecoder), names: make(map[player.ID]string), shown: make(map[player.ID]*shown),
		entities: make(map[int32]player.ID), last: selfEntity, seen: make(map[player.ID]motion.Pose),
	}
}

// read applies a tick frame, and passes its pieces on.
func (a *avatars) read(frame []byte, now time.Time, to sessionmsg.TickReader) error {
	a.readAt = now
	return a.decoder.Read(frame, to)
}

// player returns the player that is shown as an entity.
func (a *avatars) player(entity int32) (id player.ID, known bool) {
	id, known = a.entities[entity]
	return id, known
}

// list puts a player into the list of players. The game cuts no names: it fails at long ones.
func (a *avatars) list(id player.ID, name string, put func(packet)) {
	name = name[:min(len(name), maxLoginName)]
	put(append(begin(packetPlayers).u8(playerAddAndList).varint(1), id[:]...).text(name).varint(0).varint(gameModeCreative).u8(1))
}

// move shows the players in view where they are now.
func (a *avatars) move(now time.Time, put func(packet)) {
	clear(a.seen)
	after := min(float64(now.Sub(a.readAt))/float64(max(a.tick, 1)), sessionmsg.TickExtrapolation)
	a.decoder.Each(max(0, after), func(id player.ID, pose motion.Pose) {
		if id != a.self {
			a.seen[id] = pose
		}
	})
	for id, s := range a.shown {
		if _, here := a.seen[id]; !here {
			put(begin(packetRemoveEntities).varint(1).varint(int(s.entity)))
			put(append(begin(packetRemovePlayers).varint(1), id[:]...))
			delete(a.entities, s.entity)
			delete(a.shown, id)
		}
	}
	for id, pose := range a.seen {
		at := placeOf(pose)
		switch s := a.shown[id]; {
		case s == nil:
			a.show(id, at, put)
		case s.at != at:
			s.move(at, put)
		}
	}
	maps.DeleteFunc(a.names, func(id player.ID, _ string) bool { _, here := a.seen[id]; return !here })
}

func (a *avatars) show(id player.ID, at place, put func(packet)) {
	a.last++
	s := &shown{entity: a.last, at: at}
	a.shown[id], a.entities[s.entity] = s, id
	a.list(id, a.names[id], put)
	x, y, z := at.position()
	put(append(begin(packetSpawnEntity).varint(int(s.entity)), id[:]...).varint(entityPlayer).f64(x, y, z).
		u8(at.pitch, at.yaw, at.yaw).varint(0).i16(0).i16(0).i16(0))
}

// move shows a player at another place: from the last one if it is near.
func (s *shown) move(at place, put func(packet)) {
	dx, dy, dz := at.x-s.at.x, at.y-s.at.y, at.z-s.at.z
	if far := max(dx, -dx, dy, -dy, dz, -dz) > math.MaxInt16; far {
		x, y, z := at.position()
		put(begin(packetTeleportEntity).varint(int(s.entity)).f64(x, y, z).u8(at.yaw, at.pitch, 1))
	} else {
		put(begin(packetMoveEntity).varint(int(s.entity)).i16(int16(dx)).i16(int16(dy)).i16(int16(dz)).u8(at.yaw, at.pitch, 1))
	}
	if at.yaw != s.at.yaw {
		put(begin(packetTurnHead).varint(int(s.entity)).u8(at.yaw))
	}
	s.at = at
}
