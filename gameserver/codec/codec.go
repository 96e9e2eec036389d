// Package codec holds the two encodings of sessions, JSON and CBOR, as two values of one interface: everything that
// depends on the encoding of a session is asked of its codec.
package codec

import (
	"encoding/json"

	"github.com/voxelpopuli/voxeld/gameserver/interest"
	"github.com/voxelpopuli/voxeld/gameserver/mirror"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// Codec is the encoding of a session. Values are comparable and have no state: any goroutine may use them.
type Codec interface {
	// IsText reports whether messages are text: over TCP they are lines, over WebSocket text frames. Others have a
	// length prefix over TCP.
	IsText() bool
	// HasTickFrames reports whether sessions get one frame per tick from the frame loop, with the motion of all
	// avatars. Others get moves from chunk deltas.
	HasTickFrames() bool
	// Decode decodes a client's message. Errors are *wire.Error.
	Decode(message []byte) (sessionmsg.FromClient, error)
	// IsMove reports whether a message is one that sessionmsg.DecodeMove decodes. False does not mean that it is no
	// move.
	IsMove(message []byte) bool
	// Encode returns a message. It panics on what no checked message has.
	Encode(m sessionmsg.FromServer) []byte
	// Delta returns the piece of a frame for the delta of a chunk; nil if there is nothing to send. It is shared by all
	// sessions: read only. The lock of the delta's subscription is held.
	Delta(d *mirror.Delta) []byte
	// Calm is Delta without the moves, and is not shared.
	Calm(d *mirror.Delta) []byte
	// Occupants returns the piece of a frame with everybody who is in a chunk; nil if that is nobody.
	Occupants(c *mirror.Chunk, index Index) []byte
	// AppendFrame appends a frame.
	AppendFrame(dst []byte, f Frame) []byte
}

// Index is the interest index, for Codec.Occupants.
type Index interface {
	Present(at grid.ChunkPos, bodies []nodemsg.Body) []nodemsg.Body
	Entering(at grid.ChunkPos, in interest.Occupants) *sessionmsg.TickDelta
}

// Frame is the content of a frame.
type Frame struct {
	Tick      uint64            // of the frame loop
	PieceTick uint64            // of the last piece's region
	Pieces    []json.RawMessage // in the codec's encoding
	Motion    []byte            // of a codec with tick frames
}

func must(data []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return data
}
