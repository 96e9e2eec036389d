package vclock

import (
	"fmt"
	"slices"
)

// Stamp is attached to an event: its author, and the author's clock with the event itself counted.
type Stamp struct {
	Author ID
	Clock  Clock // its component of Author is greater than 0
}

// Own returns the author's own component: the number of this event among the author's.
func (s Stamp) Own() uint64 { return s.Clock.Component(s.Author) }

// String writes the stamp as B{A:1, B:2}.
func (s Stamp) String() string { return string(s.Author) + s.Clock.String() }

// Owner is the clock of one player, kept with the player's session. It belongs to the goroutine that owns the session.
type Owner struct {
	id     ID
	clock  Clock
	limit  int  // entries of clock, at most
	latest []ID // the players heard by the owner, each once, the most recent last; at most limit-1
}

// NewOwner returns a player's clock after the given number of events. A player's component must never decrease, or new
// events would be mistaken for old ones. A player who moves to another gateway or comes back starts with the result of
// Done, or with a number that cannot have been reached, such as the time in milliseconds (edit sequences do so,
// docs/adr/0006). Passing their own last stamp to Hear restores the components of other players. It panics if the ID is
// not 1 to MaxID bytes.
func NewOwner(id ID, done uint64) *Owner {
	if len(id) == 0 || len(id) > MaxID {
		panic(fmt.Sprintf("vclock: an ID of %d bytes, want 1 to %d", len(id), MaxID))
	}
	o := &Owner{id: id, limit: MaxEntries}
	if done > 0 {
		o.clock = o.clock.with(id, done)
	}
	return o
}

// Limit bounds the owner's clock to so many entries, including the owner's own; the default is MaxEntries. If more
// players are relevant, the clock keeps those whom the owner heard most recently; the others' events can still be found
// by chains (History). It panics below 2 or above MaxEntries.
func (o *Owner) Limit(entries int) {
	if entries < 2 || entries > MaxEntries {
		panic(fmt.Sprintf("vclock: a limit of %d entries, want 2 to %d", entries, MaxEntries))
	}
	o.limit = entries
}

// Clock returns the owner's current clock.
func (o *Owner) Clock() Clock { return o.clock }

// Done returns how many events the owner has done, for the next NewOwner.
func (o *Owner) Done() uint64 { return o.clock.Component(o.id) }

// Act counts an event of the owner and returns its stamp.
func (o *Owner) Act() Stamp {
	o.clock = o.clock.with(o.id, o.Done()+1)
	return Stamp{Author: o.id, Clock: o.clock}
}

// Merge merges the clock of another player's event into the owner's, and prunes players that are not relevant now
// (Algorithm 1). The owner is always relevant. Call it when the event is shown to the player, not when it arrives: a
// player cannot answer what they have not seen.
func (o *Owner) Merge(s Stamp, relevant Relevant) {
	done := o.Done()
	o.clock = Supremum(o.clock, s.Clock, func(id ID) bool { return id != o.id && relevant(id) })
	if s.Author != o.id {
		o.recordAuthor(s.Author)
	}
	if o.clock.Len() > o.limit-1 {
		o.clock = o.clock.Prune(func(id ID) bool { return slices.Contains(o.latest, id) })
	}
	if done > 0 {
		o.clock = o.clock.with(o.id, done)
	}
}

// recordAuthor records the author as the most recently heard.
func (o *Owner) recordAuthor(id ID) {
	if i := slices.Index(o.latest, id); i >= 0 {
		o.latest = slices.Delete(o.latest, i, i+1)
	}
	o.latest = append(o.latest, id)
	if over := len(o.latest) - (o.limit - 1); over > 0 {
		o.latest = slices.Delete(o.latest, 0, over)
	}
}
