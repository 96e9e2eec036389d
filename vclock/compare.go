package vclock

import "strings"

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

// BeforeOrEqual is the paper's <=.
func (r Relation) BeforeOrEqual() bool { return r == Before || r == Equal }

// AfterOrEqual is the paper's >=.
func (r Relation) AfterOrEqual() bool { return r == After || r == Equal }

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

// Algorithm2 is the paper's comparison as printed: of both clocks it keeps the components relevant to the player who
// compares, whether the other clock has them or not. research/measured.md has figures for how much it misses.
func Algorithm2(a, b Clock, relevant Relevant) Relation {
	return compareWhere(a, b, func(x, y Entry) bool { return relevant(nameOf(x, y)) })
}

// CompareCommon is the comparison that the paper's text describes before Algorithm 2: "identify the common subset of
// clock components and prune the other ones". Two clocks without common components compare as Equal.
func CompareCommon(a, b Clock) Relation {
	return compareWhere(a, b, func(x, y Entry) bool { return x.N > 0 && y.N > 0 })
}

// CompareCommonAndOwn compares the common components and those of the two authors.
func CompareCommonAndOwn(a, b Stamp) Relation {
	return compareWhere(a.Clock, b.Clock, func(x, y Entry) bool {
		if x.N > 0 && y.N > 0 {
			return true
		}
		id := nameOf(x, y)
		return id == a.Author || id == b.Author
	})
}

func nameOf(x, y Entry) ID {
	if x.N > 0 {
		return x.ID
	}
	return y.ID
}

// compareWhere compares the components for which counts reports true. It calls counts with the entry of a and that of
// b, one of which may be zero.
func compareWhere(a, b Clock, counts func(x, y Entry) bool) Relation {
	ab, ba := true, true
	see := func(x, y Entry) {
		if x.N != y.N && counts(x, y) {
			ab = ab && x.N < y.N
			ba = ba && y.N < x.N
		}
	}
	x, y := a.entries, b.entries
	for len(x) > 0 && len(y) > 0 {
		switch c := strings.Compare(string(x[0].ID), string(y[0].ID)); {
		case c < 0:
			see(x[0], Entry{})
			x = x[1:]
		case c > 0:
			see(Entry{}, y[0])
			y = y[1:]
		default:
			see(x[0], y[0])
			x, y = x[1:], y[1:]
		}
	}
	for _, e := range x {
		see(e, Entry{})
	}
	for _, e := range y {
		see(Entry{}, e)
	}
	return relate(ab, ba)
}
