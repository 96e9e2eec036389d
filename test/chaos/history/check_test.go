package history

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
)

// put is an edit of the one block of these tests. Times are in seconds.
func put(b chunk.Block, invoked, returned int, o Outcome) *Edit {
	return &Edit{Block: b, Invoked: seconds(invoked), Returned: seconds(returned), Outcome: o, Player: "ann", Tries: 1}
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// Histories in which the checker must find a violation, and histories that it must accept.
func TestCheck(t *testing.T) {
	const a, b, c = chunk.Stone, chunk.Glass, chunk.Brick
	for name, test := range map[string]struct {
		edits  []*Edit
		sights []Sight // all of one stream unless they set another
		faults []time.Duration
		ends   []chunk.Block
		want   Verdict
	}{
		"the last edit is there": {
			edits: []*Edit{put(a, 1, 2, Acknowledged), put(b, 3, 4, Acknowledged)}, ends: []chunk.Block{b, b},
		},
		"an acknowledged edit is not there": {
			edits: []*Edit{put(a, 1, 2, Acknowledged), put(b, 3, 4, Acknowledged)}, ends: []chunk.Block{a},
			want: Verdict{Lost: 1, Illegal: 1},
		},
		"the only edit is not there": {
			edits: []*Edit{put(a, 1, 2, Acknowledged)}, ends: []chunk.Block{chunk.Air},
			want: Verdict{Lost: 1, Illegal: 1},
		},
		"of two at once either may win": {
			edits: []*Edit{put(a, 1, 4, Acknowledged), put(b, 2, 3, Acknowledged)}, ends: []chunk.Block{a},
		},
		"an unknown edit may take effect late": {
			edits: []*Edit{put(a, 1, 0, Unknown), put(b, 3, 4, Acknowledged)}, ends: []chunk.Block{a},
		},
		"or never": {
			edits: []*Edit{put(a, 1, 0, Unknown)}, ends: []chunk.Block{chunk.Air},
		},
		"one that was seen may do neither": {
			edits:  []*Edit{put(a, 1, 0, Unknown), put(b, 3, 4, Acknowledged)},
			sights: []Sight{{At: seconds(2), Block: a, Stream: 1}}, ends: []chunk.Block{a},
			want: Verdict{Lost: 1, Illegal: 1},
		},
		"a refused edit took effect": {
			edits: []*Edit{put(a, 1, 2, Refused)}, ends: []chunk.Block{a},
			want: Verdict{Illegal: 1},
		},
		"a refused edit was seen": {
			edits: []*Edit{put(a, 1, 2, Refused)}, sights: []Sight{{At: seconds(2), Block: a, Stream: 1}}, ends: []chunk.Block{chunk.Air},
			want: Verdict{Phantom: 1},
		},
		"a change without an edit": {
			edits: []*Edit{put(a, 5, 6, Acknowledged)}, sights: []Sight{{At: seconds(4), Block: a, Stream: 1}}, ends: []chunk.Block{a},
			want: Verdict{Phantom: 1},
		},
		"an edit was lost and then overwritten": {
			edits:  []*Edit{put(a, 1, 2, Acknowledged), put(b, 4, 5, Acknowledged), put(c, 7, 8, Acknowledged)},
			sights: []Sight{{At: seconds(2), Block: a, Stream: 1}, {At: seconds(8), Block: c, Stream: 1}}, ends: []chunk.Block{c},
			want: Verdict{Skipped: 1},
		},
		"an edit was acknowledged as its leader died, and then overwritten": {
			edits:  []*Edit{put(a, 1, 2, Acknowledged), put(b, 4, 5, Acknowledged), put(c, 7, 8, Acknowledged)},
			sights: []Sight{{At: seconds(2), Block: a, Stream: 1}, {At: seconds(8), Block: c, Stream: 1}}, ends: []chunk.Block{c},
			faults: []time.Duration{seconds(5) + frameTolerance/2},
		},
		"or long before": {
			edits:  []*Edit{put(a, 1, 2, Acknowledged), put(b, 4, 5, Acknowledged), put(c, 7, 8, Acknowledged)},
			sights: []Sight{{At: seconds(2), Block: a, Stream: 1}, {At: seconds(8), Block: c, Stream: 1}}, ends: []chunk.Block{c},
			faults: []time.Duration{seconds(6)},
			want:   Verdict{Skipped: 1},
		},
		"two views may miss changes between them": {
			edits:  []*Edit{put(a, 1, 2, Acknowledged), put(b, 4, 5, Acknowledged), put(c, 7, 8, Acknowledged)},
			sights: []Sight{{At: seconds(2), Block: a, Stream: 1}, {At: seconds(8), Block: c, Stream: 2}}, ends: []chunk.Block{c},
		},
		"received in the wrong order": {
			edits:  []*Edit{put(a, 1, 2, Acknowledged), put(b, 4, 5, Acknowledged)},
			sights: []Sight{{At: seconds(5), Block: b, Stream: 1}, {At: seconds(6), Block: a, Stream: 1}}, ends: []chunk.Block{b},
			want: Verdict{Reversed: 1},
		},
		"gateways disagree": {
			edits: []*Edit{put(a, 1, 4, Acknowledged), put(b, 2, 3, Acknowledged)}, ends: []chunk.Block{a, b},
			want: Verdict{Disagree: 1, Illegal: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l, err := OpenLedger(filepath.Join(dir, "ledger"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { l.Close() })
			for i, e := range test.edits {
				e.Number = i
				l.mu.edits = append(l.mu.edits, e)
			}
			for range 2 {
				l.BeginStream()
			}
			l.mu.sights, l.mu.faults = test.sights, test.faults
			var readings []Reading
			for i, end := range test.ends {
				readings = append(readings, Reading{
					Node: i + 1, From: seconds(100), To: seconds(101), Final: true,
					Block: func(grid.Pos) (chunk.Block, bool) { return end, true },
				})
			}
			v, err := Check(l, readings, dir)
			if err != nil {
				t.Fatal(err)
			}
			got := Verdict{Lost: v.Lost, Illegal: v.Illegal, Phantom: v.Phantom, Skipped: v.Skipped, Reversed: v.Reversed, Disagree: v.Disagree}
			want := test.want
			if got.Lost != want.Lost || got.Illegal != want.Illegal || got.Phantom != want.Phantom || got.Skipped != want.Skipped ||
				got.Reversed != want.Reversed || got.Disagree != want.Disagree {
				t.Errorf("found %+v, want %+v", got, want)
			}
			if v.Bad() != want.Bad() {
				t.Errorf("bad: %v", v.Bad())
			}
			drawings, err := filepath.Glob(filepath.Join(dir, "*.html"))
			if err != nil || len(drawings) != want.Illegal {
				t.Errorf("drawn: %v, %v; want %d", drawings, err, want.Illegal)
			}
		})
	}
}

// Gateways may disagree about a block that was read during edits, but not about one at rest.
func TestCheckReadingsAmidst(t *testing.T) {
	dir := t.TempDir()
	l, err := OpenLedger(filepath.Join(dir, "ledger"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.mu.edits = []*Edit{put(chunk.Stone, 1, 2, Acknowledged), put(chunk.Glass, 5, 9, Acknowledged)}
	show := func(b chunk.Block, from, to int, final bool) Reading {
		return Reading{Node: 1, From: seconds(from), To: seconds(to), Final: final, Block: func(grid.Pos) (chunk.Block, bool) { return b, true }}
	}
	for _, test := range []struct {
		amidst  []Reading
		illegal int
	}{
		{[]Reading{show(chunk.Stone, 6, 8, false), show(chunk.Glass, 6, 8, false)}, 0},
		{[]Reading{show(chunk.Air, 3, 4, false)}, 1},
		{[]Reading{show(chunk.Stone, 10, 11, false)}, 1},
		{[]Reading{show(chunk.Glass, 3, 4, false)}, 1},
	} {
		v, err := Check(l, append(test.amidst, show(chunk.Glass, 20, 21, true)), dir)
		if err != nil {
			t.Fatal(err)
		}
		if v.Illegal != test.illegal || v.Lost != 0 || v.Disagree != 0 {
			t.Errorf("%v: found %+v", test, v)
		}
	}
}

// The ledger's file has a line for every edit asked for and for every answer.
func TestLedgerFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	l, err := OpenLedger(path)
	if err != nil {
		t.Fatal(err)
	}
	e := &Edit{Player: "ann", Seq: 7, Block: chunk.Glass}
	l.Ask(e)
	l.Sent(e, 2)
	l.Answer(e, l.Now(), Acknowledged, "", 3)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := l.Since(0)[0]; got.First != 2 || got.Via != 3 || got.Outcome != Acknowledged || !got.Moved() {
		t.Errorf("%+v", got)
	}
	var lines int
	for _, b := range text {
		if b == '\n' {
			lines++
		}
	}
	if lines != 2 {
		t.Errorf("%s", text)
	}
	if _, err := OpenLedger(path); err == nil {
		t.Error("a ledger that is there already was opened")
	}
}
