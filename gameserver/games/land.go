package games

import (
	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/wire"
)

// foldAfter is the number of changes of a chunk after which it is kept unpacked.
const foldAfter = 2048

// Land is a chunk that a client has in view. It is kept packed, with the changes since.
type Land struct {
	packed []byte
	edits  map[chunk.Index]chunk.Block // since then
	blocks *chunk.Chunk                // nil unless the chunk is kept unpacked
}

// NewLand returns the chunk of a sessionmsg.ChunkData, whose data it keeps.
func NewLand(data []byte) *Land { return &Land{packed: data} }

// Load returns the chunk's blocks, which the caller must not change.
func (l *Land) Load() (*chunk.Chunk, error) {
	if l.blocks != nil {
		return l.blocks, nil
	}
	plain, err := wire.UnpackChunk(l.packed)
	if err != nil {
		return nil, err
	}
	blocks, err := chunk.Decode(plain)
	if err != nil {
		return nil, err
	}
	for at, b := range l.edits {
		blocks.Set(at, b)
	}
	return blocks, nil
}

// Set changes a block.
func (l *Land) Set(at chunk.Index, b chunk.Block) (err error) {
	if l.blocks == nil {
		if l.edits == nil {
			l.edits = make(map[chunk.Index]chunk.Block)
		}
		if l.edits[at] = b; len(l.edits) <= foldAfter {
			return nil
		}
		l.blocks, err = l.Load()
		l.packed, l.edits = nil, nil
		return err
	}
	l.blocks.Set(at, b)
	return nil
}
