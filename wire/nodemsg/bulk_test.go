package nodemsg

import (
	"slices"
	"strings"
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/wire"
)

// bulkOf encodes runs in their order.
func bulkOf(runs ...BulkRun) Bulk {
	var b []byte
	end := chunk.Index(0)
	for _, r := range runs {
		b, end = AppendRun(b, end, r), r.At+chunk.Index(r.Count)
	}
	return Bulk(b)
}

func TestBulk(t *testing.T) {
	b := bulkOf(BulkRun{At: 5, Count: 2, From: chunk.Air, To: chunk.Stone}, BulkRun{At: 1 << 14, Count: 1, From: 60_000, To: chunk.Air})
	if err := b.Valid(); err != nil {
		t.Fatal(err)
	}
	var got []BlockAt
	for to, from := range b.All() {
		if (from == 60_000) != (to.At == 1<<14) {
			t.Errorf("block %d was %d", to.At, from)
		}
		got = append(got, to)
	}
	if len(got) != 3 || got[0] != (BlockAt{5, chunk.Stone}) || got[1] != (BlockAt{6, chunk.Stone}) || got[2] != (BlockAt{1 << 14, chunk.Air}) || b.Blocks() != 3 {
		t.Errorf("%v, %d blocks", got, b.Blocks())
	}
	one := BulkRun{Count: 1, To: chunk.Stone}
	for name, bad := range map[string]Bulk{
		"cut off":         b[:len(b)-1],
		"empty run":       bulkOf(BulkRun{}),
		"too many blocks": bulkOf(BulkRun{Count: MaxBulkBlocks}, BulkRun{At: MaxBulkBlocks, Count: 1}),
		"too high":        bulkOf(BulkRun{At: wire.ColumnBlocks, Count: 1}),
		"too high by one": bulkOf(BulkRun{At: wire.ColumnBlocks - 1, Count: 2}),
		"no such block":   "\x00\x01\x80\x80\x04\x01",
		"too long":        Bulk(strings.Repeat(string(bulkOf(one)), MaxBulkBytes/4+1)),
	} {
		if bad.Valid() == nil {
			t.Errorf("%s: it is valid", name)
		}
	}
	if most := bulkOf(BulkRun{At: wire.ColumnBlocks - MaxBulkBlocks, Count: MaxBulkBlocks}); most.Valid() != nil {
		t.Error(most.Valid())
	}
}

func FuzzBulk(f *testing.F) {
	f.Add(string(bulkOf(BulkRun{At: 5, Count: 2, To: chunk.Stone}, BulkRun{At: 9, Count: 1, From: chunk.Stone})))
	f.Fuzz(func(t *testing.T, data string) {
		b := Bulk(data)
		if b.Valid() != nil {
			return
		}
		var runs []BulkRun
		for r := range b.Runs() {
			runs = append(runs, r)
		}
		again := bulkOf(runs...)
		if again.Valid() != nil || again.Blocks() != b.Blocks() || len(again) > len(b) {
			t.Fatalf("%x became %x", b, again)
		}
	})
}

func TestBulkEditsOfAMessageAreBounded(t *testing.T) {
	edit := Intent{Bulk: bulkOf(BulkRun{At: 1024, Count: 1, To: chunk.Stone})}
	message := ToRegion{Edits: slices.Repeat([]Intent{edit}, maxBulkEdits)}
	if err := message.Valid(); err != nil {
		t.Error(err)
	}
	message.Edits = append(message.Edits, edit)
	if err := message.Valid(); err == nil || !strings.Contains(err.Error(), "at most 128") {
		t.Errorf("%d bulk edits: %v", len(message.Edits), err)
	}
}
