package clocks

import "github.com/voxelpopuli/voxeld/vclock"

// This file compares two clocks by some of their components, as the paper does: all that does not need more than
// clocks. The daemon compares by the authors' own components (vclock.Compare).

// compareRelevant is the paper's Algorithm 2 as printed: of both clocks it keeps the components relevant to the player
// who compares, whether the other clock has them or not.
func compareRelevant(a, b vclock.Clock, relevant vclock.Relevant) vclock.Relation {
	return compareWhere(a, b, func(id vclock.ID, _, _ uint64) bool { return relevant(id) })
}

// compareCommon is the comparison that the paper's text describes before Algorithm 2: "identify the common subset of
// clock components and prune the other ones". Two clocks without common components compare as Equal.
func compareCommon(a, b vclock.Clock) vclock.Relation {
	return compareWhere(a, b, func(_ vclock.ID, x, y uint64) bool { return x > 0 && y > 0 })
}

// compareCommonAndOwn compares the common components and those of the two authors.
func compareCommonAndOwn(a, b vclock.Stamp) vclock.Relation {
	return compareWhere(a.Clock, b.Clock, func(id vclock.ID, x, y uint64) bool {
		return x > 0 && y > 0 || id == a.Author || id == b.Author
	})
}

// compareWhere compares the components, of which one clock may have none, for which counts reports true.
func compareWhere(a, b vclock.Clock, counts func(id vclock.ID, x, y uint64) bool) vclock.Relation {
	ab, ba := true, true // all components that count are at most, at least the other clock's
	for _, one := range [...]vclock.Clock{a, b} {
		for e := range one.All() {
			if x, y := a.Component(e.ID), b.Component(e.ID); x != y && counts(e.ID, x, y) {
				ab, ba = ab && x < y, ba && y < x
			}
		}
	}
	switch {
	case ab && ba:
		return vclock.Equal
	case ab:
		return vclock.Before
	case ba:
		return vclock.After
	}
	return vclock.Concurrent
}
