package vclock

import (
	"fmt"
	"iter"
	"slices"
	"strings"
)

// ID names a player, as a string of 1 to MaxID bytes. A player.ID's 16 bytes serve.
type ID string

// Entry is a clock component: the number of events that a player has done. Entries of 0 are omitted from clocks.
type Entry struct {
	ID ID
	N  uint64
}

// Clock is a vector clock as a dictionary (Definition 2): players that it does not contain have component 0. A Clock is
// an immutable value; the zero Clock is empty. Clocks share memory, so they are cheap to keep.
type Clock struct {
	entries []Entry // by ascending ID, N > 0
}

// Len returns the number of entries.
func (c Clock) Len() int { return len(c.entries) }

// Component returns a player's component, 0 if the clock does not contain the player.
func (c Clock) Component(id ID) uint64 {
	if i, ok := c.find(id); ok {
		return c.entries[i].N
	}
	return 0
}

// All yields the entries by ascending ID.
func (c Clock) All() iter.Seq[Entry] { return slices.Values(c.entries) }

// String writes the clock as the paper does: {A:1, B:2}.
func (c Clock) String() string {
	var b strings.Builder
	for i, e := range c.entries {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s:%d", e.ID, e.N)
	}
	return "{" + b.String() + "}"
}

func (c Clock) find(id ID) (int, bool) {
	return slices.BinarySearchFunc(c.entries, id, func(e Entry, id ID) int { return strings.Compare(string(e.ID), string(id)) })
}

// with returns the clock with one component set. n is greater than 0.
func (c Clock) with(id ID, n uint64) Clock {
	i, ok := c.find(id)
	if ok {
		entries := slices.Clone(c.entries)
		entries[i].N = n
		return Clock{entries: entries}
	}
	entries := make([]Entry, 0, len(c.entries)+1)
	entries = append(entries, c.entries[:i]...)
	entries = append(entries, Entry{ID: id, N: n})
	return Clock{entries: append(entries, c.entries[i:]...)}
}

// Relevant is the paper's isRelevant(): it reports whether a clock should keep a player's component. In voxeld the
// relevant players are those in vision range, and those involved in an event (package chat). The size of a clock
// is bounded by the number of relevant players.
type Relevant func(id ID) bool

// Supremum is Algorithm 1: for each relevant player, the larger of both components.
func Supremum(a, b Clock, relevant Relevant) Clock {
	union := make([]Entry, 0, len(a.entries)+len(b.entries))
	keep := func(e Entry) {
		if relevant(e.ID) {
			union = append(union, e)
		}
	}
	x, y := a.entries, b.entries
	for len(x) > 0 && len(y) > 0 {
		switch c := strings.Compare(string(x[0].ID), string(y[0].ID)); {
		case c < 0:
			keep(x[0])
			x = x[1:]
		case c > 0:
			keep(y[0])
			y = y[1:]
		default:
			keep(Entry{ID: x[0].ID, N: max(x[0].N, y[0].N)})
			x, y = x[1:], y[1:]
		}
	}
	for _, e := range x {
		keep(e)
	}
	for _, e := range y {
		keep(e)
	}
	return Clock{entries: slices.Clip(union)}
}

// Prune returns the clock with only the relevant components.
func (c Clock) Prune(relevant Relevant) Clock { return Supremum(c, Clock{}, relevant) }
