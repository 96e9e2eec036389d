package games

import (
	"slices"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

func TestHistoryLines(t *testing.T) {
	now := time.UnixMilli(5_000_000)
	page := func(changes int, skip int, more bool) sessionmsg.History {
		h := sessionmsg.History{Max: grid.Pos{X: 9, Y: 9, Z: 9}, Names: []string{"eve", "bob"}, Skip: skip, More: more}
		for i := range changes {
			h.Changes = append(h.Changes, now.UnixMilli()-int64(i)*60_000, int64(i%2), int64(i), 5, 6, int64(chunk.Stone), int64(chunk.Air))
		}
		return h
	}
	if got, want := historyLines(page(2, 0, false), now), []string{
		"2 changes between 0,0,0 and 9,9,9, the newest first:",
		"0,5,6: now, eve: stone → air",
		"1,5,6: 1 minute ago, bob: stone → air",
	}; !slices.Equal(got, want) {
		t.Errorf("two changes are shown as %q", got)
	}
	many := historyLines(page(20, 8, true), now)
	if first, last := many[0], many[len(many)-1]; len(many) != shownChanges+2 || first != "20 changes or more between 0,0,0 and 9,9,9, the newest first:" ||
		last != "Those before: /inspect 0,0,0 9,9,9 5000000 16" {
		t.Errorf("many changes are shown as %q", many)
	}
	none := historyLines(sessionmsg.History{Missing: true}, now)
	if want := []string{"A part of the land there does not answer: try again later.", "Nobody has changed anything between 0,0,0 and 0,0,0, in the history that is kept."}; !slices.Equal(none, want) {
		t.Errorf("no changes are shown as %q", none)
	}
}
