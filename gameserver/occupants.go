package gameserver

import (
	"bytes"
	"slices"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
)

// occupants are the bodies in a chunk of the mirror, each player once, in the order of their ids. Regions tell of a chunk's
// players in that order too (world.Crowd.Take): whoever takes in a crowd's moves goes along both lists, and looks nobody up.
type occupants []occupant

// occupant is a body, and who he is on the stage. The feed's lock guards which actor that is, the stage's lock the actor.
type occupant struct {
	wire.Body
	actor *actor  // the stage has it while he is in the chunk; nil until the stage has taken in that he came
	left  float32 // for how many ticks he still goes on along his way (Body.Way); if that is more than wire.WayTicks, after the rest
}

// untold is left of somebody of whom the feed has just been told.
const untold = wire.WayTicks + 2

// proceed takes a body along its way for so many ticks, and tells whether it has moved. Where it ends it stands.
func (o *occupant) proceed(at grid.ChunkPos, ticks float32) (moved bool) {
	before, from := o.Pose, min(o.left, wire.WayTicks)
	o.left = max(0, o.left-ticks)
	o.Pose = o.Way.Along(before, float64(from-min(o.left, wire.WayTicks)), at)
	if o.left == 0 {
		o.Way = wire.Way{}
	}
	return o.Pose != before
}

func (o occupants) search(id player.ID) (int, bool) {
	return slices.BinarySearchFunc(o, id, func(a occupant, id player.ID) int { return bytes.Compare(a.Player[:], id[:]) })
}

// of gives a player's place in the list, nil if he is not in the chunk. It is good until somebody comes or goes.
func (o occupants) of(id player.ID) *occupant {
	if i, here := o.search(id); here {
		return &o[i]
	}
	return nil
}

// put brings a body in, or brings it up to date. It tells whether the player has come.
func (o *occupants) put(b wire.Body) (came bool) {
	i, here := o.search(b.Player)
	if !here {
		*o = slices.Insert(*o, i, occupant{})
	}
	(*o)[i].Body, (*o)[i].left = b, untold
	return !here
}

// remove takes a body out, and gives it as it was last.
func (o *occupants) remove(id player.ID) (last wire.Body, here bool) {
	i, here := o.search(id)
	if here {
		last = (*o)[i].Body
		*o = slices.Delete(*o, i, i+1)
	}
	return last, here
}

// depart notes of those of whom the feed has just been told that they go on from now, which is so many ticks after the last beat. It
// tells whether anybody goes.
func (o occupants) depart(after float32) (goes bool) {
	for i := range o {
		if !o[i].Way.Goes() {
			continue
		}
		if goes = true; o[i].left == untold {
			o[i].left = wire.WayTicks + after
		}
	}
	return goes
}

// proceed lets all go on who are on their way, for so many ticks, and appends to moved those who have moved. Goes tells whether
// somebody may go on after that.
func (o occupants) proceed(at grid.ChunkPos, ticks float32, moved []*occupant) (_ []*occupant, goes bool) {
	for i := range o {
		if !o[i].Way.Goes() {
			continue
		}
		if o[i].proceed(at, ticks) {
			moved = append(moved, &o[i])
		}
		goes = goes || o[i].Way.Goes()
	}
	return moved, goes
}

// move brings poses up to date, and appends to moved those who moved. Those who are not in the chunk are passed over. Moves
// that are in order of the ids cost least.
func (o occupants) move(moves []wire.BodyMove, moved []*occupant) []*occupant {
	next := 0
	for i := range moves {
		m := &moves[i]
		switch {
		case next < len(o) && o[next].Player == m.Player:
		case next+1 < len(o) && o[next+1].Player == m.Player: // one stands still
			next++
		default:
			at, here := o.search(m.Player)
			if next = at; !here {
				continue
			}
		}
		o[next].Pose, o[next].Way, o[next].left = m.Pose, m.Way, untold
		moved = append(moved, &o[next])
		next++
	}
	return moved
}
