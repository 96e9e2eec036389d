package sessionmsg

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/voxelpopuli/voxeld/wire"
)

// DecodeClient decodes one client message, strictly: one object that has every field of the message, with the right
// type and in range, none twice and none unknown. Every error is an *Error.
func DecodeClient(data []byte) (FromClient, error) {
	if err := tooLong(data, wire.MaxLine); err != nil {
		return nil, err
	}
	var o wire.Object
	if err := o.ParseJSON(data); err != nil {
		return nil, err
	}
	return decodeClient(&o)
}

// EncodeClient encodes a client's message as one JSON object, without a newline.
func EncodeClient(m FromClient) ([]byte, error) { return encodeNamed(m.clientType(), m) }

// DecodeServer decodes one server message as a client should: it ignores unknown fields, so that an older client works
// with a newer server. Every error is an *Error.
func DecodeServer(data []byte) (FromServer, error) {
	return decodeServer(data, json.Unmarshal, wire.FailBadJSON)
}

// EncodeServer encodes a server's message as one JSON object, without a newline. It trusts the Chunks of a Frame to
// come from EncodePiece.
func EncodeServer(m FromServer) ([]byte, error) {
	if frame, ok := m.(Frame); ok {
		return AppendFrame(nil, frame.Tick, frame.Chunks...), nil
	}
	if err := check(m); err != nil {
		return nil, fmt.Errorf("encode %s: %w", m.serverType(), err)
	}
	return encodeNamed(m.serverType(), m)
}

// encodeNamed puts {"type":"name" before the fields of a message.
func encodeNamed(name string, m any) ([]byte, error) {
	fields, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", name, err)
	}
	out := make([]byte, 0, len(fields)+len(name)+len(`{"type":"",`))
	out = append(out, `{"type":"`...)
	out = append(out, name...)
	out = append(out, '"')
	if len(fields) > len(`{}`) {
		out = append(out, ',')
	}
	return append(out, fields[1:]...), nil
}

// EncodePiece encodes the changes of one chunk in one tick, once for all sessions that see it.
func EncodePiece(p Piece) (json.RawMessage, error) {
	b, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encode piece of chunk %v: %w", p.Chunk, err)
	}
	return b, nil
}

// AppendFrame appends a Frame of encoded pieces. It copies them and encodes nothing.
func AppendFrame(dst []byte, tick uint64, pieces ...json.RawMessage) []byte {
	dst = append(dst, `{"type":"frame","tick":`...)
	dst = strconv.AppendUint(dst, tick, 10)
	dst = append(dst, `,"chunks":[`...)
	for i, p := range pieces {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, p...)
	}
	return append(dst, `]}`...)
}

// DecodePiece decodes an element of Frame.Chunks.
func DecodePiece(raw json.RawMessage) (Piece, error) {
	var p Piece
	if err := json.Unmarshal(raw, &p); err != nil {
		return Piece{}, wire.Refuse(wire.FailBadJSON, "decode piece: %v", err)
	}
	return p, nil
}
