package membership

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

var lossSeeds = flag.Uint64("membership.seeds", 3000, "number of seeds of TestLosses")

// A losing is a group and the nodes around it, some of which are lost and come back.
type losing struct {
	dice    *rand.Rand
	copies  int               // as configured for the group
	nodes   []string          // all of the world, nearest to the key first
	down    map[string]bool   // silent
	gone    map[string]bool   // for longer than the grace period
	lost    map[string]bool   // excluded for good
	spread  bool              // each node is another operator's
	members map[string]Member // CaughtUp and Learner count
	self    string            // the leader; "" if there is none
	trace   []string
}

func newLosing(dice *rand.Rand, copies, nodes int) *losing {
	l := &losing{
		dice: dice, copies: copies, spread: dice.IntN(2) == 0,
		down: make(map[string]bool), gone: make(map[string]bool), lost: make(map[string]bool), members: make(map[string]Member),
	}
	for i := range nodes {
		l.nodes = append(l.nodes, string(rune('a'+i)))
	}
	dice.Shuffle(nodes, func(i, j int) { l.nodes[i], l.nodes[j] = l.nodes[j], l.nodes[i] })
	first := l.nodes[dice.IntN(nodes)]
	l.members[first] = Member{Peer: first, CaughtUp: true}
	return l
}

func (l *losing) note(format string, args ...any) {
	l.trace = append(l.trace, fmt.Sprintf(format, args...))
}

func (l *losing) live(peer string) bool { return !l.down[peer] && !l.lost[peer] }

func (l *losing) alive() (n int) {
	for _, peer := range l.nodes {
		if l.live(peer) {
			n++
		}
	}
	return n
}

// voters returns how many voters there are, how many of them are live, and how many of these have caught up.
func (l *losing) voters() (all, live, sound int) {
	for peer, m := range l.members {
		if m.Learner {
			continue
		}
		if all++; l.live(peer) {
			if live++; m.CaughtUp {
				sound++
			}
		}
	}
	return all, live, sound
}

// elect lets a member lead that has all that was committed.
func (l *losing) elect() bool {
	if m, there := l.members[l.self]; there && !m.Learner && l.live(l.self) {
		all, live, _ := l.voters()
		return 2*live > all
	}
	l.self = ""
	all, live, sound := l.voters()
	if 2*live <= all || sound == 0 {
		return false
	}
	for _, peer := range l.nodes {
		if m, there := l.members[peer]; there && !m.Learner && m.CaughtUp && l.live(peer) {
			l.self = peer
			break
		}
	}
	return true
}

// next returns what the leader does next, and how many members it wants.
func (l *losing) next() (step Step, want int, target []string) {
	var members []Member
	var voters, nearest []string
	for _, peer := range l.nodes {
		m, there := l.members[peer]
		m.Gone, m.Lost = l.down[peer] && l.gone[peer] || l.lost[peer], l.lost[peer]
		m.CaughtUp = m.CaughtUp && l.live(peer)
		if there {
			members = append(members, m)
			if !m.Learner {
				voters = append(voters, peer)
			}
		}
		if l.live(peer) || there && !m.Gone {
			nearest = append(nearest, peer)
		}
	}
	want, able := Choose(l.copies, voters, nearest, func(peer string) string {
		if l.spread {
			return peer
		}
		return "founder"
	})
	return Next(l.self, members, able, want), want, able[:min(want, len(able))]
}

// step takes one step, if there is one.
func (l *losing) step(t *testing.T) (s Step, took bool) {
	if !l.elect() {
		return s, false
	}
	s, want, target := l.next()
	all, live, sound := l.voters()
	before := l.members[s.Peer]
	if s.Kind != Stay && s.Kind != Wait {
		l.note("%d %s by %s of %d/%d/%d", s.Kind, s.Peer, l.self, sound, live, all)
	}
	switch s.Kind {
	case Add:
		if !l.live(s.Peer) {
			return s, false // it does not answer
		}
		l.members[s.Peer] = Member{Peer: s.Peer, Learner: true}
	case Promote:
		l.members[s.Peer] = Member{Peer: s.Peer, CaughtUp: true}
	case Transfer:
		l.self = s.Peer
	case Remove:
		if s.Peer == l.self {
			l.fail(t, "the leader removes itself")
		}
		delete(l.members, s.Peer)
		_, _, left := l.voters()
		switch {
		case before.Learner:
		case 2*live <= all:
			l.fail(t, "the removal of %s cannot be committed", s.Peer)
		case left < sound && left < min(want, fewest):
			l.fail(t, "the removal of %s leaves %d sound voters", s.Peer, left)
		case l.gone[s.Peer] && !l.lost[s.Peer] && left < min(want, fewest):
			l.fail(t, "%s is gone, and leaves %d sound voters", s.Peer, left)
		case l.gone[s.Peer] && slices.Contains(target, s.Peer) && !l.lost[s.Peer]:
			l.fail(t, "%s loses the place that is kept for it", s.Peer)
		}
	case Wait:
		for peer, m := range l.members { // whoever is live catches up
			if l.live(peer) && !m.CaughtUp {
				m.CaughtUp = true
				l.members[peer] = m
				return s, true
			}
		}
		return s, false
	case Stay:
		return s, false
	}
	return s, true
}

// settle takes steps until there is nothing more to do, all live members have caught up, and checks what remains.
func (l *losing) settle(t *testing.T) {
	for peer := range l.down {
		l.gone[peer] = l.down[peer]
	}
	added := make(map[string]bool)
	for rounds := 0; ; rounds++ {
		for peer, m := range l.members {
			if l.live(peer) && !m.Learner {
				m.CaughtUp = true
				l.members[peer] = m
			}
		}
		s, took := l.step(t)
		if !took {
			break
		}
		if s.Kind == Add && added[s.Peer] {
			l.fail(t, "%s is added again", s.Peer)
		}
		if added[s.Peer] = added[s.Peer] || s.Kind == Add; rounds > 60 {
			l.fail(t, "no rest")
		}
	}
	all, live, sound := l.voters()
	if 2*live <= all {
		return
	}
	if len(l.members) != all {
		l.fail(t, "learners remain")
	}
	step, want, target := l.next()
	if step.Kind != Stay {
		l.fail(t, "it rests although there is step %+v", step)
	}
	if want := min(want, l.alive()); sound < want {
		l.fail(t, "%d sound voters of %d", sound, want)
	}
	if l.alive() >= fewest && want >= fewest && 2*(live-1) <= all {
		l.fail(t, "%d of %d voters live: none may fail", live, all)
	}
	for peer := range l.members {
		if l.lost[peer] {
			l.fail(t, "%s is excluded, and remains a voter", peer)
		}
		if l.gone[peer] && live >= min(want, fewest) && !slices.Contains(target, peer) {
			l.fail(t, "%s is gone, and remains a voter", peer)
		}
	}
}

func (l *losing) fail(t *testing.T, format string, args ...any) {
	t.Helper()
	t.Fatalf("%s; members %v, leader %q, down %v, gone %v, lost %v, %d copies, spread %t, nodes %v\n%s", fmt.Sprintf(format, args...),
		l.members, l.self, l.down, l.gone, l.lost, l.copies, l.spread, l.nodes, strings.Join(l.trace, "\n"))
}

func (l *losing) lose(peer string) { l.note("%s is lost", peer); l.down[peer] = true }
func (l *losing) found(peer string) {
	l.note("%s is back", peer)
	delete(l.down, peer)
	delete(l.gone, peer)
}

// some takes some steps, perhaps none, and lets members lag and grace periods end in between.
func (l *losing) some(t *testing.T) {
	for range l.dice.IntN(6) {
		peer := l.nodes[l.dice.IntN(len(l.nodes))]
		switch l.dice.IntN(4) {
		case 0:
			l.gone[peer] = l.down[peer]
		case 1: // it lags, but never so many that what is committed is on fewer than most voters
			all, _, sound := l.voters()
			if m := l.members[peer]; m.CaughtUp && !m.Learner && peer != l.self && 2*(sound-1) > all {
				m.CaughtUp = false
				l.members[peer] = m
			}
		default:
			l.step(t)
		}
	}
}

// Five nodes are lost in every order down to one, and come back in every order: with time to settle in between, a group
// keeps a majority as long as that is possible, and has all its members again in the end.
func TestEveryOrderOfLosses(t *testing.T) {
	orders := permutations("abcde")
	for _, copies := range []int{2, 3, 5} {
		for i, out := range orders {
			back := orders[(i*37+11)%len(orders)]
			l := newLosing(rand.New(rand.NewPCG(uint64(i), uint64(copies))), copies, 5)
			l.settle(t)
			for n, peer := range out[:4] {
				l.lose(peer)
				l.settle(t)
				if all, live, _ := l.voters(); copies >= fewest && n < 3 && 2*live <= all {
					l.fail(t, "%d nodes were lost one by one, and the majority with them", n+1)
				}
			}
			for _, peer := range back {
				if l.down[peer] {
					l.found(peer)
					l.settle(t)
				}
			}
			size, _, _ := l.voters()
			if size != copies && (!l.spread || copies < 3 || size != Spread) {
				l.fail(t, "%d voters in the end", size)
			}
		}
	}
}

// Whatever is lost, comes back, lags, is excluded or starts anew, at whatever moment: no removal leaves too few sound
// voters, or cannot be committed, and with three live nodes a group that has come to rest survives the loss of any one.
func TestLosses(t *testing.T) {
	for seed := range *lossSeeds {
		dice := rand.New(rand.NewPCG(seed, 1))
		l := newLosing(dice, []int{1, 2, 3, 3, 5, 5}[dice.IntN(6)], 3+dice.IntN(4))
		l.note("seed %d", seed)
		if dice.IntN(4) > 0 {
			l.settle(t)
		}
		for range dice.IntN(12) {
			peer := l.nodes[dice.IntN(len(l.nodes))]
			switch k := dice.IntN(10); {
			case l.lost[peer]:
			case k < 4:
				l.lose(peer)
			case k < 8:
				l.found(peer)
			case k == 8 && l.alive() > 1: // excluded; where the others are no majority, the command refuses that
				all, _, sound := l.voters()
				m, member := l.members[peer]
				if member && !m.Learner && m.CaughtUp && l.live(peer) {
					sound--
				}
				if !member || m.Learner || 2*sound > all {
					l.note("%s is excluded", peer)
					l.lost[peer] = true
				}
			case len(l.nodes) < 12: // it starts anew, under another id
				l.lose(peer)
				l.nodes = slices.Insert(l.nodes, dice.IntN(len(l.nodes)+1), string(rune('a'+len(l.nodes))))
			}
			l.some(t)
			if dice.IntN(3) == 0 {
				l.settle(t)
			}
		}
		l.settle(t)
	}
}

func permutations(letters string) (all [][]string) {
	if letters == "" {
		return [][]string{nil}
	}
	for i, letter := range letters {
		for _, rest := range permutations(letters[:i] + letters[i+1:]) {
			all = append(all, append([]string{string(letter)}, rest...))
		}
	}
	return all
}
