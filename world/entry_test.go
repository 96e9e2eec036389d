package world

import (
	"errors"
	"testing"
)

// An entry that is nothing but its tag is refused, whatever that is, unless nothing is to follow it.
func TestEntriesOfOneByte(t *testing.T) {
	if _, err := vacant().Apply(2, nil); err == nil {
		t.Error("an entry of no bytes is applied")
	}
	for tag := range 256 {
		out, err := vacant().Apply(2, []byte{byte(tag)})
		switch want := map[int]Step{tagSplit: Splits, tagVacate: Vacated}[tag]; {
		case err == nil && want == NoStep:
			t.Errorf("an entry with tag %d and nothing else is applied", tag)
		case out.Step != want:
			t.Errorf("the step of an entry with tag %d is %d, want %d", tag, out.Step, want)
		case errors.Is(err, ErrOldBatch) != (tag == tagOldBatch):
			t.Errorf("an entry with tag %d: %v", tag, err)
		}
	}
}
