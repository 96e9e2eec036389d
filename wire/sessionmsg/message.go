package sessionmsg

import (
	"crypto/ed25519"
	"encoding/hex"
	"math"
	"reflect"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// What both encodings share: the types of messages by their names, and the checks of their fields.

// decodeClient decodes a parsed client message.
func decodeClient(o *wire.Object) (FromClient, error) {
	name := o.Text("type", 32)
	if o.Err != nil {
		return nil, o.Err
	}
	m := decodeFields(o, name)
	if err := o.Done(); err != nil {
		return nil, err
	}
	return m, nil
}

// decodeFields decodes the fields of the named message. Errors are in the object.
func decodeFields(o *wire.Object, name string) FromClient {
	switch name {
	case "move":
		return Move{Pose: o.Pose()}
	case "edit":
		e := Edit{
			Seq:   o.Unsigned("seq"),
			X:     int32(o.Integer("x", math.MinInt32, math.MaxInt32)),
			Y:     int32(o.Integer("y", math.MinInt32, math.MaxInt32)),
			Z:     int32(o.Integer("z", math.MinInt32, math.MaxInt32)),
			Block: uint16(o.Integer("block", 0, math.MaxUint16)),
		}
		if o.Has("signature") {
			e.Signature = decodeSignature(o)
		}
		if o.Has("text") {
			e.Text = o.Text("text", wire.MaxSignText)
		}
		return e
	case "bulk":
		return decodeBulk(o)
	case "chat":
		text := wire.Known(o.Text("text", wire.MaxChat))
		if err := wire.CheckChat(text); o.Err == nil && err != nil {
			o.Fail(err)
		}
		return Chat{Text: text}
	case "command":
		return decodeCommand(o)
	case "hit":
		return Hit{Player: decodePlayerID(o, "player")}
	case "gift":
		return Gift{
			Player: decodePlayerID(o, "player"),
			Block:  uint16(o.Integer("block", 0, math.MaxUint16)), Count: uint8(o.Integer("count", 1, nodemsg.MaxGift)),
		}
	case "view":
		return View{View: int(o.Integer("view", 1, wire.MaxView))}
	case "stance":
		return Stance{Held: uint16(o.Integer("held", 0, math.MaxUint16)), Sneaks: o.Bool("sneaks")}
	case "ping":
		return Ping{Nonce: o.Unsigned("nonce")}
	case "nearby":
		return NearbyRequest{}
	case "people":
		return PeopleRequest{}
	case "map":
		return MapRequest{X: int32(o.Integer("x", -maxTile, maxTile-1)), Z: int32(o.Integer("z", -maxTile, maxTile-1))}
	case "chunk":
		return ChunkRequest{X: int32(o.Integer("x", -grid.Limit, grid.Limit-1)), Z: int32(o.Integer("z", -grid.Limit, grid.Limit-1))}
	case "join":
		return DecodeJoin(o)
	case "prove":
		return Prove{Signature: decodeSignature(o)}
	default:
		o.Fail(unknownMessage(name))
		return nil
	}
}

func decodeBulk(o *wire.Object) Bulk {
	b := Bulk{
		Seq: o.Unsigned("seq"), X: int32(o.Integer("x", -grid.Limit, grid.Limit-1)), Z: int32(o.Integer("z", -grid.Limit, grid.Limit-1)),
		Runs: o.Text("runs", 2*nodemsg.MaxBulkBytes),
	}
	runs, err := hex.DecodeString(b.Runs)
	if err == nil && len(runs) == 0 {
		err = hex.ErrLength
	}
	if err == nil {
		err = nodemsg.Bulk(runs).Valid()
	}
	if o.Err == nil && err != nil {
		o.Fail(wire.Refuse(wire.FailBadValue, "the runs of a bulk edit: %v", err))
	}
	if o.Has("signature") {
		b.Signature = decodeSignature(o)
	}
	return b
}

func decodeCommand(o *wire.Object) Command {
	c := Command{Text: o.Text("text", wire.MaxChat)}
	if err := wire.CheckChat(wire.Known(c.Text)); o.Err == nil && err != nil {
		o.Fail(err)
	}
	if o.Has("signature") {
		c.Seq, c.Signature = o.Unsigned("seq"), decodeSignature(o)
		if o.Err == nil && c.Seq == 0 {
			o.Fail(wire.Refuse(wire.FailBadValue, `"seq" must not be 0`))
		}
	}
	return c
}

func decodeSignature(o *wire.Object) string {
	signature := o.Text("signature", 4*ed25519.SignatureSize)
	if b, err := hex.DecodeString(signature); o.Err == nil && (err != nil || len(b) != ed25519.SignatureSize) {
		o.Fail(wire.Refuse(wire.FailBadSignature, "the signature must be %d bytes in hex", ed25519.SignatureSize))
	}
	return signature
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

// decodePlayerID reads a player id in the form that the server writes.
func decodePlayerID(o *wire.Object, field string) string {
	text := o.Text(field, 2*len(player.ID{}))
	if id, err := player.ParseID(text); o.Err == nil && (err != nil || id.String() != text) {
		o.Fail(wire.Refuse(wire.FailBadValue, "%q must be a player's id, %d bytes in hex", field, len(id)))
	}
	return text
}

// serverTypes has the types of all server messages by their names.
var serverTypes = typesByName(
	Challenge{}, Welcome{}, ChunkData{}, ChunkHash{}, ChunkGone{}, Signs{}, Frame{}, Ack{}, Struck{}, Given{}, Denied{}, Correction{}, Pong{}, Notice{}, Line{}, Failure{},
	Reconnect{}, Nearby{}, MapTile{}, Permissions{}, Claims{}, RollbackPreview{}, People{}, History{},
)

func typesByName(messages ...FromServer) map[string]reflect.Type {
	types := make(map[string]reflect.Type, len(messages))
	for _, m := range messages {
		types[m.serverType()] = reflect.TypeOf(m)
	}
	return types
}

// decodeServer decodes one server message of any type. code is that of an error of unmarshal.
func decodeServer(data []byte, unmarshal func([]byte, any) error, code string) (FromServer, error) {
	if err := tooLong(data, wire.MaxServerLine); err != nil {
		return nil, err
	}
	var head struct {
		Type string `json:"type"`
	}
	if err := unmarshal(data, &head); err != nil {
		return nil, wire.Refuse(code, "%v", err)
	}
	of, known := serverTypes[head.Type]
	if !known {
		return nil, unknownMessage(head.Type)
	}
	to := reflect.New(of)
	if err := unmarshal(data, to.Interface()); err != nil {
		return nil, wire.Refuse(code, "%v", err)
	}
	m, _ := to.Elem().Interface().(FromServer)
	if err := check(m); err != nil {
		return nil, err
	}
	return m, nil
}

// tooLong returns an error if a message is longer than most bytes.
func tooLong(data []byte, most int) error {
	if len(data) > most {
		return wire.Refuse(wire.FailTooLong, "a message may have %d bytes", most)
	}
	return nil
}

func unknownMessage(name string) *wire.Error {
	return wire.Refuse(wire.FailUnknownMessage, "unknown message %q", wire.Clip([]byte(name)))
}

// check validates a Reconnect, because a client follows its addresses. Other messages of a server are trusted.
func check(m FromServer) error {
	if r, ok := m.(Reconnect); ok {
		return r.Valid()
	}
	return nil
}
