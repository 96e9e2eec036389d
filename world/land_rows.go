package world

import (
	"encoding/binary"
	"fmt"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/kv"
	"github.com/voxelpopuli/voxeld/player"
)

// Kinds of rows in LandTable: the byte after the region id.
const (
	keyBase   = 'b' // X, Z → base hash, 32 bytes
	keyEdit   = 'e' // X, Z, index → block, 2 bytes big-endian
	keyPlayer = 'p' // player id → recent sequences
)

// errRow marks a stored row of the land table that this package cannot have written.
var errRow = fmt.Errorf("malformed row of the land table: %w", kv.ErrDamaged)

// Prefix returns the key prefix of all rows of this region's land.
func (l *Land) Prefix() []byte { return binary.BigEndian.AppendUint64(nil, l.id) }

// Load adds one stored row to an empty Land. Rows must come in the order of their keys, so that a chunk's base precedes
// its edits.
func (l *Land) Load(key, value []byte) error {
	if len(key) < 9 || binary.BigEndian.Uint64(key) != l.id {
		return fmt.Errorf("%w: key %x", errRow, key)
	}
	rest := key[9:]
	switch {
	case key[8] == keyBase && len(rest) == 8 && len(value) == 32:
		pos := readChunkPos(rest)
		if !l.cell.Contains(pos) {
			return fmt.Errorf("%w: chunk %v is not in cell %v", errRow, pos, l.cell)
		}
		l.pinTo(pos, [32]byte(value))
	case key[8] == keyEdit && len(rest) == 12 && len(value) == 2:
		pos, at := readChunkPos(rest), chunk.Index(binary.BigEndian.Uint32(rest[8:]))
		g := l.pinned[pos]
		if g == nil || int64(at) >= int64(l.height)*grid.ChunkSize*grid.ChunkSize {
			return fmt.Errorf("%w: edit %d of chunk %v without a base, or too high", errRow, at, pos)
		}
		g.edits.Set(at, chunk.Block(binary.BigEndian.Uint16(value)))
	case key[8] == keyPlayer && len(rest) == len(player.ID{}):
		r, ok := decodeRecent(value)
		if !ok {
			return fmt.Errorf("%w: recent sequences %x", errRow, key)
		}
		l.recents[player.ID(rest)] = r
	default:
		return fmt.Errorf("%w: key %x", errRow, key)
	}
	return nil
}

func (l *Land) chunkKey(kind byte, pos grid.ChunkPos) []byte {
	key := append(l.Prefix(), kind)
	key = binary.BigEndian.AppendUint32(key, uint32(pos.X))
	return binary.BigEndian.AppendUint32(key, uint32(pos.Z))
}

func (l *Land) baseKey(pos grid.ChunkPos) []byte { return l.chunkKey(keyBase, pos) }

func (l *Land) playerKey(id player.ID) []byte { return append(append(l.Prefix(), keyPlayer), id[:]...) }

func readChunkPos(b []byte) grid.ChunkPos {
	return grid.ChunkPos{X: int32(binary.BigEndian.Uint32(b)), Z: int32(binary.BigEndian.Uint32(b[4:]))}
}
