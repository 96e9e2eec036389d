package luanti

import (
	"time"

	"github.com/voxelpopuli/voxeld/gameserver/games"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

const (
	// selfID is the client's own player as an object. Others get the numbers after it.
	selfID = 1
	// maxShown is how many others are shown.
	maxShown = 1000
	// objectKind is the kind of all objects.
	objectKind = 101
	// Commands to objects.
	objectProperties, objectPosition, objectAttachment = 0, 1, 8
)

// avatars are the other players in view, and those of them that the client is shown.
type avatars struct {
	*games.Others[shown]
	used  map[uint16]bool // ids
	next  uint16
	moved packet // scratch
}

// shown is another player as the client sees them.
type shown struct {
	id    uint16 // 0: they are not shown
	at    place
	lossy bool // the client may not have been sent it
}

func newAvatars(changed func(*sessionmsg.TickDelta)) avatars {
	return avatars{Others: games.NewOthers[shown](changed), used: make(map[uint16]bool), next: selfID}
}

// id returns a number that is not in use.
func (a *avatars) id() uint16 {
	for {
		if a.next++; a.next > selfID && !a.used[a.next] {
			a.used[a.next] = true
			return a.next
		}
	}
}

// move shows the players in view where they are now, as far as the client's space reaches. Where somebody walks may be
// lost: the next place follows soon, and the last one is sent once more.
func (a *avatars) move(now time.Time, o origin, put func(packet), putLossy func([]byte)) {
	var gone []uint16
	hide := func(v *games.Other[shown]) {
		if v.As.id != 0 {
			gone = append(gone, v.As.id)
			delete(a.used, v.As.id)
			v.As.id = 0
		}
	}
	a.Update(now, hide)
	var fresh []packet
	moved, stopped := append(a.moved[:0], 0, toObjectMessages), begin(toObjectMessages)
	for _, v := range a.All() {
		if !o.bears(v.Pose) {
			hide(v)
			continue
		}
		at := o.place(v.Pose)
		switch {
		case v.As.id == 0 && len(a.used) < maxShown:
			v.As = shown{id: a.id(), at: at}
			fresh = append(fresh, object(v.As.id, v.Name, at, true))
		case v.As.id != 0 && v.As.at != at:
			v.As.at, v.As.lossy = at, true
			if len(moved)+positionBytes > maxLossy {
				putLossy(moved)
				moved = moved[:2]
			}
			moved = moved.position(v.As.id, at)
		case v.As.lossy:
			v.As.lossy = false
			stopped = stopped.position(v.As.id, at)
		}
	}
	if len(gone)+len(fresh) > 0 {
		put(objects(gone, fresh))
	}
	if a.moved = moved; len(moved) > 2 {
		putLossy(moved)
	}
	if len(stopped) > 2 {
		put(stopped)
	}
}

// objects returns the packet with objects that are gone, and new ones.
func objects(gone []uint16, fresh []packet) packet {
	p := begin(toActiveObjects).u16(uint16(len(gone))) //nolint:gosec // at most maxShown
	for _, id := range gone {
		p = p.u16(id)
	}
	p = p.u16(uint16(len(fresh))) //nolint:gosec // at most maxShown
	for _, f := range fresh {
		p = append(p, f...)
	}
	return p
}

// positionBytes is the length of a position.
const positionBytes = 2 + 2 + 1 + 12*4 + 2 + 4

// position appends the message to an object that it is at a place now.
func (p packet) position(id uint16, at place) packet {
	return p.u16(id).u16(positionBytes-4).u8(objectPosition).place(at).f32(0, 0, 0).f32(0, 0, 0).f32(0, at.yaw, 0).flag(true, false).
		f32(games.TickEvery.Seconds())
}

// Size of a player, in blocks.
const (
	halfWidth, height, eyeHeight = .3, 1.8, 1.62
)

// object is a new player, who is the client's own if they are not seen.
func object(id uint16, name string, at place, seen bool) packet {
	p := packet(nil).u8(objectProperties, 4).u16(20).flag(false).f32(0)
	for range 2 { // for collisions, and for pointing
		p = p.f32(-halfWidth, 0, -halfWidth, halfWidth, height, halfWidth)
	}
	p = p.flag(seen).text("upright_sprite").f32(1, 2, 1).u16(2).text(frontImage).text(backImage)
	p = p.s16(1).s16(1).s16(0).s16(0).flag(seen, false).f32(0).text("") // sprites, visible, steps, turning, mesh
	p = p.u16(0).flag(false).f32(.6).flag(false).f32(0).flag(false)     // colours, collisions, step, facing, culling
	p = p.text(name).u8(white, white, white, white).f32(-1).text("").text("").u8(0).u16(11)
	p = p.f32(eyeHeight, 0).flag(false).text("").flag(true, false).u8(0, 0, 0, 0)
	data := packet(nil).u8(1).text(name).flag(true).u16(id).place(at).f32(0, at.yaw, 0).u16(20).u8(2).blob(p)
	// It is attached to nothing. Until it has been told so, the client hides it.
	data = data.blob(packet(nil).u8(objectAttachment).u16(0).text("").f32(0, 0, 0, 0, 0, 0).flag(seen))
	return packet(nil).u16(id).u8(objectKind).blob(data)
}
