package clocks

import (
	"slices"
	"testing"

	"github.com/voxelpopuli/voxeld/vclock"
)

func sees(ids ...vclock.ID) vclock.Relevant {
	return func(id vclock.ID) bool { return slices.Contains(ids, id) }
}

// §3.2, Figure 1: A sees B and Z, B sees A and X; in step 7, B compares events of B and A.
func TestPaperStepSeven(t *testing.T) {
	a, b, x, z := vclock.NewOwner("A", 0), vclock.NewOwner("B", 0), vclock.NewOwner("X", 0), vclock.NewOwner("Z", 0)
	b.Merge(x.Act(), sees("A", "X"))
	v2 := b.Act()
	a.Merge(v2, sees("B", "Z"))
	z.Merge(a.Act(), sees("A"))
	a.Merge(z.Act(), sees("B", "Z"))
	v7 := a.Act()
	if v2.Clock.String() != "{B:1, X:1}" || v7.Clock.String() != "{A:2, B:1, Z:1}" {
		t.Fatalf("the events are %v and %v", v2.Clock, v7.Clock)
	}
	for name, tt := range map[string]struct{ got, want vclock.Relation }{
		"common components":                   {compareCommon(v2.Clock, v7.Clock), vclock.Equal}, // {B:1} and {B:1}: A:2 is not common
		"common components and the authors'":  {compareCommonAndOwn(v2, v7), vclock.Before},      // {B:1} and {A:2, B:1}, as printed
		"the same, turned":                    {compareCommonAndOwn(v7, v2), vclock.After},
		"the authors' own":                    {vclock.Compare(v2, v7), vclock.Before},
		"Algorithm 2, B compares":             {compareRelevant(v2.Clock, v7.Clock, sees("A", "B", "X")), vclock.Concurrent}, // it keeps X, which A has pruned
		"Algorithm 2, A compares":             {compareRelevant(v2.Clock, v7.Clock, sees("A", "B", "Z")), vclock.Before},
		"Algorithm 2, pruned to equal clocks": {compareRelevant(v2.Clock, v7.Clock, sees("B")), vclock.Equal},
	} {
		if tt.got != tt.want {
			t.Errorf("step 7 by %s: %v, want %v", name, tt.got, tt.want)
		}
	}
}
