package history

import (
	"path/filepath"
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
)

// What a session that begins to join at 10 s may be shown, and which edit is missing otherwise.
func TestStale(t *testing.T) {
	const a, b, c = chunk.Stone, chunk.Glass, chunk.Brick
	first, second := put(a, 1, 2, Acknowledged), put(b, 3, 4, Acknowledged)
	for name, test := range map[string]struct {
		edits   []*Edit
		shown   chunk.Block
		missing int // index in edits; -1 if the block is not stale
	}{
		"nobody has edited it":                          {nil, chunk.Air, -1},
		"the last edit":                                 {[]*Edit{first, second}, b, -1},
		"the edit before it":                            {[]*Edit{first, second}, a, 1},
		"the first of those after it":                   {[]*Edit{first, second, put(c, 5, 6, Acknowledged)}, a, 1},
		"none of the edits":                             {[]*Edit{first, second}, chunk.Air, 0},
		"either of two at once":                         {[]*Edit{put(a, 1, 4, Acknowledged), put(b, 2, 3, Acknowledged)}, a, -1},
		"one without one that is acknowledged later":    {[]*Edit{first, put(b, 3, 11, Acknowledged)}, a, -1},
		"one that is asked for meanwhile":               {[]*Edit{first, put(b, 11, 12, Acknowledged)}, b, -1},
		"an unknown one, which may take effect late":    {[]*Edit{put(a, 1, 0, Unknown), put(b, 3, 4, Acknowledged)}, a, -1},
		"one that was refused":                          {[]*Edit{put(b, 1, 2, Acknowledged), put(a, 3, 4, Refused)}, a, 0},
		"a block that an edit has put a second time":    {[]*Edit{first, second, put(a, 5, 6, Acknowledged)}, a, -1},
		"a block that was put twice, but not since":     {[]*Edit{first, put(a, 3, 4, Acknowledged), put(b, 5, 6, Acknowledged)}, a, 2},
		"air, after an edit that has removed the block": {[]*Edit{first, put(chunk.Air, 3, 4, Acknowledged)}, chunk.Air, -1},
	} {
		var want *Edit
		if test.missing >= 0 {
			want = test.edits[test.missing]
		}
		if got := stale(test.edits, test.shown, seconds(10)); got != want {
			t.Errorf("%s: %+v is missing, want %+v", name, got, want)
		}
	}
}

// A join is stale if it is shown land that is too old, and was not told so.
func TestJoinsAreJudged(t *testing.T) {
	l, err := OpenLedger(filepath.Join(t.TempDir(), "ledger.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	e := &Edit{Pos: grid.Pos{X: 1, Y: 28, Z: 1}, Block: chunk.Brick}
	l.Ask(e)
	l.Answer(e, l.Now(), Acknowledged, "", 2)
	old, err := chunk.FromBlocks(make([]chunk.Block, chunk.SectionBlocks))
	if err != nil {
		t.Fatal(err)
	}
	current := old.Clone()
	current.Set(chunk.At(e.Pos), chunk.Brick)
	join := func(warned bool, shown *chunk.Chunk) {
		j := l.BeginJoin(1)
		if warned {
			j.Unconfirmed()
		}
		j.Show(e.Pos.Chunk(), shown)
		j.Show(grid.ChunkPos{X: 7}, old)
		j.End()
	}
	join(false, current)
	join(true, old)
	join(false, old)
	v, err := Check(l, nil, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if v.Joins != 3 || v.Warned != 1 || v.Stale != 1 || v.Oldest == 0 || len(v.Findings) != 1 || !v.Bad() {
		t.Errorf("%+v", v)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}
