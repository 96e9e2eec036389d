package legacymsg

import (
	"bufio"
	"fmt"
	"strconv"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// Purpose is the purpose of a new connection to the game port.
type Purpose string

// The purposes. All but Join are VoxelPopuli's (§3.2.2.1).
const (
	PurposeConnect  Purpose = "connect"  // play in Chunk as Player: packets follow
	PurposeGenerate Purpose = "generate" // make sure that Chunk exists
	PurposeDHT      Purpose = "dht"      // ask for the places of chunks and players: queries follow
	PurposePing     Purpose = "ping"     // check that the server is alive
	PurposeJoin     Purpose = "join"     // open a session: messages follow
)

// Answers to a handshake, sent without a newline. A refused connection is closed after AnswerNo. Join is answered with
// session messages instead.
const (
	AnswerOK   = "ok"
	AnswerNo   = "no"
	AnswerPong = "pong"
)

// Handshake is the first message of a client of the game port.
type Handshake struct {
	Purpose Purpose
	Chunk   grid.ChunkPos   // of connect and generate
	Player  string          // of connect, as the client wrote it; may be empty
	Join    sessionmsg.Join // of join
}

// ReadHandshake reads the JSON object that opens a connection. The original clients send it without a newline and then
// wait, so the object ends with its closing brace. A newline that has already arrived is consumed too, but no byte
// after it. A refusal is an *Error; io.EOF means that the client sent nothing. The caller sets the deadline
// (HandshakeTimeout).
func ReadHandshake(r *bufio.Reader) (Handshake, error) {
	data, err := readValue(r, '{', wire.MaxHandshake)
	if err != nil {
		return Handshake{}, err
	}
	if err := skipLineEnd(r); err != nil {
		return Handshake{}, err
	}
	return DecodeHandshake(data)
}

// DecodeHandshake decodes a handshake. Every error is an *Error. Superfluous fields are ignored, as in VoxelPopuli's
// own server; a join must not have any. Even with an error the Purpose is set if it was readable: a refused join is
// answered with a Failure, any other handshake with AnswerNo.
func DecodeHandshake(data []byte) (Handshake, error) {
	if len(data) > wire.MaxHandshake {
		return Handshake{}, wire.Refuse(wire.FailTooLong, "a handshake has at most %d bytes", wire.MaxHandshake)
	}
	var o wire.Object
	if refused := o.ParseJSON(data); refused != nil {
		return Handshake{}, refused
	}
	h := Handshake{Purpose: Purpose(o.Text("type", 32))}
	switch h.Purpose {
	case PurposeConnect:
		h.Chunk, h.Player = o.Chunk("chunk"), o.LenientText("player")
	case PurposeGenerate:
		h.Chunk = o.Chunk("chunk")
	case PurposeDHT, PurposePing:
	case PurposeJoin:
		h.Join = sessionmsg.DecodeJoin(&o)
		if err := o.Done(); err != nil {
			return Handshake{Purpose: h.Purpose}, err
		}
	default:
		o.Fail(wire.Refuse(wire.FailUnknownMessage, "unknown handshake %q", wire.Clip([]byte(h.Purpose))))
		h.Purpose = ""
	}
	if o.Err != nil {
		return Handshake{Purpose: h.Purpose}, o.Err
	}
	return h, nil
}

// AppendHandshake appends a handshake as a client sends it, without a newline.
func AppendHandshake(dst []byte, h Handshake) ([]byte, error) {
	if h.Purpose == PurposeJoin {
		b, err := sessionmsg.EncodeClient(h.Join)
		return append(dst, b...), err
	}
	dst = append(dst, `{"type":"`...)
	dst = append(dst, h.Purpose...)
	dst = append(dst, '"')
	switch h.Purpose {
	case PurposeConnect, PurposeGenerate:
		dst = append(dst, `,"chunk":`...)
		dst = appendChunkPos(dst, h.Chunk)
		if h.Purpose == PurposeConnect {
			// A name needs no quoting: it holds only letters, digits, '_' and '-'.
			if err := player.CheckName(h.Player); err != nil {
				return nil, fmt.Errorf("encode handshake: %w", err)
			}
			dst = append(dst, `,"player":"`...)
			dst = append(dst, h.Player...)
			dst = append(dst, '"')
		}
	case PurposeDHT, PurposePing:
	default:
		return nil, fmt.Errorf("encode handshake: unknown handshake %q", h.Purpose)
	}
	return append(dst, '}'), nil
}

// appendChunkPos appends [X,Z].
func appendChunkPos(dst []byte, at grid.ChunkPos) []byte {
	dst = append(dst, '[')
	dst = strconv.AppendInt(dst, int64(at.X), 10)
	dst = append(dst, ',')
	dst = strconv.AppendInt(dst, int64(at.Z), 10)
	return append(dst, ']')
}
