package world

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/store"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// A change takes at most 24 bytes of history on disk, with the database's pages and checksums, when players build as
// people do in a whole region.
func TestHistoryOnDisk(t *testing.T) {
	const changes, maxBytes = 200_000, 24
	e, rng := newEditor(t), rand.New(rand.NewPCG(3, 4))
	dir := t.TempDir()
	db, err := store.Open(store.Options{Path: filepath.Join(dir, "voxeld.db")})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() { ended <- db.Run(ctx) }()
	area := testCell.Area()
	names := []string{"ada", "bob", "eve", "dan"}
	var at [4]grid.Pos
	for done := 0; done < changes; {
		batch := Batch{Time: e.now}
		for i, name := range names {
			if done%2000 < 4 { // they move on, mostly to places where somebody has built before
				home := grid.ChunkPos{X: area.MinX + rng.Int32N(4)*rng.Int32N(4), Z: area.MinZ + rng.Int32N(4)*rng.Int32N(4)}.Origin()
				at[i] = grid.Pos{X: home.X + rng.Int32N(32), Y: 20 + rng.Int32N(30), Z: home.Z + rng.Int32N(32)}
			}
			*[]*int32{&at[i].X, &at[i].Y, &at[i].Z}[rng.IntN(3)] += rng.Int32N(3) - 1
			at[i].Y = min(max(at[i].Y, 1), testHeight-1)
			if pos := at[i].Chunk(); testCell.Contains(pos) {
				batch.Pins = append(batch.Pins, Pin{Chunk: pos})
			}
			batch.Edits = append(batch.Edits, nodemsg.Intent{
				Player: player.GuestID(name), Proof: nodemsg.Proof{Name: name}, Seq: uint64(e.now) * 1000, Pos: at[i], Block: chunk.Block(rng.IntN(25)),
			})
			done++
		}
		e.now += 300
		e.apply(batch.Encode())
		if done%400 != 0 && done < changes {
			continue
		}
		var rows []kv.Write
		for _, w := range e.land.Writes() {
			if w.Key[8] == keyHistory {
				rows = append(rows, w)
			}
		}
		if err := db.Commit(rows); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	<-ended
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := bbolt.Open(filepath.Join(dir, "voxeld.db"), 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	recorded := 0
	for pos := range e.land.pinned {
		recorded += len(e.land.History(pos, 0))
	}
	size, _ := e.land.HistorySize()
	err = file.View(func(tx *bbolt.Tx) error {
		s := tx.Bucket([]byte(LandTable)).Stats()
		each := float64(s.LeafAlloc+s.BranchAlloc) / changes
		t.Logf("%.1f bytes a change on disk, %.1f of them records; %d segments of %d chunks", each, float64(size)/changes, recorded, len(e.land.pinned))
		if each > maxBytes {
			t.Errorf("a change takes %.1f bytes on disk, want at most %d", each, maxBytes)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
