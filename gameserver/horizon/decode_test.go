package horizon

import (
	"encoding/binary"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
)

// decode is the inverse of Encode, for the tile of a level.
func decode(level int, b []byte) (t Tile, err error) {
	if len(b) == 0 || b[0] != version {
		return t, wire.Refuse(wire.FailBadValue, "a tile of an unknown version")
	}
	r := reader{b[1:], false}
	t.Heights, t.Blocks = make([]uint16, Points*Points), make([]chunk.Block, Points*Points)
	for i := range t.Heights {
		h := predict(t.Heights, i) + r.signed()
		if h < 0 || h >= wire.MaxSections*grid.ChunkSize {
			return t, wire.Refuse(wire.FailBadValue, "a point at height %d", h)
		}
		t.Heights[i] = uint16(h)
	}
	for i := range t.Blocks {
		t.Blocks[i] = chunk.Block(r.upTo(1<<16 - 1)) //nolint:gosec // checked
	}
	n := r.upTo(maxBuilt)
	x, z, side := 0, 0, (Points-1)<<level
	for range n {
		if rows := r.upTo(side); rows > 0 {
			x, z = 0, z+rows
		}
		run := Run{X: x + r.upTo(side), Z: z, Length: r.upTo(side), Height: uint16(r.upTo(wire.MaxSections*grid.ChunkSize - 1)), Block: chunk.Block(r.upTo(1<<16 - 1))} //nolint:gosec // checked
		if x = run.X + run.Length; run.Length == 0 || x > side || z >= side {
			return t, wire.Refuse(wire.FailBadValue, "something built beside the tile")
		}
		t.Built = append(t.Built, run)
	}
	if r.failed || len(r.b) > 0 {
		return t, wire.Refuse(wire.FailBadValue, "a tile of the wrong length, or with a number out of range")
	}
	return t, nil
}

// reader reads varints. After a failure it returns zeros.
type reader struct {
	b      []byte
	failed bool
}

func (r *reader) signed() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 || v < -1<<20 || v > 1<<20 {
		r.b, r.failed = nil, true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) upTo(most int) int {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > uint64(most) { //nolint:gosec // positive
		r.b, r.failed = nil, true
		return 0
	}
	r.b = r.b[n:]
	return int(v) //nolint:gosec // at most most
}
