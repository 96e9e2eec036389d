package games

import (
	"unique"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/wire"
)

// foldAfter is the number of changes of a chunk after which it is kept unpacked.
const foldAfter = 2048

// Packed is a chunk as it is sent to sessions. Equal ones have their bytes in common.
type Packed = unique.Handle[string]

// Land is a chunk that a client has in view. It is kept packed, with the changes since.
type Land struct {
	packed Packed
	edits  map[chunk.Index]chunk.Block // since then
	blocks *chunk.Chunk                // nil unless the chunk is kept unpacked
	failed bool                        // Load failed, and is not tried again; it should not, since the gateway packed the chunk
}

// NewLand returns the chunk of a sessionmsg.ChunkData.
func NewLand(data []byte) *Land { return &Land{packed: unique.Make(string(data))} }

// Unchanged returns the chunk if it is as it was sent.
func (l *Land) Unchanged() (p Packed, is bool) { return l.packed, l.blocks == nil && len(l.edits) == 0 }

// Load returns the chunk's blocks, which the caller must not change.
func (l *Land) Load() (*chunk.Chunk, error) {
	if l.blocks != nil {
		return l.blocks, nil
	}
	plain, err := wire.UnpackChunk([]byte(l.packed.Value()))
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
func (l *Land) Set(at chunk.Index, b chunk.Block) {
	if l.blocks != nil {
		l.blocks.Set(at, b)
		return
	}
	if l.edits == nil {
		l.edits = make(map[chunk.Index]chunk.Block)
	}
	if l.edits[at] = b; len(l.edits) > foldAfter && !l.failed {
		if blocks, err := l.Load(); err == nil {
			*l = Land{blocks: blocks}
		} else {
			l.failed = true
		}
	}
}
