package integrity

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

func one(id byte, count uint64) nodemsg.Incarnation {
	return nodemsg.Incarnation{ID: [16]byte{id}, Count: count}
}

func TestLineageContinues(t *testing.T) {
	own := lineage{one(1, 3), one(2, 0), one(3, 1)}
	for name, c := range map[string]struct {
		remembered nodemsg.Incarnation
		want       bool
	}{
		"the one that runs":             {one(3, 1), true},
		"the one that runs, earlier":    {one(3, 0), true},
		"the one that runs, later":      {one(3, 2), false}, // the disk was put back beneath it
		"an earlier one":                {one(1, 3), true},
		"an earlier one, counted on":    {one(1, 4), false}, // the copy was made while it ran
		"one that is not in the copy":   {one(4, 0), false},
		"nothing like it":               {one(0, 0), false},
		"an earlier one that was quiet": {one(2, 0), true},
	} {
		if got := own.continues(c.remembered); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if !own.adopt(c.remembered, [16]byte{9}).continues(c.remembered) {
			t.Errorf("%s: not continued after it was adopted", name)
		}
	}
}

// Of two peers that remember something that was lost at once, only the first makes the node abandon what it has: what
// it has got since then is sound.
func TestLaterNewsOfTheSameRollback(t *testing.T) {
	own := lineage{one(1, 0), one(5, 0)} // the copy had 1; 2 and 3 were lost
	if !own.outdates(one(3, 0)) {
		t.Error("an old copy is used")
	}
	own = own.adopt(one(3, 0), [16]byte{9})
	if own.outdates(one(2, 7)) {
		t.Error("what the node has got since is abandoned")
	}
	own = own.adopt(one(2, 7), [16]byte{9}).begin([16]byte{6})
	if !own.continues(one(2, 7)) || !own.continues(one(3, 0)) || own.running() != (nodemsg.Incarnation{ID: [16]byte{6}, RolledBack: 1}) {
		t.Errorf("then %v", own)
	}
	lost := nodemsg.Incarnation{ID: [16]byte{7}, RolledBack: 1} // the node was put back once more
	if !own.outdates(lost) {
		t.Error("a second old copy is used")
	}
}

func TestLineageIsBounded(t *testing.T) {
	var own lineage
	for i := range nodemsg.MaxIncarnations + 10 {
		own = own.begin([16]byte{1, byte(i), byte(i >> 8)})
	}
	own = own.adopt(one(2, 0), [16]byte{3})
	if len(own) != nodemsg.MaxIncarnations || !own.continues(one(2, 0)) {
		t.Errorf("%d incarnations, at most %d are shown", len(own), nodemsg.MaxIncarnations)
	}
}

// A node starts, counts and is put back to any earlier state, again and again. Its peer accepts it exactly if the state
// contains the newest start and count that the peer has seen.
func TestLineageAgainstHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type state struct {
			own   lineage
			steps []int // the starts and counts that led to it, as numbers
		}
		steps := 0
		draw := func() [16]byte { steps++; return [16]byte{byte(steps), byte(steps >> 8)} }
		begun := func(s state) state { return state{s.own.begin(draw()), append(slices.Clone(s.steps), steps)} }
		now := begun(state{})
		copies := []state{now}
		var remembered nodemsg.Incarnation
		seen := 0
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			switch rapid.IntRange(0, 4).Draw(t, "event") {
			case 0:
				now = begun(now)
			case 1:
				steps++
				now = state{now.own.raise(), append(slices.Clone(now.steps), steps)}
			case 2:
				copies = append(copies, now)
			case 3: // the copies of states that never were are put back as well
				now = begun(copies[rapid.IntRange(0, len(copies)-1).Draw(t, "copy")])
			case 4:
				got, want := seen == 0 || now.own.continues(remembered), seen == 0 || slices.Contains(now.steps, seen)
				if got != want {
					t.Fatalf("accepted: %v; it consists of %v, and the peer has seen %d", got, now.steps, seen)
				}
				if !want {
					now = state{now.own.adopt(remembered, draw()), append([]int{seen}, now.steps...)}
				}
				remembered, seen = now.own[len(now.own)-1], now.steps[len(now.steps)-1]
			}
		}
	})
}
