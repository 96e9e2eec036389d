package world

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

func TestBatchRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Batch{Time: rapid.Int64Range(1, math.MaxInt64).Draw(t, "time")}
		for range rapid.IntRange(0, 5).Draw(t, "pins") {
			p := Pin{Chunk: grid.ChunkPos{X: rapid.Int32().Draw(t, "x"), Z: rapid.Int32().Draw(t, "z")}}
			copy(p.Base[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "base"))
			b.Pins = append(b.Pins, p)
		}
		for range rapid.IntRange(0, 5).Draw(t, "edits") {
			e := nodemsg.Intent{
				Player: player.ID{rapid.Byte().Draw(t, "player")}, Seq: rapid.Uint64().Draw(t, "seq"),
				Pos:   grid.Pos{X: rapid.Int32().Draw(t, "x"), Y: rapid.Int32().Draw(t, "y"), Z: rapid.Int32().Draw(t, "z")},
				Block: chunk.Block(rapid.Uint16().Draw(t, "block")),
			}
			e.Proof = rapid.SampledFrom([]nodemsg.Proof{
				{}, {Name: "ada"}, {Name: "bob"}, {Key: [32]byte{1}, Signature: [64]byte{63: 2}}, {Key: [32]byte{1}}, {Key: [32]byte{2}},
			}).Draw(t, "proof")
			e.Text = rapid.SampledFrom([]string{"", "", "to the\nharbour", strings.Repeat("\U0001f30d", wire.MaxSignText/4)}).Draw(t, "text")
			if e.Text == "" && rapid.IntRange(0, 2).Draw(t, "bulk") == 0 {
				e.Pos, e.Block, e.Bulk = e.Pos.Chunk().Origin(), 0, drawBulk(t)
			}
			b.Edits = append(b.Edits, e)
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
	huge := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}
	for _, front := range [][]byte{{tagBatch, 1}, {tagBatch, 1, 0}, {tagBatch, 1, 0, 0}, {tagBatchSigns, 1, 0, 0, 0}, {tagBatchBulk, 1, 0, 0, 0, 0}} {
		data := append(front, huge...)
		if n := testing.AllocsPerRun(10, func() {
			if _, err := DecodeBatch(data); err == nil {
				t.Error("decoded")
			}
		}); n > 2 {
			t.Errorf("%v allocations for a count without elements", n)
		}
	}
}

// batchExample has authors of each kind, one of them with two edits.
func batchExample() Batch {
	at := grid.Pos{X: -1, Y: 5, Z: 64}
	ada := nodemsg.Proof{Key: [32]byte{9, 8, 7}}
	return Batch{
		Time: 1700000000000,
		Pins: []Pin{{Chunk: grid.ChunkPos{X: -1, Z: 2}, Base: [32]byte{1, 2}}},
		Edits: []nodemsg.Intent{
			{Player: player.ID{1}, Seq: 1 << 63, Pos: at, Block: chunk.Stone, Proof: nodemsg.Proof{Key: ada.Key, Signature: [64]byte{0: 3, 63: 4}}},
			{Player: player.GuestID("bob"), Seq: 7, Pos: at, Block: chunk.Air, Proof: nodemsg.Proof{Name: "bob"}},
			{Player: player.ID{1}, Seq: 1<<63 + 1, Pos: at, Block: chunk.Dirt, Proof: nodemsg.Proof{Key: ada.Key, Signature: [64]byte{63: 5}}},
			{Player: player.ID{2}, Seq: 1, Pos: at, Block: chunk.Dirt},
		},
	}
}

// signExample has a sign with a text, after a block.
func signExample() Batch {
	b := batchExample()
	b.Edits = b.Edits[1:3]
	b.Edits[1].Block, b.Edits[1].Text = chunk.Sign, "to\nö"
	return b
}

// bulkExample has a bulk edit, after a sign.
func bulkExample() Batch {
	b := signExample()
	b.Edits[0] = b.Edits[1]
	runs := nodemsg.AppendRun(nil, 0, nodemsg.BulkRun{At: 1024, Count: 300, From: chunk.Air, To: chunk.Stone})
	runs = nodemsg.AppendRun(runs, 1324, nodemsg.BulkRun{At: 1325, Count: 1, From: chunk.Stone, To: chunk.Air})
	b.Edits[1] = nodemsg.Intent{Player: player.ID{2}, Seq: 1, Pos: grid.ChunkPos{X: -1, Z: 2}.Origin(), Bulk: nodemsg.Bulk(runs)}
	return b
}

// The bytes of batches must stay as they are: they are in the logs of regions, and members compare them.
func TestGoldenBatches(t *testing.T) {
	zeros := func(n int) string { return strings.Repeat("00", n) }
	const at, pins = "010a8001", "010104" // X, Y, Z of the edits; one pin
	base := "0102" + zeros(30)
	bob := player.GuestID("bob")
	for _, c := range []struct {
		batch Batch
		want  string
	}{
		{batchExample(), "05" + "80d095ffbc31" + pins + base +
			"03" + "01" + zeros(15) + "02" + "090807" + zeros(29) + hex.EncodeToString(bob[:]) + "01" + "03" + "626f62" + "02" + zeros(15) + "00" +
			"04" + "00" + "80808080808080808001" + at + "01" + "03" + zeros(62) + "04" +
			"01" + "07" + at + "00" +
			"00" + "81808080808080808001" + at + "03" + zeros(63) + "05" +
			"02" + "01" + at + "03"},
		{signExample(), "09" + "80d095ffbc31" + pins + base +
			"02" + hex.EncodeToString(bob[:]) + "01" + "03" + "626f62" + "01" + zeros(15) + "02" + "090807" + zeros(29) +
			"02" + "00" + "07" + at + "00" +
			"01" + "81808080808080808001" + at + hex.EncodeToString(binary.AppendUvarint(nil, uint64(chunk.Sign))) + zeros(63) + "05" +
			"01" + "01" + "05" + "746f0a" + "c3b6"},
		{bulkExample(), "0d" + "80d095ffbc31" + pins + base +
			"02" + "01" + zeros(15) + "02" + "090807" + zeros(29) + "02" + zeros(15) + "00" +
			"02" + "00" + "81808080808080808001" + at + hex.EncodeToString(binary.AppendUvarint(nil, uint64(chunk.Sign))) + zeros(63) + "05" +
			"01" + "01" + "3f" + "00" + "8001" + "00" +
			"01" + "00" + "05" + "746f0a" + "c3b6" +
			"01" + "01" + "0a" + "8008" + "ac02" + "00" + "01" + "01" + "01" + "01" + "00"},
	} {
		if got := hex.EncodeToString(c.batch.Encode()); got != c.want {
			t.Errorf("%+v became\n%s, want\n%s", c.batch, got, c.want)
		}
	}
}

func FuzzDecodeBatch(f *testing.F) {
	f.Add(Batch{Time: 1}.Encode())
	f.Add(batchExample().Encode())
	f.Add(signExample().Encode())
	f.Add(bulkExample().Encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := DecodeBatch(data)
		if err != nil {
			return
		}
		if len(b.Pins)*34+len(b.Edits)*6 > len(data) {
			t.Fatalf("%d bytes made %d pins and %d edits", len(data), len(b.Pins), len(b.Edits))
		}
		again, err := DecodeBatch(b.Encode())
		if err != nil || !reflect.DeepEqual(again, b) {
			t.Fatalf("%+v came back as %+v, %v", b, again, err)
		}
	})
}
