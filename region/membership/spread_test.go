package membership

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The first letter of a node's name is that of its operator; whose those are that begin with x or y is not known.
func operatorOf(peer string) string {
	if strings.ContainsAny(peer, "xy") {
		return ""
	}
	return peer[:1]
}

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		copies          int
		voters, nearest string
		size            int
		able            string // "": nearest
	}{
		{3, "", "a b c d e", 5, ""},
		{3, "a b c", "a b c d e f", 5, ""},
		{5, "", "a b c d e", 5, ""},
		{3, "", "a b c d", 3, ""},
		{3, "", "a b c d d2 d3", 3, ""},                  // of four operators
		{3, "", "a a2 b c d e", 5, "a b c d e"},          // never two of one
		{3, "", "a b c x y", 3, ""},                      // of unknown operators
		{3, "a b c d e", "a b c d", 5, "a b c d e"},      // e may come back
		{3, "a b c d e", "a b c d d2", 5, "a b c d e"},   // another of d is no substitute
		{3, "a b c d e", "a b c d f", 5, ""},             // f is one
		{3, "a b c d e", "a b c", 3, ""},                 // two are missing
		{3, "a b c d d2", "a b c d d2", 3, ""},           // e's node is d's now
		{3, "a b c x y", "a b c x y d", 5, ""},           // the leader has just started, and does not know x and y yet
		{3, "a b c x y", "a x y d d2", 5, "a x y d b"},   // likewise
		{5, "a b c d x", "a a2 b c d x", 5, "a b c d x"}, // x may be of another operator
		{5, "a b c d x", "a a2 b c d", 5, ""},            // x is away, and may not be
		{3, "a b c d x", "a a2 b c d", 5, "a b c d x"},   // it must be: why else would they be five?
		{3, "a b c", "a b c x y", 3, ""},                 // they do not make a group larger
		{3, "", "x1 x2 x3 x4 x5", 3, ""},                 // an open world
		{5, "", "x1 x2 x3 x4 x5 x6", 5, ""},
		{3, "x1 x2 x3 x4 x5", "x1 x2 x3 x4 x5", 3, ""},    // five were wanted before
		{5, "x1 x2 x3 x4 x5", "x1 x2 x3 x4 x6", 5, ""},    // x6 takes the place of x5
		{5, "x1 x2 x3 x4 x5", "x6 x1 x2 x3 x4 x5", 5, ""}, // x6 is nearer
		{1, "", "a b c d e", 1, ""},                       // few copies are wanted
		{2, "", "a b c d e", 2, ""},                       // likewise
		{7, "", "a b c d e f g", 7, ""},                   // more than five are wanted
	} {
		size, able := Choose(c.copies, strings.Fields(c.voters), strings.Fields(c.nearest), operatorOf)
		want := c.able
		if want == "" {
			want = c.nearest
		}
		if got := strings.Join(able, " "); size != c.size || got != want {
			t.Errorf("%d copies, members [%s], nearest [%s]: %d of [%s], want %d of [%s]", c.copies, c.voters, c.nearest, size, got, c.size, want)
		}
	}
}

// Whatever nodes there are, and whoever of them goes for longer than the grace period, and comes back: a group of five
// has members of five operators, and if only one of them is away, there is nothing to change.
func TestSpreadIsCalm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.Permutation(strings.Fields("a a2 b b2 c c2 d d2 e e2 f g")).Draw(t, "order")[:rapid.IntRange(5, 12).Draw(t, "nodes")]
		members, _ := settle(t, nil, all)
		if len(members) != Spread {
			t.Skip("of fewer operators")
		}
		away := rapid.SampledFrom(members).Draw(t, "away")
		others := slices.DeleteFunc(slices.Clone(all), func(peer string) bool { return operatorOf(peer) == operatorOf(away) })
		during, steps := settle(t, members, others)
		if operators(others) == Spread-1 && steps > 0 {
			t.Fatalf("%s is away, and %d steps make %v of %v", away, steps, during, members)
		}
		if operators(during) != Spread || len(during) != Spread {
			t.Fatalf("members %v", during)
		}
		if after, _ := settle(t, during, all); operators(after) != Spread || len(after) != Spread {
			t.Fatalf("members %v", after)
		}
	})
}

func operators(peers []string) int {
	distinct := make(map[string]bool)
	for _, peer := range peers {
		distinct[operatorOf(peer)] = true
	}
	return len(distinct)
}

// settle takes all steps until nothing is to be changed but the leader, and returns the members, and how many steps
// that took.
func settle(t *rapid.T, voters, nearest []string) ([]string, int) {
	voters = slices.Clone(voters)
	if len(voters) == 0 {
		voters = nearest[:1]
	}
	self := voters[slices.IndexFunc(voters, func(peer string) bool { return slices.Contains(nearest, peer) })]
	for steps := range 100 {
		var members []Member
		for _, peer := range voters {
			members = append(members, Member{Peer: peer, CaughtUp: true, Gone: !slices.Contains(nearest, peer)})
		}
		size, able := Choose(3, voters, nearest, operatorOf)
		switch s := Next(self, members, able, size); s.Kind {
		case Add:
			voters = append(slices.Clone(voters), s.Peer)
		case Remove:
			voters = slices.DeleteFunc(slices.Clone(voters), func(peer string) bool { return peer == s.Peer })
		case Transfer:
			if len(voters) <= size {
				return voters, steps
			}
			self = s.Peer
		default:
			return voters, steps
		}
	}
	t.Fatal("no rest after 100 steps")
	return nil, 0
}
