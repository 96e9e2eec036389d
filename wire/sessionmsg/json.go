package sessionmsg

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// DecodeClient decodes one client message, strictly: one object that has every field of the message, with the right
// type and in range, none twice and none unknown. Every error is an *Error.
func DecodeClient(data []byte) (FromClient, error) {
	if len(data) > wire.MaxLine {
		return nil, wire.Refuse(wire.FailTooLong, "a message may have %d bytes", wire.MaxLine)
	}
	var o wire.Object
	if err := o.Parse(data); err != nil {
		return nil, err
	}
	kind := o.Text("type", 32)
	if o.Err != nil {
		return nil, o.Err
	}
	m, err := decodeMessage(&o, kind)
	if err != nil {
		return nil, err
	}
	if err := o.Done(); err != nil {
		return nil, err
	}
	return m, nil
}

func decodeMessage(o *wire.Object, kind string) (FromClient, *wire.Error) {
	switch kind {
	case "move":
		return Move{Pose: o.Pose()}, nil
	case "edit":
		return Edit{
			Seq:   o.Unsigned("seq"),
			X:     int32(o.Integer("x", math.MinInt32, math.MaxInt32)),
			Y:     int32(o.Integer("y", math.MinInt32, math.MaxInt32)),
			Z:     int32(o.Integer("z", math.MinInt32, math.MaxInt32)),
			Block: uint16(o.Integer("block", 0, math.MaxUint16)),
		}, nil
	case "chat":
		text := o.Text("text", wire.MaxChat)
		if err := wire.CheckChat(text); o.Err == nil && err != nil {
			o.Fail(err)
		}
		return Chat{Text: text}, nil
	case "hit":
		return Hit{Player: decodePlayerID(o, "player")}, nil
	case "gift":
		return Gift{
			Player: decodePlayerID(o, "player"),
			Block:  uint16(o.Integer("block", 0, math.MaxUint16)), Count: uint8(o.Integer("count", 1, nodemsg.MaxGift)),
		}, nil
	case "view":
		return View{View: int(o.Integer("view", 1, wire.MaxView))}, nil
	case "ping":
		return Ping{Nonce: o.Unsigned("nonce")}, nil
	case "join":
		return DecodeJoin(o), nil
	case "prove":
		signature := o.Text("signature", 4*ed25519.SignatureSize)
		if b, err := hex.DecodeString(signature); o.Err == nil && (err != nil || len(b) != ed25519.SignatureSize) {
			o.Fail(wire.Refuse(wire.FailBadSignature, "the signature must be %d bytes in hex", ed25519.SignatureSize))
		}
		return Prove{Signature: signature}, nil
	default:
		return nil, wire.Refuse(wire.FailUnknownMessage, "unknown message %q", wire.Clip([]byte(kind)))
	}
}

// DecodeJoin decodes the fields of a join. Errors are in the object.
func DecodeJoin(o *wire.Object) Join {
	// Check the version first: a client of another version must get that error and no other.
	j := Join{Version: int(o.Integer("version", 0, math.MaxInt32))}
	if o.Err == nil && j.Version != SessionVersion && j.Version != firstVersion {
		o.Fail(wrongVersion(j.Version))
	}
	j.Name = o.PlayerName("name")
	j.View = int(o.Integer("view", 1, wire.MaxView))
	j.Encoding = o.Text("encoding", 16)
	if j.Encoding != EncodingJSON && j.Encoding != EncodingCBOR {
		o.Fail(wire.Refuse(wire.FailBadValue, `"encoding" must be "cbor" or "json"`))
	}
	if o.Err == nil && j.Version == firstVersion && j.Encoding == EncodingCBOR {
		o.Fail(wrongVersion(j.Version)) // in JSON both versions are the same
	}
	if o.Has("key") {
		j.Key = o.Text("key", 4*ed25519.PublicKeySize)
		if b, err := hex.DecodeString(j.Key); j.Key != "" && (err != nil || len(b) != ed25519.PublicKeySize) {
			o.Fail(wire.Refuse(wire.FailBadKey, "the key must be %d bytes in hex", ed25519.PublicKeySize))
		}
	}
	return j
}

func wrongVersion(version int) *wire.Error {
	return wire.Refuse(wire.FailWrongVersion, "this server speaks version %d of the session protocol, not %d: reload the page, or upgrade the older side",
		SessionVersion, version)
}

// EncodeClient encodes a client's message as one JSON object, without a newline.
func EncodeClient(m FromClient) ([]byte, error) {
	switch m := m.(type) {
	case Join:
		return encodeNamed("join", m)
	case Prove:
		return encodeNamed("prove", m)
	case Move:
		return encodeNamed("move", m)
	case Edit:
		return encodeNamed("edit", m)
	case Chat:
		return encodeNamed("chat", m)
	case Hit:
		return encodeNamed("hit", m)
	case Gift:
		return encodeNamed("gift", m)
	case View:
		return encodeNamed("view", m)
	case Ping:
		return encodeNamed("ping", m)
	default:
		return nil, fmt.Errorf("encode message: %T is not a client message", m)
	}
}

// EncodeServer encodes a server's message as one JSON object, without a newline. It trusts the Chunks of a Frame to
// come from EncodePiece.
func EncodeServer(m FromServer) ([]byte, error) {
	switch m := m.(type) {
	case Challenge:
		return encodeNamed("challenge", m)
	case Welcome:
		return encodeNamed("welcome", m)
	case ChunkData:
		return encodeNamed("chunk", m)
	case ChunkGone:
		return encodeNamed("chunk_gone", m)
	case Frame:
		return AppendFrame(nil, m.Tick, m.Chunks...), nil
	case Ack:
		return encodeNamed("ack", m)
	case Struck:
		return encodeNamed("hit", m)
	case Given:
		return encodeNamed("gift", m)
	case Denied:
		return encodeNamed("denied", m)
	case Correction:
		return encodeNamed("correction", m)
	case Pong:
		return encodeNamed("pong", m)
	case Notice:
		return encodeNamed("notice", m)
	case Failure:
		return encodeNamed("failure", m)
	case Reconnect:
		if err := m.Valid(); err != nil {
			return nil, fmt.Errorf("encode reconnect: %w", err)
		}
		return encodeNamed("reconnect", m)
	default:
		return nil, fmt.Errorf("encode message: %T is not a server message", m)
	}
}

// encodeNamed puts {"type":"name", before the fields of a message, which has at least one.
func encodeNamed(name string, m any) ([]byte, error) {
	fields, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", name, err)
	}
	out := make([]byte, 0, len(fields)+len(name)+len(`{"type":"",`))
	out = append(out, `{"type":"`...)
	out = append(out, name...)
	out = append(out, `",`...)
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

// DecodeServer decodes one server message as a client should: it ignores unknown fields, so that an older client works
// with a newer server. Every error is an *Error.
func DecodeServer(data []byte) (FromServer, error) {
	if len(data) > wire.MaxServerLine {
		return nil, wire.Refuse(wire.FailTooLong, "a message may have %d bytes", wire.MaxServerLine)
	}
	kind, err := serverKind(data)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "challenge":
		return decodeServer[Challenge](data)
	case "welcome":
		return decodeServer[Welcome](data)
	case "chunk":
		return decodeServer[ChunkData](data)
	case "chunk_gone":
		return decodeServer[ChunkGone](data)
	case "frame":
		return decodeServer[Frame](data)
	case "ack":
		return decodeServer[Ack](data)
	case "hit":
		return decodeServer[Struck](data)
	case "gift":
		return decodeServer[Given](data)
	case "denied":
		return decodeServer[Denied](data)
	case "correction":
		return decodeServer[Correction](data)
	case "pong":
		return decodeServer[Pong](data)
	case "notice":
		return decodeServer[Notice](data)
	case "failure":
		return decodeServer[Failure](data)
	case "reconnect":
		return decodeReconnect(data)
	default:
		return nil, wire.Refuse(wire.FailUnknownMessage, "unknown message %q", wire.Clip([]byte(kind)))
	}
}

// serverKind returns the message's name, which this server writes first.
func serverKind(data []byte) (string, error) {
	const prefix = `{"type":"`
	if rest, ok := bytes.CutPrefix(data, []byte(prefix)); ok {
		if end := bytes.IndexByte(rest, '"'); end >= 0 && bytes.IndexByte(rest[:end], '\\') < 0 {
			return string(rest[:end]), nil
		}
	}
	var m struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return "", wire.Refuse(wire.FailBadJSON, "%v", err)
	}
	return m.Type, nil
}

func decodeServer[M FromServer](data []byte) (FromServer, error) {
	var m M
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, wire.Refuse(wire.FailBadJSON, "%v", err)
	}
	return m, nil
}

// decodeReconnect decodes and validates a Reconnect, because a client follows its addresses.
func decodeReconnect(data []byte) (FromServer, error) {
	var m Reconnect
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, wire.Refuse(wire.FailBadJSON, "%v", err)
	}
	if err := m.Valid(); err != nil {
		return nil, err
	}
	return m, nil
}
