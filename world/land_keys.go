package world

import (
	"encoding/binary"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
)

// landKeys makes the keys of a region's rows in LandTable.
type landKeys struct{ id uint64 }

// Kinds of rows in LandTable: the byte after the region id.
const (
	keyBase    = 'b' // X, Z → base hash, 32 bytes
	keyEdit    = 'e' // X, Z, index → block, 2 bytes big-endian, and the text of a sign
	keyMod     = 'g' // name → what a mod may do, and whether it is suspended
	keyHistory = 'h' // X, Z, number of the segment → a segment of the chunk's history
	keyEvent   = 'i' // X, Z, id of an event, u64 big-endian → the event, which waits for a mod
	keyPlayer  = 'p' // player id → recent sequences
	// keyOrders has no more in its key: → number of the last rollback that is complete, u64 big-endian; and behind it,
	// if one has arrived, that of the last order that has.
	keyOrders = 'r'
	// keyStructure has no more in its key: → the region's Structure. Founded regions that were never split have none.
	keyStructure = 's'
)

// editRow returns the value of the row of an edited block.
func editRow(b chunk.Block, text string) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(b)), text...)
}

// Prefix returns the key prefix of all rows of this region's land.
func (k landKeys) Prefix() []byte { return binary.BigEndian.AppendUint64(nil, k.id) }

// EditPrefix returns the key prefix of the rows of a region's edited blocks, one each.
func EditPrefix(id uint64) []byte { return append(binary.BigEndian.AppendUint64(nil, id), keyEdit) }

func (k landKeys) chunkKey(kind byte, pos grid.ChunkPos) []byte {
	key := append(k.Prefix(), kind)
	key = binary.BigEndian.AppendUint32(key, uint32(pos.X))
	return binary.BigEndian.AppendUint32(key, uint32(pos.Z))
}

func (k landKeys) baseKey(pos grid.ChunkPos) []byte { return k.chunkKey(keyBase, pos) }

func (k landKeys) editKey(p place) []byte {
	return binary.BigEndian.AppendUint32(k.chunkKey(keyEdit, p.chunk), uint32(p.at))
}

func (k landKeys) playerKey(id player.ID) []byte {
	return append(append(k.Prefix(), keyPlayer), id[:]...)
}

func (k landKeys) historyKey(pos grid.ChunkPos, number uint32) []byte {
	return binary.BigEndian.AppendUint32(k.chunkKey(keyHistory, pos), number)
}

func (k landKeys) modKey(name string) []byte { return append(append(k.Prefix(), keyMod), name...) }

func (k landKeys) eventKey(at EventAt) []byte {
	return binary.BigEndian.AppendUint64(k.chunkKey(keyEvent, at.Chunk), at.ID)
}

func (k landKeys) ordersKey() []byte { return append(k.Prefix(), keyOrders) }

func (k landKeys) structureKey() []byte { return append(k.Prefix(), keyStructure) }
