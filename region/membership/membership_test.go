package membership

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// groupOf parses "a b' c! d*": a voter, b a learner ('), c gone (!), d lagging behind (*), e leaving (~), f where the
// region has failed lately (^), g lost (?), h with a slow disk (&).
func groupOf(text string) []Member {
	var all []Member
	for word := range strings.FieldsSeq(text) {
		all = append(all, Member{
			Peer: word[:1], Learner: strings.Contains(word, "'"), Gone: strings.Contains(word, "!"),
			CaughtUp: !strings.Contains(word, "*"), Leaving: strings.Contains(word, "~"), Failed: strings.Contains(word, "^"),
			Slow: strings.Contains(word, "&"), Lost: strings.Contains(word, "?"),
		})
	}
	return all
}

func TestNext(t *testing.T) {
	for _, c := range []struct {
		self, members, nearest string
		want                   int
		step                   Step
	}{
		{"a", "a", "a", 3, Step{Kind: Stay}},
		{"a", "a", "a b c", 3, Step{Add, "b"}},
		{"a", "a b'*", "a b c", 3, Step{Kind: Wait}},
		{"a", "a b'", "a b c", 3, Step{Promote, "b"}},
		{"a", "a b", "a b c", 3, Step{Add, "c"}},
		{"a", "a b c", "a b c", 3, Step{Kind: Stay}},
		{"a", "a b c", "a b c d", 3, Step{Kind: Stay}},
		{"a", "a b c", "a b d c", 3, Step{Add, "d"}},
		{"a", "a b c d", "a b d c", 3, Step{Remove, "c"}},
		{"a", "a b c!", "a b d", 3, Step{Add, "d"}},
		{"a", "a b c! d", "a b d", 3, Step{Remove, "c"}},
		{"a", "a b c!", "a b", 3, Step{Kind: Stay}}, // no substitute: c may come back
		{"a", "a b d'!", "a b c", 3, Step{Remove, "d"}},
		{"c", "a b c", "a b c", 3, Step{Transfer, "a"}},
		{"c", "a* b c", "a b c", 3, Step{Transfer, "b"}},
		{"c", "a* b* c", "a b c", 3, Step{Kind: Stay}},
		{"b", "a~ b c", "a b c", 3, Step{Kind: Stay}}, // a is about to stop
		{"c", "a~ b c", "a b c", 3, Step{Transfer, "b"}},
		{"c", "a^ b c", "a b c", 3, Step{Transfer, "b"}}, // it has failed at a
		{"a", "a& b c", "a b c", 3, Step{Transfer, "b"}}, // its disk did not answer
		{"a", "a^ b* c", "a b c", 3, Step{Transfer, "c"}},
		{"a", "a^ b^ c~", "a b c", 3, Step{Kind: Stay}}, // no other is better
		{"a", "a^", "a", 3, Step{Kind: Stay}},
		{"d", "a b c d", "a b c d", 3, Step{Transfer, "a"}},
		{"d", "a^ b~ c~ d", "a b c d", 3, Step{Transfer, "a"}}, // better than a surplus member
		{"a", "a b c d e", "a b c d e", 3, Step{Remove, "e"}},
		{"a", "a b c d!", "a b c", 5, Step{Remove, "d"}},   // no substitute, but of four with one gone none may fail
		{"a", "a b c d!", "a b c e", 5, Step{Remove, "d"}}, // at once: a substitute takes its time
		{"a", "a b c d! e'*", "a b c e", 5, Step{Remove, "d"}},
		{"a", "a b c* d!", "a b c", 5, Step{Kind: Stay}}, // c has to catch up first
		{"a", "a b c d! e!", "a b c", 5, Step{Remove, "d"}},
		{"a", "a b c e!", "a b c", 5, Step{Remove, "e"}},
		{"a", "a b c d!", "a b c d", 5, Step{Kind: Stay}}, // its place is kept
		{"a", "a b c!", "a b", 2, Step{Remove, "c"}},
		{"a", "a b! c!", "a", 1, Step{Kind: Wait}}, // cannot be committed
		{"a", "a b c! d", "a b", 4, Step{Remove, "c"}},
		{"a", "a b* c! d", "a b d", 3, Step{Kind: Wait}}, // b has to catch up before anybody leaves
		{"a", "a b c d*", "a b d c", 3, Step{Kind: Wait}},
		{"a", "a b c* d", "a b d c", 3, Step{Remove, "c"}},
		{"a", "a b c?", "a b", 3, Step{Remove, "c"}}, // it does not come back
		{"a", "a b c?", "a b d", 3, Step{Remove, "c"}},
		{"a", "a b c? d?", "a b", 3, Step{Kind: Wait}}, // cannot be committed
		{"a", "a b?", "a", 3, Step{Kind: Stay}},
		{"a", "a b c? d'*", "a b d", 3, Step{Remove, "c"}},
		{"a", "a b d'?", "a b d", 3, Step{Remove, "d"}},
		{"b", "a? b c", "b c", 3, Step{Remove, "a"}},
	} {
		if got := Next(c.self, groupOf(c.members), strings.Fields(c.nearest), c.want); got != c.step {
			t.Errorf("%s leads [%s], nearest [%s]: %+v, want %+v", c.self, c.members, c.nearest, got, c.step)
		}
	}
}

// For any group and network, following the steps converges to the wanted members, and the number of live copies never
// falls below the smaller of the initial and the wanted number.
func TestStepsComeToRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := strings.Split("abcdefgh", "")
		want := rapid.IntRange(1, 5).Draw(t, "want")
		nearest := rapid.Permutation(all).Draw(t, "order")[:rapid.IntRange(1, 8).Draw(t, "live")]
		voters := map[string]bool{}
		for _, p := range rapid.Permutation(all).Draw(t, "members")[:rapid.IntRange(1, 5).Draw(t, "size")] {
			voters[p] = true
		}
		alive := func() (n int) {
			for p := range voters {
				if slices.Contains(nearest, p) {
					n++
				}
			}
			return n
		}
		if alive() == 0 || alive() <= len(voters)/2 {
			t.Skip("no quorum")
		}
		self := ""
		for p := range voters {
			if slices.Contains(nearest, p) && (self == "" || p < self) {
				self = p
			}
		}
		least := min(alive(), want)
		for range 100 {
			var members []Member
			for p := range voters {
				members = append(members, Member{Peer: p, CaughtUp: true, Gone: !slices.Contains(nearest, p)})
			}
			slices.SortFunc(members, func(a, b Member) int { return strings.Compare(a.Peer, b.Peer) })
			switch s := Next(self, members, nearest, want); s.Kind {
			case Add: // and promoted
				voters[s.Peer] = true
			case Remove:
				delete(voters, s.Peer)
			case Transfer:
				self = s.Peer
			case Stay:
				target := nearest[:min(want, len(nearest))]
				for _, p := range target {
					if !voters[p] {
						t.Fatalf("rest at %v, want %v", voters, target)
					}
				}
				if self != target[0] {
					t.Fatalf("rest with leader %s, want %s", self, target[0])
				}
				return
			default:
				t.Fatal(fmt.Sprintf("step %+v", s))
			}
			if alive() < least {
				t.Fatalf("%d live copies, there were %d", alive(), least)
			}
		}
		t.Fatal("no rest after 100 steps")
	})
}
