package interest

import (
	"bytes"
	"slices"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Occupants are the players in a chunk of the mirror, each once, ordered by id. Regions send a chunk's players in that
// order too (crowd.Crowd.Flush): applying a crowd's moves walks both lists in parallel, without lookups.
type Occupants []Occupant

// Occupant is a player's body and their avatar in the index.
type Occupant struct {
	nodemsg.Body
	avatar *avatar // set while the player is in the chunk; nil until the index has applied their entering
	left   float32 // ticks of extrapolation left (Body.Velocity); if more than motion.ExtrapolationTicks, they start after the excess
}

// Change is what a delta has changed among a chunk's occupants.
type Change struct {
	Entered []nodemsg.Body // those who were not in the chunk before
	Left    []nodemsg.Body // as they were last seen
	Moved   []*Occupant    // valid until the next change
}

// unstarted is left of a body whose update the subscription has just received.
const unstarted = motion.ExtrapolationTicks + 2

func (o Occupants) search(id player.ID) (int, bool) {
	return slices.BinarySearchFunc(o, id, func(a Occupant, id player.ID) int { return bytes.Compare(a.Player[:], id[:]) })
}

// Of returns a player's entry in the list, nil if they are not in the chunk. It is valid until the list changes.
func (o Occupants) Of(id player.ID) *Occupant {
	if i, here := o.search(id); here {
		return &o[i]
	}
	return nil
}

// Bodies returns the bodies in the chunk.
func (o Occupants) Bodies() []nodemsg.Body {
	bodies := make([]nodemsg.Body, 0, len(o))
	for i := range o {
		bodies = append(bodies, o[i].Body)
	}
	return bodies
}

// Apply applies a region's delta. Moved is reused for the moves.
func (o *Occupants) Apply(n *nodemsg.ChunkDelta, moved []*Occupant) Change {
	var c Change
	// Enter before Leave, as sessionmsg.Piece orders them; the region has a player in one of them only.
	for _, b := range n.Enter {
		if o.put(b) {
			c.Entered = append(c.Entered, b)
		}
	}
	for _, id := range n.Leave {
		if b, here := o.remove(id); here {
			c.Left = append(c.Left, b)
		}
	}
	c.Moved = o.move(n.Moves, moved)
	return c
}

// Replace replaces all occupants by those that a region has sent as a chunk's whole state. It adds those who are new or
// differ from before, and those who have left, to the delta. The first of several bodies of one player counts.
func (o *Occupants) Replace(bodies []nodemsg.Body, delta *nodemsg.ChunkDelta) Change {
	var c Change
	next := make(Occupants, 0, len(bodies))
	for _, b := range bodies {
		if next.Of(b.Player) != nil {
			continue // a region sends each player once
		}
		next.put(b)
		before := o.Of(b.Player)
		if before == nil {
			c.Entered = append(c.Entered, b)
			delta.Enter = append(delta.Enter, b)
			continue
		}
		next.Of(b.Player).avatar = before.avatar
		if before.Said = b.Said; before.Body != b { // what they said meanwhile is no change
			delta.Enter = append(delta.Enter, b)
		}
	}
	for i := range *o {
		if b := &(*o)[i]; next.Of(b.Player) == nil {
			delta.Leave = append(delta.Leave, b.Player)
			c.Left = append(c.Left, b.Body)
		}
	}
	*o = next
	return c
}

// put adds or updates a body. It reports whether the player is new.
func (o *Occupants) put(b nodemsg.Body) (came bool) {
	i, here := o.search(b.Player)
	if !here {
		*o = slices.Insert(*o, i, Occupant{})
	}
	(*o)[i].Body, (*o)[i].left = b, unstarted
	return !here
}

// remove removes a body, and returns it.
func (o *Occupants) remove(id player.ID) (last nodemsg.Body, here bool) {
	i, here := o.search(id)
	if here {
		last = (*o)[i].Body
		*o = slices.Delete(*o, i, i+1)
	}
	return last, here
}

// move updates poses, and appends to moved those that moved. Players who are not in the chunk are skipped. Moves
// ordered by id cost least.
func (o Occupants) move(moves []nodemsg.BodyMove, moved []*Occupant) []*Occupant {
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

// Depart starts the extrapolation of bodies just updated, the given number of ticks after the last frame. It reports
// whether any body moves.
func (o Occupants) Depart(after float32) (anyMoves bool) {
	for i := range o {
		if !o[i].Velocity.Moving() {
			continue
		}
		if anyMoves = true; o[i].left == unstarted {
			o[i].left = motion.ExtrapolationTicks + after
		}
	}
	return anyMoves
}

// Extrapolate extrapolates all moving bodies by the given number of ticks, and appends to moved those that moved. It
// reports whether any may move on after that.
func (o Occupants) Extrapolate(at grid.ChunkPos, ticks float32, moved []*Occupant) (_ []*Occupant, goOn bool) {
	for i := range o {
		if !o[i].Velocity.Moving() {
			continue
		}
		if o[i].extrapolate(at, ticks) {
			moved = append(moved, &o[i])
		}
		goOn = goOn || o[i].Velocity.Moving()
	}
	return moved, goOn
}

// extrapolate extrapolates a body by the given number of ticks, and reports whether it has moved. When the
// extrapolation ends, the body stands.
func (o *Occupant) extrapolate(at grid.ChunkPos, ticks float32) (moved bool) {
	before, wait := o.Pose, max(0, o.left-motion.ExtrapolationTicks)
	o.Pose, o.Velocity = o.Velocity.Coast(before, float64(max(0, ticks-wait)), float64(o.left-wait), at)
	o.left = max(0, o.left-ticks)
	return o.Pose != before
}
