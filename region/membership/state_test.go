package membership

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// nodes parses the liveness of members: one letter each, in lower case for a learner.
func nodes(all string) (members []Member, liveness func(string) Liveness) {
	known := make(map[string]Liveness)
	for i, letter := range all {
		peer := fmt.Sprint(i)
		members = append(members, Member{Peer: peer, Learner: letter >= 'a'})
		known[peer] = map[rune]Liveness{'A': Alive, 'L': Leaving, 'S': Silent, 'N': NotAsked}[letter&^0x20]
	}
	return members, func(peer string) Liveness { return known[peer] }
}

func TestAssess(t *testing.T) {
	for _, c := range []struct {
		members       string // A alive, L leaving, S silent, N not asked; lower case: a learner
		copies, nodes int
		want          State
	}{
		{"A", 3, 1, Healthy}, // one node, one replica
		{"A", 1, 9, Healthy},
		{"A", 3, 2, UnderReplicated},
		{"Aa", 3, 2, UnderReplicated}, // the learner has not caught up yet
		{"AA", 3, 2, Healthy},
		{"AAA", 5, 3, Healthy}, // the catalog wants five, and there are three
		{"AAA", 5, 4, UnderReplicated},
		{"AAAA", 3, 4, Healthy},  // a move: one more than necessary
		{"AAAAA", 3, 5, Healthy}, // of five operators
		{"AAAAS", 3, 5, Healthy}, // it can lose another one
		{"AAASS", 3, 5, UnderReplicated},
		{"AAANS", 3, 5, Unknown},
		{"AAS", 1, 5, Healthy}, // fewer are wanted than before
		{"AAAS", 2, 5, Healthy},
		{"AAASS", 2, 5, Healthy},
		{"AAS", 3, 3, UnderReplicated},
		{"AAS", 5, 2, UnderReplicated}, // whoever is gone still has a vote
		{"AAAS", 5, 3, UnderReplicated},
		{"AAAS", 3, 3, UnderReplicated},
		{"AAAAS", 5, 4, Healthy},
		{"AAAL", 5, 3, Healthy},
		{"AAS", 3, 9, UnderReplicated},
		{"AASS", 3, 4, NoQuorum},
		{"AS", 3, 2, NoQuorum}, // one of two is not a majority
		{"ASS", 3, 3, NoQuorum},
		{"SSS", 3, 9, NoQuorum},
		{"S", 1, 2, NoQuorum},
		{"ASaaa", 3, 5, NoQuorum}, // learners do not vote
		{"AAL", 3, 3, Healthy},    // a rolling restart
		{"AL", 2, 2, NoQuorum},    // one of two stops: nothing can be changed until it is back
		{"ALL", 3, 3, NoQuorum},
		{"ASL", 3, 3, NoQuorum},
		{"AAN", 3, 3, Unknown},
		{"ANN", 3, 3, Unknown},
		{"ANS", 3, 3, Unknown},
		{"AAN", 2, 3, Healthy},   // whatever the third answers
		{"AANSS", 5, 5, Unknown}, // it may have a majority
		{"AAANS", 5, 5, UnderReplicated},
		{"", 3, 3, Unknown},
		{"aa", 3, 3, Unknown},
	} {
		members, liveness := nodes(c.members)
		limits := Limits{Copies: c.copies, Nodes: c.nodes}
		if got := Assess(members, liveness, false, limits); got != c.want {
			t.Errorf("%s, %d copies on %d nodes: %v, want %v", c.members, c.copies, c.nodes, got, c.want)
		}
		if got := Assess(members, liveness, true, limits); got != Quarantined {
			t.Errorf("%s, quarantined: %v", c.members, got)
		}
	}
}

// Properties of Assess: an answer never makes a state worse, a silence never better; once everybody has been asked
// nothing is unknown; and the order of members does not matter.
func TestAssessProperties(t *testing.T) {
	badness := map[State]int{Healthy: 0, UnderReplicated: 1, NoQuorum: 2}
	random := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		letters := []byte("ALSNalsn")
		all := make([]byte, 1+random.IntN(7))
		for i := range all {
			all[i] = letters[random.IntN(len(letters))]
		}
		all[0] &^= 0x20 // at least one has a vote
		limits := Limits{Copies: 1 + random.IntN(7), Nodes: len(all) + random.IntN(3)}
		assess := func(all []byte) State {
			members, liveness := nodes(string(all))
			return Assess(members, liveness, false, limits)
		}
		state := assess(all)
		for i, letter := range all {
			if letter&^0x20 == 'N' {
				continue
			}
			better, worse := append([]byte{}, all...), append([]byte{}, all...)
			better[i], worse[i] = 'A'|letter&0x20, 'S'|letter&0x20
			b, w := assess(better), assess(worse)
			if state != Unknown && (b != Unknown && badness[b] > badness[state] || w != Unknown && badness[w] < badness[state]) {
				t.Fatalf("%s is %v; when %d answers it is %v, when silent %v", all, state, i, b, w)
			}
		}
		// What is known does not change, whatever those answer who were not asked yet.
		for i, letter := range all {
			if letter&^0x20 == 'N' && state != Unknown {
				for _, answer := range []byte("AS") {
					asked := append([]byte{}, all...)
					asked[i] = answer | letter&0x20
					if got := assess(asked); got != state {
						t.Fatalf("%s is %v although %s is %v", all, state, asked, got)
					}
				}
			}
		}
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		if got := assess(all); got != state {
			t.Fatalf("%s is %v, and in another order %v", all, got, state)
		}
	}
}

// A tally counts as an assessment of each region would, whatever was put and forgotten before.
func TestTally(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var tally Tally
	plain := make(map[uint64]nodemsg.Region)
	liveness := func(peer string) Liveness { return Liveness(len(peer)) % (Silent + 1) }
	limits := Limits{Copies: 3, Nodes: 5}
	for range 20000 {
		id := 2 + random.Uint64N(200)
		if random.IntN(4) == 0 {
			tally.Forget(id)
			delete(plain, id)
			continue
		}
		info := nodemsg.Region{ID: id}
		for _, i := range random.Perm(5)[:1+random.IntN(4)] {
			info.Members = append(info.Members, nodemsg.Member{Peer: "abcde"[:i+1], Learner: random.IntN(4) == 0})
		}
		tally.Put(info)
		plain[id] = info
	}
	var want Counts
	var quarantined []uint64
	for id, info := range plain {
		ill := id%7 == 0
		if ill {
			quarantined = append(quarantined, id)
		}
		want[Assess(MembersOf(info), liveness, ill, limits)]++
	}
	quarantined = append(quarantined, 7777) // of another node; not counted
	if got := tally.Count(liveness, quarantined, limits); got != want || got.Total() != len(plain) {
		t.Errorf("counted %v, want %v", got, want)
	}
	for id := range plain {
		tally.Forget(id)
	}
	if len(tally.mu.groups) != 0 || len(tally.mu.regions) != 0 {
		t.Errorf("%d groups and %d regions stay", len(tally.mu.groups), len(tally.mu.regions))
	}
}

// 10,000 regions on 16 nodes, every one in a group of its own choice of three.
func BenchmarkCount(b *testing.B) {
	random := rand.New(rand.NewPCG(5, 6))
	var tally Tally
	for id := range uint64(10000) {
		info := nodemsg.Region{ID: id + 2}
		for _, i := range random.Perm(16)[:3] {
			info.Members = append(info.Members, nodemsg.Member{Peer: fmt.Sprint("peer", i)})
		}
		tally.Put(info)
	}
	for b.Loop() {
		tally.Count(func(string) Liveness { return Alive }, nil, Limits{Copies: 3, Nodes: 16})
	}
}

// A region that is quarantined on several nodes is one quarantined region.
func TestQuarantinedOnSeveralNodes(t *testing.T) {
	var tally Tally
	for id := range uint64(3) {
		tally.Put(nodemsg.Region{ID: 2 + id, Members: []nodemsg.Member{{Peer: "a"}, {Peer: "b"}, {Peer: "c"}}})
	}
	alive := func(string) Liveness { return Alive }
	got := tally.Count(alive, []uint64{2, 3, 2, 2}, Limits{Copies: 3, Nodes: 3})
	if want := (Counts{Healthy: 1, Quarantined: 2}); got != want {
		t.Errorf("%v, want %v", got.Named(), want.Named())
	}
}
