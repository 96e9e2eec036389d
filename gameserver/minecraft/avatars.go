package minecraft

import (
	"math"
	"time"

	"github.com/voxelpopuli/voxeld/blocktable"
	"github.com/voxelpopuli/voxeld/gameserver/games"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// selfEntity is the number of the client's own player.
const selfEntity = 1

// avatars are the other players in view, as the client is shown them.
type avatars struct {
	*games.Others[shown]
	self     player.ID           // as the client knows it
	entities map[int32]player.ID // of those who are shown
	last     int32               // entity; they are not used again
	next     packet              // scratch, with room for a move
}

// shown is another player as the client sees them.
type shown struct {
	entity int32 // 0: not yet
	at     place
	stance nodemsg.Stance
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

func newAvatars(changed func(*sessionmsg.TickDelta)) avatars {
	return avatars{Others: games.NewOthers[shown](changed), entities: make(map[int32]player.ID), last: selfEntity, next: begin(0)}
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

func (a *avatars) unlist(id player.ID, put func(packet)) {
	put(append(begin(packetRemovePlayers).varint(1), id[:]...))
}

// move shows the players in view where they are now.
func (a *avatars) move(now time.Time, put func(packet)) {
	a.Update(now, func(v *games.Other[shown]) {
		if v.As.entity != 0 {
			put(begin(packetRemoveEntities).varint(1).varint(int(v.As.entity)))
			a.unlist(v.ID, put)
			delete(a.entities, v.As.entity)
		}
	})
	for _, v := range a.All() {
		switch at := placeOf(v.Pose); {
		case v.As.entity == 0:
			a.show(v, at, put)
		case v.As.at != at:
			v.As.move(at, a.next[:0], put)
		}
		if v.As.stance != v.Stance {
			v.As.take(v.Stance, put)
		}
	}
}

func (a *avatars) show(v *games.Other[shown], at place, put func(packet)) {
	a.last++
	v.As = shown{entity: a.last, at: at}
	a.entities[a.last] = v.ID
	a.list(v.ID, v.Name, put)
	x, y, z := at.position()
	put(append(begin(packetSpawnEntity).varint(int(a.last)), v.ID[:]...).varint(entityPlayer).f64(x, y, z).
		u8(at.pitch, at.yaw, at.yaw).varint(0).i16(0).i16(0).i16(0))
}

// take shows a player in another stance.
func (s *shown) take(stance nodemsg.Stance, put func(packet)) {
	if stance.Held != s.stance.Held {
		var item int32 // none, if it is a block of a later version
		if stance.Held.Known() {
			item = int32(blocktable.MinecraftItem(stance.Held))
		}
		put(begin(packetEquipment).varint(int(s.entity)).u8(handSlot).item(item, 1))
	}
	if stance.Sneaks != s.stance.Sneaks {
		flags, pose := byte(0), poseStands
		if stance.Sneaks {
			flags, pose = flagSneaks, poseSneaks
		}
		put(begin(packetEntityData).varint(int(s.entity)).u8(entityFlags, dataByte, flags, entityPose, dataPose).varint(pose).u8(dataEnd))
	}
	s.stance = stance
}

// move shows a player at another place: from the last one if it is near. Next is scratch.
func (s *shown) move(at place, next packet, put func(packet)) {
	dx, dy, dz := at.x-s.at.x, at.y-s.at.y, at.z-s.at.z
	if far := max(dx, -dx, dy, -dy, dz, -dz) > math.MaxInt16; far {
		x, y, z := at.position()
		put(next.u8(packetTeleportEntity).varint(int(s.entity)).f64(x, y, z).u8(at.yaw, at.pitch, 1))
	} else {
		put(next.u8(packetMoveEntity).varint(int(s.entity)).i16(int16(dx)).i16(int16(dy)).i16(int16(dz)).u8(at.yaw, at.pitch, 1))
	}
	if at.yaw != s.at.yaw {
		put(next.u8(packetTurnHead).varint(int(s.entity)).u8(at.yaw))
	}
	s.at = at
}
