package vclock

// Relation is the order of two events.
type Relation uint8

// The four outcomes of a comparison.
const (
	// Concurrent is the paper's ||: neither event can be shown to precede the other.
	Concurrent Relation = iota
	// Before is <: the first event precedes the second.
	Before
	// After is >: the second event precedes the first.
	After
	// Equal is =: the events are the same or, for the weaker comparisons, indistinguishable.
	Equal
)

// Inverse returns the relation of the second event to the first.
func (r Relation) Inverse() Relation {
	switch r {
	case Before:
		return After
	case After:
		return Before
	default:
		return r
	}
}

// String writes the relation as the paper does.
func (r Relation) String() string {
	switch r {
	case Before:
		return "<"
	case After:
		return ">"
	case Equal:
		return "="
	default:
		return "||"
	}
}

// relate returns the relation for the results of a <= b and b <= a.
func relate(ab, ba bool) Relation {
	switch {
	case ab && ba:
		return Equal
	case ab:
		return Before
	case ba:
		return After
	default:
		return Concurrent
	}
}

// Compare returns the relation of event a to event b, by the two authors' own components: a is before b if b's clock
// contains a, that is, if b's component of a's author has reached a's own. An author's component is incremented only by
// the author's events, and passed on only by players who have received them, so Before and After are always correct,
// whatever was pruned. Concurrent may be wrong: b may follow a through a player to whom a's author was not relevant.
//
// If each of two stamps contains the other, one of them was forged; they are Concurrent.
func Compare(a, b Stamp) Relation {
	if a.Author == b.Author {
		own, other := a.Own(), b.Own()
		return relate(own <= other, other <= own)
	}
	ab, ba := b.contains(a), a.contains(b)
	if ab && ba {
		return Concurrent
	}
	return relate(ab, ba)
}

// contains reports whether the event with stamp s came after event e, or is e.
func (s Stamp) contains(e Stamp) bool { return s.Clock.Component(e.Author) >= e.Own() }
