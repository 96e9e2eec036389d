package actor

import (
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// bulk returns a bulk edit of alice's.
func bulk(seq uint64, runs ...nodemsg.BulkRun) nodemsg.Intent {
	var b []byte
	end := chunk.Index(0)
	for _, r := range runs {
		b, end = nodemsg.AppendRun(b, end, r), r.At+chunk.Index(r.Count)
	}
	e := guest("alice", seq, here.Origin(), chunk.Air)
	e.Bulk = nodemsg.Bulk(b)
	return e
}

func TestBulkEdits(t *testing.T) {
	l, g := scripted()
	link := newLink(l)
	claimed := nodemsg.BlockAt{At: chunk.IndexOf(5, 9, 0), Block: chunk.Stone}
	l.RefuseEdit = func(e *nodemsg.Intent) string {
		for to := range e.Bulk.All() {
			if to == claimed {
				return wire.RefusedClaimed
			}
		}
		return ""
	}
	row := func(y, count int, from, to chunk.Block) nodemsg.BulkRun {
		return nodemsg.BulkRun{At: chunk.IndexOf(0, y, 0), Count: count, From: from, To: to}
	}
	for i, c := range []struct {
		name    string
		edit    nodemsg.Intent
		refused string
		edits   int // blocks edited afterwards
	}{
		{"a fill", bulk(1, row(5, 40, chunk.Air, chunk.Stone)), "", 40},
		{"again: it is known", bulk(1, row(5, 40, chunk.Air, chunk.Stone)), "", 40},
		{"other blocks with its number", bulk(1, row(6, 40, chunk.Air, chunk.Stone)), wire.RefusedStale, 40},
		{"not what is there", bulk(2, row(5, 40, chunk.Air, chunk.Brick)), wire.RefusedChanged, 40},
		{"half of it is not what is there", bulk(3, row(4, 40, chunk.Air, chunk.Brick), row(5, 40, chunk.Brick, chunk.Air)), wire.RefusedChanged, 40},
		{"the undo", bulk(4, row(5, 40, chunk.Stone, chunk.Air)), "", 40},
		{"one block in a claim", bulk(5, row(9, 6, chunk.Air, chunk.Stone)), wire.RefusedClaimed, 40},
		{"beside the claim", bulk(6, row(9, 5, chunk.Air, chunk.Stone)), "", 45},
		{"bedrock", bulk(7, row(0, 1, chunk.Bedrock, chunk.Air)), wire.RefusedUnbreakable, 45},
		{"of bedrock", bulk(8, row(3, 1, chunk.Air, chunk.Bedrock)), wire.RefusedNotPlaceable, 45},
		{"too high", bulk(9, row(63, 1025, chunk.Air, chunk.Stone)), wire.RefusedOutOfWorld, 45},
	} {
		if got := commitEdit(t, l, g, link, c.edit); got != c.refused {
			t.Errorf("%d, %s: refused %q, want %q", i, c.name, got, c.refused)
		}
		if n := l.contents.land.Edits(); n != c.edits {
			t.Errorf("%d, %s: %d edited blocks, want %d", i, c.name, n, c.edits)
		}
	}
}

// One bulk edit is proposed in each tick, and others' edits do not wait for those that come later.
func TestBulkEditsArePaced(t *testing.T) {
	l, g := scripted()
	link := newLink(l)
	if why := commitEdit(t, l, g, link, stone(1)); why != "" { // pins the chunk
		t.Fatal(why)
	}
	var all []nodemsg.Intent
	for i := range maxBulk + 2 {
		all = append(all, bulk(uint64(i+2), nodemsg.BulkRun{At: chunk.IndexOf(0, 20, 0) + chunk.Index(i), Count: 1, To: chunk.Brick}))
	}
	send(l, link, nodemsg.ToRegion{Edits: append(all, guest("bob", 1, at(here, 30), chunk.Glass))})
	bulks, others := 0, 0
	for tick := range maxBulk {
		l.step()
		for _, entry := range g.proposed {
			batch, err := world.DecodeBatch(entry)
			if err != nil {
				t.Fatal(err)
			}
			in := 0
			for _, e := range batch.Edits {
				if e.Bulk != "" {
					in++
				} else {
					others++
				}
			}
			if bulks += in; in > 1 || tick < 2 && others != 1 {
				t.Fatalf("tick %d: %d bulk edits in one entry, %d other edits so far", tick, in, others)
			}
		}
		g.commit()
		l.step()
	}
	results, _ := received(link)
	refused := 0
	for _, r := range results {
		if r.Refused == wire.RefusedUnavailable {
			refused++
		}
	}
	if bulks != maxBulk || others != 1 || refused != 2 {
		t.Errorf("%d bulk edits and %d others were proposed, %d refused: too many waited", bulks, others, refused)
	}
}
