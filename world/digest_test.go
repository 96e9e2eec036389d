package world

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/history"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// digest returns the digest of a part as stored in a table.
func (r rows) digest(l *Land, p Part) (d Digest) {
	for _, prefix := range l.PartPrefixes(p) {
		for key, value := range r {
			if bytes.HasPrefix([]byte(key), prefix) {
				d.Add([]byte(key), value)
			}
		}
	}
	return d
}

// A digest taken while entries are applied has the digests of exactly the rows that were stored at its index, and at
// every later one.
func TestLandDigestIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, table := newTestLand(), make(rows)
		at := make(map[uint64]rows) // the table as of each index
		index := uint64(1)
		applyEntry := func(entry []byte) {
			index++
			if _, err := l.Apply(index, entry); err != nil {
				t.Fatal(err)
			}
			table.store(l.Writes())
			at[index] = maps.Clone(table)
		}
		apply := func() {
			pos := grid.ChunkPos{X: testCell.Area().MinX, Z: testCell.Area().MinZ}
			switch rapid.IntRange(0, 5).Draw(t, "entry") {
			case 0:
				fillSegment(l, pos, applyEntry)
			case 3:
				applyEntry(EncodeMarks([]history.Mark{{Number: int64(index), Box: columnsAt(pos, pos)}, {Number: int64(index) + 1, Box: columnsAt(pos, pos)}})) //nolint:gosec // small
			case 1:
				applyEntry(drawRollback(t, l, pos, index).Encode())
			case 2:
				bytes, _ := l.HistorySize()
				applyEntry(Trim{Bytes: rapid.IntRange(0, bytes).Draw(t, "kept")}.Encode())
			default:
				applyEntry(drawBatch(t).Encode())
			}
		}
		for range rapid.IntRange(0, 6).Draw(t, "before") {
			apply()
		}
		at[index] = maps.Clone(table)
		began := index
		s := l.StartDigest(index)
		for range rapid.IntRange(0, 6).Draw(t, "after") {
			apply()
			s.Step(rapid.IntRange(0, 5).Draw(t, "edits"))
		}
		for !s.Step(3) {
		}
		for i := began; i <= index; i++ {
			for _, p := range l.Parts() {
				if got, want := s.At(p, i), at[i].digest(l, p); got != want {
					t.Fatalf("%v at %d: %x, stored were rows of %x", p, i, got, want)
				}
			}
		}
	})
}

// fillSegment changes a block until the next record of the chunk's history begins a new segment.
func fillSegment(l *Land, pos grid.ChunkPos, apply func([]byte)) {
	apply(Batch{Time: 1e12, Pins: []Pin{{Chunk: pos}}}.Encode())
	for n := 0; ; n++ { // players who have edited already change nothing
		g := l.pinned[pos]
		if _, data := g.history.Next(); data == nil && !g.history.Empty() {
			return
		}
		block, _ := g.edits.Get(chunk.At(pos.Origin()))
		name := fmt.Sprintf("a_long_name_%d", n)
		apply(Batch{Time: 1e12, Edits: []nodemsg.Intent{{
			Player: player.GuestID(name), Proof: nodemsg.Proof{Name: name}, Seq: 1, Pos: pos.Origin(), Block: 1 - block%2,
		}}}.Encode())
	}
}

// drawRollback returns a step of a rollback of everybody's changes in a chunk, or its end.
func drawRollback(t *rapid.T, l *Land, pos grid.ChunkPos, number uint64) RollbackStep {
	s := RollbackStep{Time: 3e12, Chunk: pos, Done: rapid.IntRange(0, 3).Draw(t, "done") == 0}
	origin := pos.Origin()
	s.Number, s.Box = int64(number), grid.BoxOf(origin, grid.Pos{X: origin.X + 31, Y: testHeight, Z: origin.Z + 31})
	changes, err := s.Changes(pos, l.History(pos, 0))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		if c.To == history.Natural {
			s.Natural = append(s.Natural, nodemsg.BlockAt{At: c.At, Block: chunk.Stone})
		}
	}
	return s
}

// Replacing all parts of a damaged copy by those of a sound one makes both equal, in memory and in the table.
func TestReplaceRepairs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, table := newTestLand(), make(rows)
		for i := range rapid.IntRange(1, 6).Draw(t, "batches") {
			if _, err := l.Apply(uint64(i+2), drawBatch(t).Encode()); err != nil {
				t.Fatal(err)
			}
			table.store(l.Writes())
		}
		bad := make(rows)
		for key, value := range table {
			switch rapid.IntRange(0, 3).Draw(t, "harm") {
			case 0: // lost
			case 1:
				value = bytes.Clone(value)
				value[len(value)-1] ^= 1
				bad[key] = value
			case 2:
				other := []byte(key)
				other[len(other)-1] ^= 1
				bad[string(other)] = value
			default:
				bad[key] = value
			}
		}
		broken := newTestLand()
		for _, key := range slices.Sorted(maps.Keys(bad)) {
			_ = broken.Load([]byte(key), bad[key]) // rows that Load refuses are missing in memory, as intended
		}
		for _, p := range l.Parts() {
			var good []kv.Write
			l.Rows(p, func(key, value []byte) {
				good = append(good, kv.Write{Table: LandTable, Key: bytes.Clone(key), Value: bytes.Clone(value)})
			})
			var keys [][]byte
			for _, prefix := range l.PartPrefixes(p) {
				for key := range bad {
					if bytes.HasPrefix([]byte(key), prefix) {
						keys = append(keys, []byte(key))
					}
				}
			}
			writes, err := broken.Replace(p, good, keys)
			if err != nil {
				t.Fatal(err)
			}
			bad.store(writes)
			if broken.digest(p) != l.digest(p) {
				t.Fatalf("%v differs in memory", p)
			}
		}
		if !maps.EqualFunc(bad, table, bytes.Equal) {
			t.Fatalf("the tables differ: %d and %d rows", len(bad), len(table))
		}
	})
}

func TestReplaceRefusesOtherParts(t *testing.T) {
	l := newTestLand()
	pos := grid.ChunkPos{X: testCell.Area().MinX, Z: testCell.Area().MinZ}
	for name, row := range map[string]kv.Write{
		"another chunk": {Key: l.baseKey(grid.ChunkPos{X: pos.X + 1, Z: pos.Z}), Value: make([]byte, 32)},
		"no base":       {Key: append(l.chunkKey(keyEdit, pos), 0, 0, 0, 1), Value: []byte{0, 1}},
		"nonsense":      {Key: []byte("x"), Value: []byte("y")},
	} {
		if _, err := l.Replace(Part{Chunk: pos}, []kv.Write{row}, nil); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

// A barrier changes nothing.
func TestBarrierChangesNothing(t *testing.T) {
	l := newTestLand()
	pos := grid.ChunkPos{X: testCell.Area().MinX, Z: testCell.Area().MinZ}
	batch := Batch{Time: 1e12, Pins: []Pin{{Chunk: pos}}, Edits: []nodemsg.Intent{guest(1, 1, pos.Origin(), chunk.Stone)}}
	if _, err := l.Apply(2, batch.Encode()); err != nil {
		t.Fatal(err)
	}
	l.Writes()
	before := l.digest(Part{Chunk: pos})
	m := Barrier{Nonce: 9, Need: 2, Repairs: []Repair{{Part: Part{Chunk: pos}, Damaged: []string{"a"}, Sources: []string{"b", "c"}}}}
	out, err := l.Apply(3, m.Encode())
	if err != nil || out.Barrier == nil || out.Barrier.Nonce != 9 || len(l.Writes())+len(out.Changes)+len(out.Results) != 0 {
		t.Errorf("a barrier did %+v, %v", out, err)
	}
	if l.digest(Part{Chunk: pos}) != before {
		t.Error("a barrier changed the land")
	}
	if _, err := DecodeBatch(m.Encode()); err == nil {
		t.Error("a barrier is read as a batch")
	}
}

func FuzzDecodeMark(f *testing.F) {
	f.Add(Barrier{Nonce: 1}.Encode())
	f.Add(Barrier{Nonce: 2, Need: 2, Repairs: []Repair{
		{Part: Part{Sequences: true}, Damaged: []string{"x"}}, {Part: Part{Chunk: grid.ChunkPos{X: -5, Z: 7}}, Sources: []string{"y", "z"}},
	}}.Encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := DecodeBarrier(data)
		if err != nil {
			return
		}
		again, err := DecodeBarrier(m.Encode())
		if err != nil || !bytes.Equal(again.Encode(), m.Encode()) {
			t.Errorf("%+v became %+v, %v", m, again, err)
		}
	})
}

func FuzzDecodeRows(f *testing.F) {
	f.Add(EncodeRows(nil))
	f.Add(EncodeRows([]kv.Write{{Key: []byte("abc"), Value: []byte{1}}, {Key: []byte("abd"), Value: []byte{}}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		rows, err := DecodeRows(data)
		if err != nil {
			return
		}
		again, err := DecodeRows(EncodeRows(rows))
		if err != nil || len(again) != len(rows) {
			t.Fatalf("%d rows became %d, %v", len(rows), len(again), err)
		}
		for i := range rows {
			if !bytes.Equal(rows[i].Key, again[i].Key) || !bytes.Equal(rows[i].Value, again[i].Value) {
				t.Fatalf("row %d: %x %x became %x %x", i, rows[i].Key, rows[i].Value, again[i].Key, again[i].Value)
			}
		}
	})
}
