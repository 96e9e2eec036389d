package vclock

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// A History that has wrapped around many times stays bounded, and still compares the events that it holds.
func TestHistoryIsBounded(t *testing.T) {
	h := NewHistory(8)
	talker := NewOwner("talker", 0)
	var last [2]Stamp
	for i := range 5000 {
		passer := NewOwner(ID(fmt.Sprintf("passer %d", i)), 0)
		hello := passer.Act()
		h.Record(hello)
		talker.Merge(hello, everybody)
		last = [2]Stamp{last[1], talker.Act()}
		talker.Merge(last[1], sees()) // others are no longer relevant
		h.Record(last[1])
		if len(h.past) > 8 || len(h.places) > 8 || len(h.known) > 4*8+MaxEntries {
			t.Fatalf("after %d events: %d remembered, of %d authors, %d players known", i, len(h.past), len(h.places), len(h.known))
		}
	}
	if got := h.Compare(last[0], last[1]); got != Before {
		t.Errorf("the last two: %v, want <", got)
	}
}

// A gateway's history: in a crowd of 50, each event reaches all.
func BenchmarkHistoryReceive(b *testing.B) {
	for _, size := range []int{256, 4096} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 2))
			var all Clock
			h := NewHistory(size)
			for b.Loop() {
				author := ID(fmt.Sprintf("%016d", rng.IntN(50)))
				all = all.with(author, all.Component(author)+1)
				h.Record(Stamp{author, all})
			}
		})
	}
}
