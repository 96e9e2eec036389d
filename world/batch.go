package world

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Pin fixes the terrain under a chunk's edits: the hash of the chunk as it was generated when it was first edited. A
// replica that generates a different chunk must fetch the pinned one (docs/adr/0003).
type Pin struct {
	Chunk grid.ChunkPos
	Base  [32]byte
}

// Batch is one log entry of a region: at most one per tick. Pins take effect before edits.
type Batch struct {
	Pins  []Pin
	Edits []nodemsg.Intent
}

const batchVersion = 1

var errBatch = errors.New("malformed log entry")

// Encode returns the bytes of the batch: version, pins (count; X, Z as varints, 32 bytes), edits (count; player 16
// bytes, sequence uvarint, X, Y, Z as varints, block uvarint).
func (b Batch) Encode() []byte {
	out := make([]byte, 0, 2+len(b.Pins)*40+len(b.Edits)*36)
	out = append(out, batchVersion)
	out = binary.AppendUvarint(out, uint64(len(b.Pins)))
	for _, p := range b.Pins {
		out = binary.AppendVarint(out, int64(p.Chunk.X))
		out = binary.AppendVarint(out, int64(p.Chunk.Z))
		out = append(out, p.Base[:]...)
	}
	out = binary.AppendUvarint(out, uint64(len(b.Edits)))
	for _, e := range b.Edits {
		out = append(out, e.Player[:]...)
		out = binary.AppendUvarint(out, e.Seq)
		out = binary.AppendVarint(out, int64(e.Pos.X))
		out = binary.AppendVarint(out, int64(e.Pos.Y))
		out = binary.AppendVarint(out, int64(e.Pos.Z))
		out = binary.AppendUvarint(out, uint64(e.Block))
	}
	return out
}

// DecodeBatch decodes what Encode wrote.
func DecodeBatch(data []byte) (Batch, error) {
	if len(data) == 0 || data[0] != batchVersion {
		return Batch{}, fmt.Errorf("%w: unknown version; upgrade voxeld", errBatch)
	}
	r := reader{data: data[1:]}
	var b Batch
	for range r.count(34) {
		p := Pin{Chunk: grid.ChunkPos{X: r.int32(), Z: r.int32()}}
		copy(p.Base[:], r.bytes(len(p.Base)))
		b.Pins = append(b.Pins, p)
	}
	n := r.count(21)
	b.Edits = slices.Grow(b.Edits, n)
	for range n {
		e := nodemsg.Intent{}
		copy(e.Player[:], r.bytes(len(player.ID{})))
		e.Seq = r.uvarint()
		e.Pos = grid.Pos{X: r.int32(), Y: r.int32(), Z: r.int32()}
		block := r.uvarint()
		if block > 1<<16-1 {
			r.fail()
		}
		e.Block = chunk.Block(block)
		b.Edits = append(b.Edits, e)
	}
	if r.bad || len(r.data) != 0 {
		return Batch{}, errBatch
	}
	return b, nil
}
