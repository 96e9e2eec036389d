package vclock

import (
	"slices"
	"testing"
)

func c(entries ...any) Clock {
	var list []Entry
	for i := 0; i < len(entries); i += 2 {
		list = append(list, Entry{ID: ID(entries[i].(string)), N: uint64(entries[i+1].(int))})
	}
	return clockOf(list...)
}

func sees(ids ...ID) Relevant { return func(id ID) bool { return slices.Contains(ids, id) } }

func wantClock(t *testing.T, what string, got Clock, want string) {
	t.Helper()
	if got.String() != want {
		t.Errorf("%s is %v, want %s", what, got, want)
	}
}

// §2.2: the supremum of sparse clocks keeps everything.
func TestPaperSparseSupremum(t *testing.T) {
	va := c("A", 123, "B", 345, "F", 125, "Q", 12)
	vb := c("A", 123, "B", 346, "F", 126, "P", 64)
	wantClock(t, "sup(VA, VB)", Supremum(va, vb, everybody), "{A:123, B:346, F:126, P:64, Q:12}")
	wantClock(t, "sup(VB, VA)", Supremum(vb, va, everybody), "{A:123, B:346, F:126, P:64, Q:12}")
}

// Algorithm 1 prunes after the union is built, what was there before as well as what came.
func TestPaperAlgorithm1(t *testing.T) {
	va := c("A", 123, "B", 345, "F", 125, "Q", 12)
	vb := c("A", 123, "B", 346, "F", 126, "P", 64)
	wantClock(t, "the supremum", Supremum(va, vb, sees("A", "B", "P")), "{A:123, B:346, P:64}")
	wantClock(t, "VA", va, "{A:123, B:345, F:125, Q:12}")
}

// §3.2, Figure 1: A sees B and Z, B sees A and X. The seven steps, with the clocks that the paper prints.
func TestPaperSevenSteps(t *testing.T) {
	a, b, x, z := NewOwner("A", 0), NewOwner("B", 0), NewOwner("X", 0), NewOwner("Z", 0)
	aSees, bSees, zSees := sees("B", "Z"), sees("A", "X"), sees("A")

	for _, o := range []*Owner{a, b, x, z} { // 1
		wantClock(t, "a clock at first", o.Clock(), "{}")
	}
	v1 := x.Act() // 2
	wantClock(t, "X in step 2", v1.Clock, "{X:1}")
	b.Merge(v1, bSees)
	v2 := b.Act() // 3
	wantClock(t, "B in step 3", v2.Clock, "{B:1, X:1}")
	a.Merge(v2, aSees)
	v4 := a.Act() // 4
	wantClock(t, "A in step 4", v4.Clock, "{A:1, B:1}")
	z.Merge(v4, zSees)
	v5 := z.Act() // 5
	wantClock(t, "Z in step 5", v5.Clock, "{A:1, Z:1}")
	a.Merge(v5, aSees)
	v7 := a.Act() // 6
	wantClock(t, "A in step 6", v7.Clock, "{A:2, B:1, Z:1}")

	// 7: B compares. Whole clocks are parallel.
	for _, tt := range []struct {
		name string
		got  Relation
		want Relation
	}{
		{"<s", compareSparse(v2.Clock, v7.Clock), Concurrent},
		{"the authors' own", Compare(v2, v7), Before},
		{"the authors' own, turned", Compare(v7, v2), After},
	} {
		if tt.got != tt.want {
			t.Errorf("step 7 by %s: %v, want %v", tt.name, tt.got, tt.want)
		}
	}
}

// §3.3 says that "<" survives pruning. It does not: the smaller component may be the pruned one.
func TestPruningTurnsBeforeIntoEqual(t *testing.T) {
	v1, v2 := c("A", 1, "B", 1), c("A", 1, "B", 2)
	if got := compareSparse(v1, v2); got != Before {
		t.Fatalf("whole: %v, want <", got)
	}
	if got := compareSparse(v1.Prune(sees("A")), v2.Prune(sees("A"))); got != Equal {
		t.Errorf("pruned to A: %v, want =", got)
	}
}

// What pruned clocks cannot show (Charron-Bost): A → C → B, and A is not relevant to B. The chain can be found again.
func TestPrunedInTransit(t *testing.T) {
	a, b, cc := NewOwner("A", 0), NewOwner("B", 0), NewOwner("C", 0)
	first := a.Act()
	cc.Merge(first, sees("A", "B"))
	link := cc.Act()
	b.Merge(link, sees("C"))
	last := b.Act()
	if got := Compare(first, last); got != Concurrent {
		t.Errorf("without the link: %v, want ||", got)
	}
	for _, order := range [][]Stamp{{first, link, last}, {last, link, first}, {link, last, first}, {first, last, link}} {
		h := NewHistory(8)
		for _, s := range order {
			h.Record(s)
		}
		if got := h.Compare(first, last); got != Before {
			t.Errorf("with the link, in the order %v: %v, want <", order, got)
		}
		if got := h.Compare(last, first); got != After {
			t.Errorf("with the link, in the order %v, turned: %v, want >", order, got)
		}
	}
}

func TestRelations(t *testing.T) {
	for _, tt := range []struct {
		r          Relation
		text       string
		turnedInto Relation
	}{
		{Before, "<", After},
		{After, ">", Before},
		{Equal, "=", Equal},
		{Concurrent, "||", Concurrent},
	} {
		if tt.r.String() != tt.text || tt.r.Inverse() != tt.turnedInto {
			t.Errorf("%v: turned %v", tt.r, tt.r.Inverse())
		}
	}
}
