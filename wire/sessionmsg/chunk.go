package sessionmsg

import (
	"crypto/sha256"

	"github.com/voxelpopuli/voxeld/grid"
)

// ChunkHashSize is the number of bytes of a chunk's hash.
const ChunkHashSize = 16

// ChunkData brings a chunk into view, whole. Data is the chunk codec's bytes (docs/protocol.md),
// deflated (raw), in base64.
type ChunkData struct {
	Chunk grid.ChunkPos `json:"chunk"`
	Data  []byte        `json:"data"`
}

// ChunkHash brings a chunk into view whose data the client may have kept. If it has not, it sends a ChunkRequest.
type ChunkHash struct {
	Chunk grid.ChunkPos `json:"chunk"`
	Hash  []byte        `json:"hash"` // HashChunk of the data
}

// ChunkGone takes a chunk out of view.
type ChunkGone struct {
	Chunk grid.ChunkPos `json:"chunk"`
}

// ChunkRequest requests the data of a chunk of which only the hash was sent.
type ChunkRequest struct {
	X int32 `json:"x"`
	Z int32 `json:"z"`
}

func (ChunkData) serverType() string    { return "chunk" }
func (ChunkHash) serverType() string    { return "chunk_hash" }
func (ChunkGone) serverType() string    { return "chunk_gone" }
func (ChunkRequest) clientType() string { return "chunk" }

// HashChunk returns the hash of the data of a ChunkData: the first bytes of its SHA-256.
func HashChunk(data []byte) []byte {
	hash := sha256.Sum256(data)
	return hash[:ChunkHashSize]
}
