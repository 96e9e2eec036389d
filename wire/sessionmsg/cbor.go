package sessionmsg

import (
	"fmt"

	"github.com/voxelpopuli/voxeld/wire"
)

// Sessions in CBOR: the messages of session.go, each one map with the same names and values as in JSON, except that
// bytes are byte strings. Moves and frames have forms of their own (tick.go).

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
	if err := tooLong(data, wire.MaxLine); err != nil {
		return nil, err
	}
	var o wire.Object
	if err := o.ParseCBOR(data); err != nil {
		return nil, err
	}
	return decodeClient(&o)
}

// EncodeClientCBOR encodes a client's message in CBOR. A Move has a binary form, and a Join is always in JSON.
func EncodeClientCBOR(m FromClient) ([]byte, error) {
	switch m := m.(type) {
	case Move:
		return AppendMove(nil, m.Pose), nil
	case Join:
		return nil, fmt.Errorf("encode join: it has no form in CBOR")
	default:
		return encodeNamedCBOR(m.clientType(), m)
	}
}

// DecodeServerCBOR decodes one server message in CBOR, as DecodeServer does JSON: it ignores unknown fields. Every
// error is an *Error. ReadTick decodes frames.
func DecodeServerCBOR(data []byte) (FromServer, error) {
	m, err := decodeServer(data, wire.CBORDecoding.Unmarshal, wire.FailBadCBOR)
	if frame, ok := m.(Frame); ok {
		return nil, unknownMessage(frame.serverType())
	}
	return m, err
}

// EncodeServerCBOR encodes a server's message in CBOR. Frames have a form of their own (AppendTick).
func EncodeServerCBOR(m FromServer) ([]byte, error) {
	switch m := m.(type) {
	case Frame:
		return nil, fmt.Errorf("encode frame: it has no form in a CBOR map")
	case Ack:
		if m.Error == "" {
			return encodeAck(m), nil
		}
	}
	if err := check(m); err != nil {
		return nil, fmt.Errorf("encode %s: %w", m.serverType(), err)
	}
	return encodeNamedCBOR(m.serverType(), m)
}

// encodeAck writes what encodeNamedCBOR does for an acknowledgement without an error, in a quarter of the time: each
// edit has one.
func encodeAck(a Ack) []byte {
	b := append(make([]byte, 0, 40), "\xa3\x64type\x63ack\x63seq"...)
	b = append(wire.AppendCBORHead(b, wire.CBORUnsigned, a.Seq), "\x65block"...)
	return wire.AppendCBORHead(b, wire.CBORUnsigned, uint64(a.Block))
}

// encodeNamedCBOR puts "type": name before the fields of a message.
func encodeNamedCBOR(name string, m any) ([]byte, error) {
	fields, err := wire.CBOREncoding.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", name, err)
	}
	n, rest, ok := wire.CutCBORHead(fields, wire.CBORMap)
	if !ok {
		panic("encode " + name + ": not a map")
	}
	out := make([]byte, 0, len(fields)+len(name)+7)
	out = append(wire.AppendCBORHead(out, wire.CBORMap, n+1), "\x64type"...)
	out = append(wire.AppendCBORHead(out, wire.CBORText, uint64(len(name))), name...)
	return append(out, rest...), nil
}
