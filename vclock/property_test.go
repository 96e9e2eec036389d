package vclock

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// pastEvent is an event of a random history, with everything that truly precedes it.
type pastEvent struct {
	stamp Stamp
	whole Clock        // with a clock that is never pruned
	past  map[int]bool // from the graph: indices of the preceding events
}

// drawHistory draws a history: players do things, and others hear some of them, in any order, each with their own
// relevant players at that time.
func drawHistory(t *rapid.T) []pastEvent {
	count := rapid.IntRange(2, 7).Draw(t, "players")
	type who struct {
		pruned, whole *Owner
		past          map[int]bool
	}
	players := make([]who, count)
	for i := range players {
		id := ID(rune('A' + i))
		players[i] = who{NewOwner(id, 0), NewOwner(id, 0), map[int]bool{}}
	}
	var events []pastEvent
	for n := rapid.IntRange(1, 60).Draw(t, "steps"); n > 0; n-- {
		p := &players[rapid.IntRange(0, count-1).Draw(t, "player")]
		if len(events) == 0 || rapid.Bool().Draw(t, "acts") {
			events = append(events, pastEvent{p.pruned.Act(), p.whole.Act().Clock, nil})
			d := &events[len(events)-1]
			d.past = map[int]bool{}
			for i := range p.past {
				d.past[i] = true
			}
			p.past[len(events)-1] = true
			continue
		}
		i := rapid.IntRange(0, len(events)-1).Draw(t, "hears")
		d := events[i]
		mask := rapid.Uint8().Draw(t, "relevant")
		p.pruned.Merge(d.stamp, func(id ID) bool { return mask>>(id[0]-'A')&1 == 1 })
		p.whole.Merge(Stamp{d.stamp.Author, d.whole}, everybody)
		p.past[i] = true
		for j := range d.past {
			p.past[j] = true
		}
	}
	return events
}

func truth(events []pastEvent, i, j int) Relation {
	return relate(i == j || events[j].past[i], i == j || events[i].past[j])
}

// Whole clocks are exact. Compare on pruned ones, with or without a history, never reports a wrong order, and is
// complete for authors who heard each other.
func TestCompareIsSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := drawHistory(t)
		order := rapid.Permutation(slices.Collect(func(yield func(int) bool) {
			for i := range events {
				if !yield(i) {
					return
				}
			}
		})).Draw(t, "order")
		all, few := NewHistory(len(events)), NewHistory(3)
		for _, i := range order {
			all.Record(events[i].stamp)
			few.Record(events[i].stamp)
		}
		for i, a := range events {
			for j, b := range events {
				want := truth(events, i, j)
				whole := Compare(Stamp{a.stamp.Author, a.whole}, Stamp{b.stamp.Author, b.whole})
				if sparse := compareSparse(a.whole, b.whole); sparse != want || whole != want {
					t.Fatalf("whole clocks %v and %v: %v, by own components %v, truly %v", a.whole, b.whole, sparse, whole, want)
				}
				direct, chained, forgetful := Compare(a.stamp, b.stamp), all.Compare(a.stamp, b.stamp), few.Compare(a.stamp, b.stamp)
				for name, got := range map[string]Relation{"Compare": direct, "History": chained, "a short History": forgetful} {
					if got != want && got != Concurrent {
						t.Fatalf("%s of %v and %v: %v, truly %v", name, a.stamp, b.stamp, got, want)
					}
				}
				if direct != Concurrent && (chained != direct || forgetful != direct) {
					t.Fatalf("%v and %v: %v directly, %v and %v by histories", a.stamp, b.stamp, direct, chained, forgetful)
				}
			}
		}
	})
}

// A History finds exactly what follows from single comparisons by chains, compared with a slow model.
func TestHistoryIsTheClosure(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := drawHistory(t)
		h := NewHistory(len(events))
		for _, d := range rapid.Permutation(events).Draw(t, "order") {
			h.Record(d.stamp)
		}
		n := len(events)
		before := make([][]bool, n)
		for i := range before {
			before[i] = make([]bool, n)
			for j := range before[i] {
				before[i][j] = Compare(events[i].stamp, events[j].stamp) == Before
			}
		}
		for k := range n {
			for i := range n {
				for j := range n {
					before[i][j] = before[i][j] || before[i][k] && before[k][j]
				}
			}
		}
		for i := range n {
			for j := range n {
				if got := h.Compare(events[i].stamp, events[j].stamp) == Before; got != before[i][j] {
					t.Fatalf("%v before %v: %v, by all chains %v", events[i].stamp, events[j].stamp, got, before[i][j])
				}
			}
		}
	})
}

// A clock contains nobody but its owner and the players who were relevant at the last Hear.
func TestClockHoldsOnlyRelevantPlayers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := NewOwner("me", 0)
		done := uint64(0)
		for n := rapid.IntRange(1, 30).Draw(t, "steps"); n > 0; n-- {
			if rapid.Bool().Draw(t, "acts") {
				done++
				if s := o.Act(); s.Own() != done || o.Done() != done {
					t.Fatalf("event %d has number %d", done, s.Own())
				}
				continue
			}
			s := drawStamp(t)
			near := rapid.SliceOfN(rapid.SampledFrom([]ID{"a", "b", "c", "d", "me"}), 0, 3).Draw(t, "near")
			old := o.Clock()
			o.Merge(s, sees(near...))
			if o.Done() != done {
				t.Fatalf("hearing %v changed the own component from %d to %d", s, done, o.Done())
			}
			for e := range o.Clock().All() {
				if e.ID == "me" {
					continue
				}
				if !slices.Contains(near, e.ID) || e.N != max(old.Component(e.ID), s.Clock.Component(e.ID)) {
					t.Fatalf("after %v, with %v near, %v became %v", s, near, old, o.Clock())
				}
			}
		}
	})
}

func TestCompareTurned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawStamp(t), drawStamp(t)
		for name, pair := range map[string][2]Relation{
			"own, turned": {Compare(a, b), Compare(b, a).Inverse()},
			"itself":      {Compare(a, a), Equal},
		} {
			if pair[0] != pair[1] {
				t.Fatalf("%s of %v and %v: %v, want %v", name, a, b, pair[0], pair[1])
			}
		}
	})
}

// drawStamp draws a stamp of few players, so that clocks overlap.
func drawStamp(t *rapid.T) Stamp {
	var entries []Entry
	for _, id := range []ID{"a", "b", "c", "d", "me"} {
		entries = append(entries, Entry{id, rapid.Uint64Range(0, 3).Draw(t, string(id))})
	}
	author := rapid.SampledFrom([]ID{"a", "b", "c", "d"}).Draw(t, "author")
	return Stamp{author, clockOf(append(entries, Entry{author, 1})...)}
}

func TestClockOf(t *testing.T) {
	got := clockOf(Entry{"B", 1}, Entry{"A", 7}, Entry{"B", 3}, Entry{"C", 0})
	wantClock(t, "a clock of entries in any order", got, "{A:7, B:3}")
	if got.Len() != 2 || got.Component("B") != 3 || got.Component("C") != 0 {
		t.Errorf("%v has %d entries, B:%d, C:%d", got, got.Len(), got.Component("B"), got.Component("C"))
	}
}

func TestOwnerGoesOn(t *testing.T) {
	o := NewOwner("A", 41)
	if s := o.Act(); s.Own() != 42 || s.String() != "A{A:42}" {
		t.Errorf("an owner of 41 events goes on with %v", s)
	}
	for _, id := range []ID{"", ID(make([]byte, MaxID+1))} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("no panic for an ID of %d bytes", len(id))
				}
			}()
			NewOwner(id, 0)
		}()
	}
}

// In a crowd larger than the limit, clocks keep the players heard most recently, and stamps can still be encoded.
func TestOwnerLimit(t *testing.T) {
	o := NewOwner("me", 1)
	o.Limit(4)
	for i, author := range []ID{"a", "b", "c", "a", "d"} {
		o.Merge(Stamp{author, c(string(author), i+1, "x", 1, "y", 1, "z", 1)}, everybody)
	}
	wantClock(t, "a clock of four", o.Clock(), "{a:4, c:3, d:5, me:1}")
	own := o.Act()
	o.Merge(own, everybody)
	wantClock(t, "a clock of four after its owner's own event", o.Clock(), "{a:4, c:3, d:5, me:2}")
	back := NewOwner("me", own.Own())
	back.Merge(own, everybody)
	wantClock(t, "the clock of who comes back", back.Clock(), "{a:4, c:3, d:5, me:2}")
	crowd := NewOwner("me", 1)
	for i := range MaxEntries + 9 {
		crowd.Merge(NewOwner(ID(fmt.Sprintf("%04d", i)), 0).Act(), everybody)
	}
	s := crowd.Act()
	if _, err := s.Append(nil); err != nil || s.Clock.Len() != MaxEntries || s.Clock.Component("0009") != 0 || s.Clock.Component("0010") != 1 {
		t.Errorf("after a crowd a clock has %d entries, %v", s.Clock.Len(), err)
	}
}

// Two events that each contain the other cannot be genuine.
func TestContradictionIsConcurrent(t *testing.T) {
	a, b := Stamp{"A", c("A", 1, "B", 1)}, Stamp{"B", c("A", 1, "B", 1)}
	if got := Compare(a, b); got != Concurrent {
		t.Errorf("%v and %v: %v, want ||", a, b, got)
	}
	both := NewHistory(0)
	both.Record(a)
	both.Record(b)
	if got := both.Compare(a, b); got != Concurrent {
		t.Errorf("%v and %v, both recorded: %v, want ||", a, b, got)
	}
	h := NewHistory(0)
	for _, s := range []Stamp{{"A", c("A", 1, "B", 1)}, {"B", c("B", 1, "C", 1)}, {"C", c("C", 1, "A", 1)}} {
		h.Record(s) // a cycle of three
	}
	if got := h.Compare(a, Stamp{"C", c("C", 1, "A", 1)}); got == Equal {
		t.Error("a ring is one event")
	}
}

func ExampleOwner() {
	near := func(ID) bool { return true }
	ada, ben := NewOwner("ada", 0), NewOwner("ben", 0)
	question := ada.Act()
	ben.Merge(question, near)
	answer := ben.Act()
	fmt.Println(question, Compare(question, answer), answer)
	// Output: ada{ada:1} < ben{ada:1, ben:1}
}

// clockOf returns a clock of entries in any order. Of several entries for one player the largest counts.
func clockOf(entries ...Entry) Clock {
	sorted := slices.SortedFunc(slices.Values(entries), func(a, b Entry) int {
		if c := strings.Compare(string(a.ID), string(b.ID)); c != 0 {
			return c
		}
		return cmp.Compare(b.N, a.N)
	})
	sorted = slices.CompactFunc(sorted, func(a, b Entry) bool { return a.ID == b.ID })
	return Clock{entries: slices.DeleteFunc(sorted, func(e Entry) bool { return e.N == 0 })}
}

// everybody reports true for every player: clocks are then the sparse ones of §2, which grow to one entry for each
// player.
func everybody(ID) bool { return true }

// compareSparse is the paper's <s and related relations: the comparison of whole vector clocks, in which missing
// components are 0.
func compareSparse(a, b Clock) Relation {
	ab, ba := true, true
	for _, e := range slices.Concat(a.entries, b.entries) {
		x, y := a.Component(e.ID), b.Component(e.ID)
		ab, ba = ab && x <= y, ba && y <= x
	}
	return relate(ab, ba)
}
