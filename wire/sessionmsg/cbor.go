package sessionmsg

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/fxamacker/cbor/v2"

	"github.com/voxelpopuli/voxeld/wire"
)

// Sessions in CBOR: the messages of session.go, each one map with the same names and values as in JSON, except that
// bytes are byte strings. Moves and frames have forms of their own (tick.go).

// clientDecoding has tight bounds: client messages are small and flat.
var clientDecoding = wire.Must(cbor.DecOptions{
	DupMapKey:        cbor.DupMapKeyEnforcedAPF,
	MaxNestedLevels:  4,
	MaxArrayElements: 16,
	MaxMapPairs:      16,
	IndefLength:      cbor.IndefLengthForbidden,
	TagsMd:           cbor.TagsForbidden,
	UTF8:             cbor.UTF8RejectInvalid,
	NaN:              cbor.NaNDecodeForbidden,
	Inf:              cbor.InfDecodeForbidden,
	BignumTag:        cbor.BignumTagForbidden,
}.DecMode())

// DecodeClientCBOR decodes one client message in CBOR, or a binary move, as strictly as DecodeClient does JSON. Every
// error is an *Error.
func DecodeClientCBOR(data []byte) (FromClient, error) {
	if len(data) > 0 && data[0] == ClientMove {
		p, err := DecodeMove(data)
		if err != nil {
			return nil, err
		}
		return Move{Pose: p}, nil
	}
	if e, ok := cutEdit(data); ok {
		return e, nil
	}
	return decodeClientCBOR(data)
}

// decodeClientCBOR decodes any message except a binary move.
func decodeClientCBOR(data []byte) (FromClient, error) {
	if len(data) > wire.MaxLine {
		return nil, wire.Refuse(wire.FailTooLong, "a message may have %d bytes", wire.MaxLine)
	}
	var fields map[string]any
	if err := clientDecoding.Unmarshal(data, &fields); err != nil {
		return nil, wire.Refuse(wire.FailBadCBOR, "%v", err)
	}
	for name, value := range fields {
		switch value.(type) {
		case string, uint64, int64, float64, bool:
		default:
			return nil, wire.Refuse(wire.FailBadType, "the field %q must be a text, a number or a boolean", wire.Clip([]byte(name)))
		}
	}
	// DecodeClient alone decides which messages are allowed.
	text, err := json.Marshal(fields)
	if err != nil {
		return nil, wire.Refuse(wire.FailBadCBOR, "%v", err)
	}
	return DecodeClient(text)
}

// EncodeClientCBOR encodes a client's message in CBOR. A Move has a binary form.
func EncodeClientCBOR(m FromClient) ([]byte, error) {
	switch m := m.(type) {
	case Prove:
		return encodeNamedCBOR("prove", m)
	case Move:
		return AppendMove(nil, m.Pose), nil
	case Edit:
		return encodeEdit(m), nil
	case Chat:
		return encodeNamedCBOR("chat", m)
	case Hit:
		return encodeNamedCBOR("hit", m)
	case Gift:
		return encodeNamedCBOR("gift", m)
	case View:
		return encodeNamedCBOR("view", m)
	case Ping:
		return encodeNamedCBOR("ping", m)
	default:
		return nil, fmt.Errorf("encode message: %T is not a client message in CBOR", m)
	}
}

// EncodeServerCBOR encodes a server's message in CBOR. Frames have a form of their own (AppendTick).
func EncodeServerCBOR(m FromServer) ([]byte, error) {
	switch m := m.(type) {
	case Challenge:
		return encodeNamedCBOR("challenge", m)
	case Welcome:
		return encodeNamedCBOR("welcome", m)
	case ChunkData:
		return encodeNamedCBOR("chunk", m)
	case ChunkGone:
		return encodeNamedCBOR("chunk_gone", m)
	case Ack:
		if m.Error == "" {
			return encodeAck(m), nil
		}
		return encodeNamedCBOR("ack", m)
	case Struck:
		return encodeNamedCBOR("hit", m)
	case Given:
		return encodeNamedCBOR("gift", m)
	case Denied:
		return encodeNamedCBOR("denied", m)
	case Correction:
		return encodeNamedCBOR("correction", m)
	case Pong:
		return encodeNamedCBOR("pong", m)
	case Notice:
		return encodeNamedCBOR("notice", m)
	case Failure:
		return encodeNamedCBOR("failure", m)
	case Reconnect:
		if err := m.Valid(); err != nil {
			return nil, fmt.Errorf("encode reconnect: %w", err)
		}
		return encodeNamedCBOR("reconnect", m)
	default:
		return nil, fmt.Errorf("encode message: %T is not a server message in CBOR", m)
	}
}

// encodeNamedCBOR puts "type": name before the fields of a message, which has fewer than 23 of them.
func encodeNamedCBOR(name string, m any) ([]byte, error) {
	fields, err := wire.CBOREncoding.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", name, err)
	}
	if len(fields) == 0 || fields[0] < shortMap || fields[0] >= shortMap+shortest-1 {
		panic("encode " + name + ": not a short map")
	}
	out := make([]byte, 0, len(fields)+len(name)+6)
	out = append(out, fields[0]+1, shortText+4)
	out = append(out, "type"...)
	out = append(out, shortText+byte(len(name)))
	out = append(out, name...)
	return append(out, fields[1:]...), nil
}

// DecodeServerCBOR decodes one server message in CBOR, as DecodeServer does JSON: it ignores unknown fields. Every
// error is an *Error.
func DecodeServerCBOR(data []byte) (FromServer, error) {
	if len(data) > wire.MaxServerLine {
		return nil, wire.Refuse(wire.FailTooLong, "a message may have %d bytes", wire.MaxServerLine)
	}
	if a, ok := cutAck(data); ok {
		return a, nil
	}
	var m struct {
		Type string `cbor:"type"`
	}
	if err := wire.CBORDecoding.Unmarshal(data, &m); err != nil {
		return nil, wire.Refuse(wire.FailBadCBOR, "%v", err)
	}
	switch m.Type {
	case "challenge":
		return decodeServerCBOR[Challenge](data)
	case "welcome":
		return decodeServerCBOR[Welcome](data)
	case "chunk":
		return decodeServerCBOR[ChunkData](data)
	case "chunk_gone":
		return decodeServerCBOR[ChunkGone](data)
	case "ack":
		return decodeServerCBOR[Ack](data)
	case "hit":
		return decodeServerCBOR[Struck](data)
	case "gift":
		return decodeServerCBOR[Given](data)
	case "denied":
		return decodeServerCBOR[Denied](data)
	case "correction":
		return decodeServerCBOR[Correction](data)
	case "pong":
		return decodeServerCBOR[Pong](data)
	case "notice":
		return decodeServerCBOR[Notice](data)
	case "failure":
		return decodeServerCBOR[Failure](data)
	case "reconnect":
		return decodeReconnectCBOR(data)
	default:
		return nil, wire.Refuse(wire.FailUnknownMessage, "unknown message %q", wire.Clip([]byte(m.Type)))
	}
}

func decodeServerCBOR[M FromServer](data []byte) (FromServer, error) {
	var m M
	if err := wire.CBORDecoding.Unmarshal(data, &m); err != nil {
		return nil, wire.Refuse(wire.FailBadCBOR, "%v", err)
	}
	return m, nil
}

// decodeReconnectCBOR decodes and validates a Reconnect, because a client follows its addresses.
func decodeReconnectCBOR(data []byte) (FromServer, error) {
	var m Reconnect
	if err := wire.CBORDecoding.Unmarshal(data, &m); err != nil {
		return nil, wire.Refuse(wire.FailBadCBOR, "%v", err)
	}
	if err := m.Valid(); err != nil {
		return nil, err
	}
	return m, nil
}

// Over TCP each message of a session in CBOR, binary ones included, is prefixed with its length, a varint of at most
// four bytes. Over WebSocket it is a binary message without a prefix.

// AppendMessage appends a message with its length prefix.
func AppendMessage(dst, message []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(message))), message...)
}

// ReadMessage reads a message that AppendMessage wrote, of 1 to most bytes, into buf, which grows if necessary. A
// length out of bounds is an *Error. Between messages the end of the stream is a bare io.EOF.
func ReadMessage(r *bufio.Reader, buf []byte, most int) ([]byte, error) {
	size, shift := uint64(0), 0
	for {
		b, err := r.ReadByte()
		if err != nil {
			if shift > 0 && errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		size |= uint64(b&0x7f) << shift
		if shift += 7; b < 0x80 {
			break
		}
		if shift > 21 {
			return nil, wire.Refuse(wire.FailTooLong, "the length of a message has at most four bytes")
		}
	}
	if size == 0 || size > uint64(most) {
		return nil, wire.Refuse(wire.FailTooLong, "a message of %d bytes; want 1 to %d", size, most)
	}
	// Memory grows only as bytes arrive, whatever the length prefix.
	buf = buf[:0]
	for len(buf) < int(size) {
		step := min(int(size)-len(buf), max(4<<10, len(buf)))
		start := len(buf)
		if cap(buf) < start+step {
			buf = append(make([]byte, 0, start+step), buf...)
		}
		buf = buf[:start+step]
		if _, err := io.ReadFull(r, buf[start:]); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	return buf, nil
}
