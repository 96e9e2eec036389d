package sessionmsg

import (
	"crypto/sha256"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
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

// Signs brings the texts of signs of a chunk in view: all of them after the chunk, and those that were written after a
// frame. A block that changes has no text until it is sent one.
type Signs struct {
	Chunk grid.ChunkPos `json:"chunk"`
	Signs []Sign        `json:"signs"`
}

// Sign is the text of a sign. An empty one takes it away.
type Sign struct {
	X    int32  `json:"x"`
	Y    int32  `json:"y"`
	Z    int32  `json:"z"`
	Text string `json:"text"`
}

// SignsOf returns the message with texts of a chunk's signs.
func SignsOf(at grid.ChunkPos, signs []nodemsg.SignAt) Signs {
	m := Signs{Chunk: at, Signs: make([]Sign, len(signs))}
	for i, s := range signs {
		pos := s.At.Pos(at)
		m.Signs[i] = Sign{X: pos.X, Y: pos.Y, Z: pos.Z, Text: s.Text}
	}
	return m
}

// ChunkRequest requests the data of a chunk of which only the hash was sent.
type ChunkRequest struct {
	X int32 `json:"x"`
	Z int32 `json:"z"`
}

func (ChunkData) serverType() string    { return "chunk" }
func (ChunkHash) serverType() string    { return "chunk_hash" }
func (ChunkGone) serverType() string    { return "chunk_gone" }
func (Signs) serverType() string        { return "signs" }
func (ChunkRequest) clientType() string { return "chunk" }

// HashChunk returns the hash of the data of a ChunkData: the first bytes of its SHA-256.
func HashChunk(data []byte) []byte {
	hash := sha256.Sum256(data)
	return hash[:ChunkHashSize]
}
