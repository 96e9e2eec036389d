package chunk

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestEditsAgreeWithAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var e Edits
		twin := make(map[Index]Block)
		for range rapid.IntRange(0, 60).Draw(t, "edits") {
			at := Index(rapid.Uint32Range(0, 40).Draw(t, "at"))
			b := Block(rapid.Uint16().Draw(t, "block"))
			e.Set(at, b)
			twin[at] = b
		}
		if e.Len() != len(twin) {
			t.Fatalf("%d edits, want %d", e.Len(), len(twin))
		}
		var order []Index
		for at, b := range e.All() {
			order = append(order, at)
			if twin[at] != b {
				t.Fatalf("edit at %d is %d, want %d", at, b, twin[at])
			}
		}
		if len(order) != len(twin) || !slices.IsSorted(order) {
			t.Fatalf("All yields %v", order)
		}
		for at := range Index(42) {
			got, edited := e.Get(at)
			if want, wasEdited := twin[at]; got != want || edited != wasEdited {
				t.Fatalf("edit at %d: %d, %v; want %d, %v", at, got, edited, want, wasEdited)
			}
		}
		base := column(5)
		c, err := FromBlocks(base)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Apply(c); err != nil {
			t.Fatal(err)
		}
		for at, b := range twin {
			base[at] = b
		}
		if !slices.Equal(c.Blocks(), base) {
			t.Fatal("the edited column differs")
		}
	})
}

func TestAllCanStop(t *testing.T) {
	var e Edits
	e.Set(3, Stone)
	e.Set(1, Dirt)
	for at := range e.All() {
		if at != 1 {
			t.Fatalf("went on to %d", at)
		}
		break
	}
}

func TestApplyRefusesEditsAboveTheTop(t *testing.T) {
	var e Edits
	e.Set(0, Stone)
	e.Set(SectionBlocks, Stone)
	c := air(1)
	if err := e.Apply(c); err == nil || c.Get(0) != Air {
		t.Errorf("applied to a column of one section: %v, bottom %s", err, c.Get(0).Name())
	}
	if err := e.Apply(air(2)); err != nil {
		t.Error(err)
	}
}
