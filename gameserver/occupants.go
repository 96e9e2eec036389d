package gameserver

import (
	"bytes"
	"slices"

	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
)

// occupants are the bodies in a chunk of the mirror, each player once, ordered by id. Regions send a chunk's players in that
// order too (world.Crowd.Take): applying a crowd's moves walks both lists in parallel, without lookups.
type occupants []occupant

// occupant is a body and its avatar in the interest index. The subscription's lock guards the pointer to the actor, the index's
// lock the actor.
type occupant struct {
	nodemsg.Body
	actor *actor  // set while the player is in the chunk; nil until the index has applied their entering
	left  float32 // ticks of extrapolation left (Body.Velocity); if more than motion.ExtrapolationTicks, they start after the excess
}

// unstarted is left of a body whose update the subscription has just received.
const unstarted = motion.ExtrapolationTicks + 2

// proceed extrapolates a body by the given number of ticks, and reports whether it has moved. When the extrapolation ends, the
// body stands.
func (o *occupant) proceed(at grid.ChunkPos, ticks float32) (moved bool) {
	before, from := o.Pose, min(o.left, motion.ExtrapolationTicks)
	o.left = max(0, o.left-ticks)
	o.Pose = o.Velocity.Extrapolate(before, float64(from-min(o.left, motion.ExtrapolationTicks)), at)
	if o.left == 0 {
		o.Velocity = motion.Velocity{}
	}
	return o.Pose != before
}

func (o occupants) search(id player.ID) (int, bool) {
	return slices.BinarySearchFunc(o, id, func(a occupant, id player.ID) int { return bytes.Compare(a.Player[:], id[:]) })
}

// of returns a player's entry in the list, nil if they are not in the chunk. It is valid until the list changes.
func (o occupants) of(id player.ID) *occupant {
	if i, here := o.search(id); here {
		return &o[i]
	}
	return nil
}

// put adds or updates a body. It reports whether the player is new.
func (o *occupants) put(b nodemsg.Body) (came bool) {
	i, here := o.search(b.Player)
	if !here {
		*o = slices.Insert(*o, i, occupant{})
	}
	(*o)[i].Body, (*o)[i].left = b, unstarted
	return !here
}

// remove removes a body, and returns it.
func (o *occupants) remove(id player.ID) (last nodemsg.Body, here bool) {
	i, here := o.search(id)
	if here {
		last = (*o)[i].Body
		*o = slices.Delete(*o, i, i+1)
	}
	return last, here
}

// depart starts the extrapolation of bodies just updated, the given number of ticks after the last frame. It reports whether any
// body moves.
func (o occupants) depart(after float32) (goes bool) {
	for i := range o {
		if !o[i].Velocity.Moving() {
			continue
		}
		if goes = true; o[i].left == unstarted {
			o[i].left = motion.ExtrapolationTicks + after
		}
	}
	return goes
}

// proceed extrapolates all moving bodies by the given number of ticks, and appends to moved those that moved. Goes reports
// whether any may move on after that.
func (o occupants) proceed(at grid.ChunkPos, ticks float32, moved []*occupant) (_ []*occupant, goes bool) {
	for i := range o {
		if !o[i].Velocity.Moving() {
			continue
		}
		if o[i].proceed(at, ticks) {
			moved = append(moved, &o[i])
		}
		goes = goes || o[i].Velocity.Moving()
	}
	return moved, goes
}

// move updates poses, and appends to moved those that moved. Players who are not in the chunk are skipped. Moves ordered by id
// cost least.
func (o occupants) move(moves []nodemsg.BodyMove, moved []*occupant) []*occupant {
	next := 0
	for i := range moves {
		m := &moves[i]
		switch {
		case next < len(o) && o[next].Player == m.Player:
		case next+1 < len(o) && o[next+1].Player == m.Player: // one body did not move
			next++
		default:
			at, here := o.search(m.Player)
			if next = at; !here {
				continue
			}
		}
		o[next].Pose, o[next].Velocity, o[next].left = m.Pose, m.Velocity, unstarted
		moved = append(moved, &o[next])
		next++
	}
	return moved
}
