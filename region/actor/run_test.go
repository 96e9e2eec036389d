package actor

import (
	"fmt"
	"testing"
	"time"
)

// The ticks of all regions of a node fall together, whenever they were opened, and those of slow regions with them.
// Those of another node fall at other times.
func TestTicksOfANodeFallTogether(t *testing.T) {
	phase := func(node string, now time.Time, every time.Duration) time.Duration {
		next := nextTick(phaseOf(node), now, every)
		if wait := next.Sub(now); wait < time.Millisecond || wait >= every+time.Millisecond {
			t.Fatalf("the next of ticks every %v comes after %v", every, wait)
		}
		return next.Sub(next.Truncate(TickEvery))
	}
	start := time.Unix(1_700_000_000, 0)
	want := phase("a", start, TickEvery)
	for i := range 1000 {
		now := start.Add(time.Duration(i) * 777_777 * time.Nanosecond)
		if got, slow := phase("a", now, TickEvery), phase("a", now, restEvery); got != want || slow != want {
			t.Fatalf("ticks %v and %v after multiples of %v, want %v", got, slow, TickEvery, want)
		}
	}
	if phase("b", start, TickEvery) == want {
		t.Errorf("ticks of two nodes fall together")
	}
	fifths := make(map[time.Duration]int) // of the time between two ticks at rest
	for i := range 100 {
		next := nextTick(phaseOf(fmt.Sprint(i)), start, restEvery)
		fifths[next.Sub(next.Truncate(restEvery))/TickEvery]++
	}
	if len(fifths) != int(restEvery/TickEvery) {
		t.Errorf("the ticks at rest of 100 nodes fall into these fifths only: %v", fifths)
	}
}
