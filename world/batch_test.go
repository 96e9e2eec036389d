package world

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

func TestBatchRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b Batch
		for range rapid.IntRange(0, 5).Draw(t, "pins") {
			p := Pin{Chunk: grid.ChunkPos{X: rapid.Int32().Draw(t, "x"), Z: rapid.Int32().Draw(t, "z")}}
			copy(p.Base[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "base"))
			b.Pins = append(b.Pins, p)
		}
		for range rapid.IntRange(0, 5).Draw(t, "edits") {
			b.Edits = append(b.Edits, nodemsg.Intent{
				Player: player.ID{rapid.Byte().Draw(t, "player")}, Seq: rapid.Uint64().Draw(t, "seq"),
				Pos:   grid.Pos{X: rapid.Int32().Draw(t, "x"), Y: rapid.Int32().Draw(t, "y"), Z: rapid.Int32().Draw(t, "z")},
				Block: chunk.Block(rapid.Uint16().Draw(t, "block")),
			})
		}
		data := b.Encode()
		got, err := DecodeBatch(data)
		if err != nil || !reflect.DeepEqual(got, b) {
			t.Fatalf("%+v came back as %+v, %v", b, got, err)
		}
		if cut := rapid.IntRange(0, len(data)-1).Draw(t, "cut"); cut < len(data) {
			if got, err := DecodeBatch(data[:cut]); err == nil {
				t.Fatalf("%d of %d bytes were decoded as %+v", cut, len(data), got)
			}
		}
	})
}

// A count cannot request more memory than its message has bytes.
func TestDecodeBatchIsBounded(t *testing.T) {
	huge := []byte{batchVersion, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}
	if n := testing.AllocsPerRun(10, func() {
		if _, err := DecodeBatch(huge); err == nil {
			t.Error("decoded")
		}
	}); n > 2 {
		t.Errorf("%v allocations for a count without elements", n)
	}
}

func FuzzDecodeBatch(f *testing.F) {
	f.Add(Batch{}.Encode())
	f.Add(Batch{
		Pins:  []Pin{{Chunk: grid.ChunkPos{X: -1, Z: 2}}},
		Edits: []nodemsg.Intent{{Player: player.ID{1}, Seq: 1 << 63, Pos: grid.Pos{X: -1, Y: 5, Z: 64}, Block: chunk.Stone}},
	}.Encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := DecodeBatch(data)
		if err != nil {
			return
		}
		if len(b.Pins)*34+len(b.Edits)*21 > len(data) {
			t.Fatalf("%d bytes made %d pins and %d edits", len(data), len(b.Pins), len(b.Edits))
		}
		again, err := DecodeBatch(b.Encode())
		if err != nil || !reflect.DeepEqual(again, b) {
			t.Fatalf("%+v came back as %+v, %v", b, again, err)
		}
	})
}
