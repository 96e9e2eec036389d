package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
)

// codeOf returns the code of an *Error, "" for none, and fails the test for any other error.
func codeOf(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	var refused *Error
	if !errors.As(err, &refused) {
		t.Fatalf("error is %T, want *Error: %v", err, err)
	}
	if refused.Message == "" || len(refused.Message) > 300 {
		t.Fatalf("message of %d bytes: %q", len(refused.Message), refused.Message)
	}
	return refused.Code
}

const (
	aKey       = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
	aSignature = "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
)

const aPlayer = "6b86b273ff34fce19d6b804eff5a3f57"

// clientMessages has one message of each type, with the bytes that docs/protocol.md promises.
var clientMessages = []struct {
	bytes string
	m     FromClient
}{
	{`{"type":"join","version":1,"name":"ada","view":6,"encoding":"json"}`, Join{Version: 1, Name: "ada", View: 6, Encoding: "json"}},
	{`{"type":"join","version":2,"name":"ada","view":6,"encoding":"cbor"}`, Join{Version: 2, Name: "ada", View: 6, Encoding: "cbor"}},
	{`{"type":"join","version":1,"name":"ada","view":12,"encoding":"json","key":"` + aKey + `"}`, Join{Version: 1, Name: "ada", View: 12, Encoding: "json", Key: aKey}},
	{`{"type":"prove","signature":"` + aSignature + `"}`, Prove{Signature: aSignature}},
	{`{"type":"move","x":12.5,"y":64,"z":-3.25,"yaw":1.57,"pitch":-0.2}`, Move{motion.Pose{X: 12.5, Y: 64, Z: -3.25, Yaw: 1.57, Pitch: -0.2}}},
	{`{"type":"edit","seq":1,"x":12,"y":63,"z":-4,"block":0}`, Edit{Seq: 1, X: 12, Y: 63, Z: -4}},
	{`{"type":"chat","text":"hello 🌍"}`, Chat{Text: "hello 🌍"}},
	{`{"type":"hit","player":"` + aPlayer + `"}`, Hit{Player: aPlayer}},
	{`{"type":"gift","player":"` + aPlayer + `","block":16,"count":3}`, Gift{Player: aPlayer, Block: 16, Count: 3}},
	{`{"type":"view","view":8}`, View{View: 8}},
	{`{"type":"ping","nonce":18446744073709551615}`, Ping{Nonce: math.MaxUint64}},
}

func TestClientMessages(t *testing.T) {
	for _, c := range clientMessages {
		got, err := EncodeClient(c.m)
		if err != nil || string(got) != c.bytes {
			t.Errorf("EncodeClient(%+v) = %s, %v; want %s", c.m, got, err, c.bytes)
		}
		m, err := DecodeClient([]byte(c.bytes))
		if err != nil || !reflect.DeepEqual(m, c.m) {
			t.Errorf("DecodeClient(%s) = %+v, %v; want %+v", c.bytes, m, err, c.m)
		}
	}
}

func TestDecodeClientTakes(t *testing.T) {
	for _, c := range []struct {
		in   string
		want FromClient
	}{
		{"\t { \"nonce\" : 7.0 ,\r\n \"type\" : \"ping\" } \n", Ping{Nonce: 7}},
		{`{"nonce":7e0,"\u0074ype":"p\u0069ng"}`, Ping{Nonce: 7}},
		{`{"type":"chat","text":"\ud83c\udf0d \"\\\/"}`, Chat{Text: `🌍 "\/`}},
		{
			`{"type":"edit","seq":9007199254740993,"x":-2147483648,"y":0.0,"z":2147483647,"block":65535}`,
			Edit{Seq: 9007199254740993, X: math.MinInt32, Z: math.MaxInt32, Block: 65535},
		},
		{
			`{"type":"join","version":1,"name":"a","view":1,"encoding":"json","key":""}`,
			Join{Version: 1, Name: "a", View: 1, Encoding: "json"},
		},
		{`{"type":"move","x":-2147483648,"y":-64,"z":0,"yaw":-0.0,"pitch":1e-400}`, Move{motion.Pose{X: -1 << 31, Y: -64, Yaw: float32(math.Copysign(0, -1))}}},
	} {
		got, err := DecodeClient([]byte(c.in))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("DecodeClient(%s) = %+v, %v; want %+v", c.in, got, err, c.want)
		}
	}
}

func TestDecodeClientRefuses(t *testing.T) {
	for _, c := range []struct{ in, code, says string }{
		{``, FailBadJSON, "not a JSON object"},
		{`[]`, FailBadJSON, "not a JSON object"},
		{`{"type":"ping","nonce":1`, FailBadJSON, "too early"},
		{`{"type":"ping","nonce":1}{}`, FailBadJSON, "more than one"},
		{`{"type":"ping","nonce":1,}`, FailBadJSON, "byte"},
		{`{"type":"ping","nonce":01}`, FailBadJSON, "byte"},
		{`{"type":"ping","nonce":NaN}`, FailBadJSON, "byte"},
		{`{"type":"ping","nonce":1,"nonce":1}`, FailBadJSON, `"nonce" occurs twice`},
		{`{"type":"ping","nonce":1,"\u006eonce":1}`, FailBadJSON, `"nonce" occurs twice`},
		{"{\"type\":\"chat\",\"text\":\"\xff\"}", FailBadJSON, "UTF-8"},
		{`{"type":"chat","text":"\ud83c"}`, FailBadJSON, "surrogate"},
		{"{\"type\":\"chat\",\"text\":\"a\nb\"}", FailBadJSON, "byte"},
		{`{"type":"chat","text":` + strings.Repeat("[", 100000) + `}`, FailTooLong, "65536"},
		{`{"type":"chat","text":` + strings.Repeat("[", 1000) + `}`, FailBadJSON, "byte"},
		{`{"nonce":1}`, FailMissingField, `"type"`},
		{`{"type":7,"nonce":1}`, FailBadType, `"type"`},
		{`{"type":"fly"}`, FailUnknownMessage, `"fly"`},
		{`{"type":"Ping","nonce":1}`, FailUnknownMessage, `"Ping"`},
		{`{"type":"ping"}`, FailMissingField, `"nonce"`},
		{`{"type":"ping","Nonce":1}`, FailMissingField, `"nonce"`},
		{`{"type":"ping","nonce":1,"extra":[1,{"a":2}]}`, FailUnknownField, `"extra"`},
		{`{"type":"ping","nonce":"1"}`, FailBadType, `"nonce"`},
		{`{"type":"ping","nonce":null}`, FailBadType, `"nonce"`},
		{`{"type":"ping","nonce":-1}`, FailBadValue, `"nonce"`},
		{`{"type":"ping","nonce":1.5}`, FailBadValue, `"nonce"`},
		{`{"type":"ping","nonce":1e999}`, FailBadValue, `"nonce"`},
		{`{"type":"move","x":1,"y":2,"z":3,"yaw":0}`, FailMissingField, `"pitch"`},
		{`{"type":"move","x":1e999,"y":2,"z":3,"yaw":0,"pitch":0}`, FailBadValue, `"x" is too large`},
		{`{"type":"move","x":1,"y":2,"z":3,"yaw":1e39,"pitch":0}`, FailBadValue, `"yaw" is too large`},
		{`{"type":"move","x":2147483648,"y":2,"z":3,"yaw":0,"pitch":0}`, FailBadValue, "out of the world"},
		{`{"type":"move","x":1,"y":-65,"z":3,"yaw":0,"pitch":0}`, FailBadValue, "out of the world"},
		{`{"type":"move","x":true,"y":2,"z":3,"yaw":0,"pitch":0}`, FailBadType, `"x"`},
		{`{"type":"edit","seq":1,"x":2147483648,"y":0,"z":0,"block":0}`, FailBadValue, `"x"`},
		{`{"type":"edit","seq":1,"x":0.5,"y":0,"z":0,"block":0}`, FailBadValue, `"x"`},
		{`{"type":"edit","seq":1,"x":0,"y":0,"z":0,"block":65536}`, FailBadValue, `"block"`},
		{`{"type":"chat","text":""}`, FailBadValue, "must not be blank"},
		{`{"type":"chat","text":" \u00a0 "}`, FailBadValue, "must not be blank"},
		{`{"type":"chat","text":"a\u0007"}`, FailBadValue, "U+0007"},
		{`{"type":"chat","text":"a\u202eb"}`, FailBadValue, "U+202E"},
		{`{"type":"chat","text":"` + strings.Repeat("é", 129) + `"}`, FailBadValue, "256"},
		{`{"type":"hit"}`, FailMissingField, `"player"`},
		{`{"type":"hit","player":7}`, FailBadType, `"player"`},
		{`{"type":"hit","player":"6b86"}`, FailBadValue, "16 bytes"},
		{`{"type":"hit","player":"` + strings.ToUpper(aPlayer) + `"}`, FailBadValue, "16 bytes"},
		{`{"type":"hit","player":"` + aPlayer + `0"}`, FailBadValue, `"player"`},
		{`{"type":"hit","player":"` + aPlayer + `","block":1}`, FailUnknownField, `"block"`},
		{`{"type":"gift","player":"` + aPlayer + `","block":1}`, FailMissingField, `"count"`},
		{`{"type":"gift","player":"` + aPlayer + `","block":1,"count":0}`, FailBadValue, "1 to 64"},
		{`{"type":"gift","player":"` + aPlayer + `","block":1,"count":65}`, FailBadValue, "1 to 64"},
		{`{"type":"gift","player":"` + aPlayer + `","block":65536,"count":1}`, FailBadValue, `"block"`},
		{`{"type":"gift","player":"` + aPlayer + `","block":1,"count":1.5}`, FailBadValue, `"count"`},
		{`{"type":"view","view":0}`, FailBadValue, "1 to 12"},
		{`{"type":"view","view":13}`, FailBadValue, "1 to 12"},
		{`{"type":"join","version":3,"name":"a b","view":6,"encoding":"json"}`, FailWrongVersion, "version 2"},
		{`{"type":"join","version":0,"name":"a b","view":6,"encoding":"json"}`, FailWrongVersion, "version 2"},
		{`{"type":"join","version":1,"name":"a","view":6,"encoding":"cbor"}`, FailWrongVersion, "version 2"},
		{`{"type":"join","version":1,"name":"a b","view":6,"encoding":"json"}`, FailBadName, "a b"},
		{`{"type":"join","version":1,"name":"a\u0000","view":6,"encoding":"json"}`, FailBadName, "name"},
		{`{"type":"join","version":1,"name":"abcdefghijklmnopqrstu","view":6,"encoding":"json"}`, FailBadName, "21"},
		{`{"type":"join","version":1,"name":"","view":6,"encoding":"json"}`, FailBadName, "name"},
		{`{"type":"join","version":1,"name":"a","view":6,"encoding":"xml"}`, FailBadValue, `"encoding"`},
		{`{"type":"join","version":1,"name":"a","view":6,"encoding":"json","key":"00"}`, FailBadKey, "32"},
		{`{"type":"prove","signature":"zz"}`, FailBadSignature, "64"},
	} {
		m, err := DecodeClient([]byte(c.in))
		if err == nil {
			t.Errorf("DecodeClient(%.80s) = %+v, want %s", c.in, m, c.code)
			continue
		}
		if code := codeOf(t, err); code != c.code || !strings.Contains(err.Error(), c.says) {
			t.Errorf("DecodeClient(%.80s): %v; want %s: …%s…", c.in, err, c.code, c.says)
		}
	}
}

var serverMessages = []struct {
	bytes string
	m     FromServer
}{
	{`{"type":"challenge","nonce":"9f","world":"4b"}`, Challenge{Nonce: "9f", World: "4b"}},
	{
		`{"type":"welcome","version":1,"world":"4b","world_name":"voxels","sections":4,"player":"6b","name":"ada","guest":true,"next_seq":1,"pose":{"x":0.5,"y":70,"z":0.5,"yaw":0,"pitch":0},"view":6,"reach":8,"tick_ms":50,"time_of_day":480.25,"day_ms":1200000,"gateway":"12D3","server_version":"0.1.0"}`,
		Welcome{Version: 1, World: "4b", WorldName: "voxels", Sections: 4, Player: "6b", Name: "ada", Guest: true, NextSeq: 1, Pose: motion.Pose{X: 0.5, Y: 70, Z: 0.5}, View: 6, Reach: 8, TickMS: 50, TimeOfDay: 480.25, DayMS: 1200000, Gateway: "12D3", ServerName: "0.1.0"},
	},
	{`{"type":"chunk","chunk":[0,-1],"data":"AQI="}`, ChunkData{Chunk: grid.ChunkPos{X: 0, Z: -1}, Data: []byte{1, 2}}},
	{`{"type":"chunk_gone","chunk":[0,-1]}`, ChunkGone{Chunk: grid.ChunkPos{X: 0, Z: -1}}},
	{`{"type":"frame","tick":9,"chunks":[{"chunk":[0,0]},{"chunk":[1,0],"leave":["cd"]}]}`, Frame{Tick: 9, Chunks: []json.RawMessage{[]byte(`{"chunk":[0,0]}`), []byte(`{"chunk":[1,0],"leave":["cd"]}`)}}},
	{`{"type":"ack","seq":1,"block":0}`, Ack{Seq: 1}},
	{`{"type":"ack","seq":2,"block":15,"error":"unbreakable"}`, Ack{Seq: 2, Block: 15, Error: RefusedUnbreakable}},
	{`{"type":"hit","player":"6b","name":"ada","to":"ef","to_name":"eve"}`, Struck{Player: "6b", Name: "ada", To: "ef", ToName: "eve"}},
	{
		`{"type":"gift","player":"6b","name":"ada","to":"ef","to_name":"eve","block":16,"count":3}`,
		Given{Player: "6b", Name: "ada", To: "ef", ToName: "eve", Block: 16, Count: 3},
	},
	{`{"type":"denied","deed":"hit","player":"ef","error":"out_of_reach"}`, Denied{Interaction: "hit", Player: "ef", Error: DeniedOutOfReach}},
	{`{"type":"correction","x":12.5,"y":64,"z":-3.25,"yaw":1.5,"pitch":-0.25,"reason":"too_fast"}`, Correction{Pose: motion.Pose{X: 12.5, Y: 64, Z: -3.25, Yaw: 1.5, Pitch: -0.25}, Reason: "too_fast"}},
	{`{"type":"pong","nonce":7,"time_of_day":481.5}`, Pong{Nonce: 7, TimeOfDay: 481.5}},
	{`{"type":"notice","text":"land is loading"}`, Notice{Text: "land is loading"}},
	{`{"type":"failure","code":"full","message":"no room"}`, Failure{Code: FailFull, Message: "no room"}},
	{`{"type":"reconnect","homes":[],"reason":"no other node"}`, Reconnect{Gateways: []Gateway{}, Reason: "no other node"}},
	{
		`{"type":"reconnect","homes":[{"url":"wss://b.example/ws","game":"b.example:4002"},{"url":"ws://192.0.2.7:8080/ws","game":"192.0.2.7:4002"}],"reason":"upgrade"}`,
		Reconnect{Gateways: []Gateway{{URL: "wss://b.example/ws", Game: "b.example:4002"}, {URL: "ws://192.0.2.7:8080/ws", Game: "192.0.2.7:4002"}}, Reason: "upgrade"},
	},
}

func TestServerMessages(t *testing.T) {
	for _, c := range serverMessages {
		got, err := EncodeServer(c.m)
		if err != nil || string(got) != c.bytes {
			t.Errorf("EncodeServer(%+v) = %s, %v; want %s", c.m, got, err, c.bytes)
		}
		// Whitespace, another order and new fields change nothing.
		later := `{"new_field":[1], "type" ` + strings.TrimPrefix(c.bytes, `{"type"`)
		for _, in := range []string{c.bytes, later} {
			m, err := DecodeServer([]byte(in))
			if err != nil || !reflect.DeepEqual(m, c.m) {
				t.Errorf("DecodeServer(%s) = %+v, %v; want %+v", in, m, err, c.m)
			}
		}
	}
	for in, code := range map[string]string{
		``:                        FailBadJSON,
		`{"type":"ack","seq":-1}`: FailBadJSON,
		`{"type":"later"}`:        FailUnknownMessage,
		`{"type":"chunk","chunk":[99999999,0],"data":""}`: FailBadJSON,
	} {
		_, err := DecodeServer([]byte(in))
		if got := codeOf(t, err); got != code {
			t.Errorf("DecodeServer(%s): code %q, want %q", in, got, code)
		}
	}
}

func TestFrameIsItsPieces(t *testing.T) {
	here, there := grid.ChunkPos{X: 1, Z: -2}, grid.ChunkPos{X: 0, Z: 7}
	pieces := []Piece{
		{
			Chunk: here, Enter: []Avatar{{Player: "ab", Name: "bob", Guest: true, Pose: motion.Pose{X: 1.5}}}, Leave: []string{"cd"},
			Moves: []AvatarMove{{Player: "ef", Pose: motion.Pose{Y: 64, Yaw: 3}}}, Blocks: []BlockChange{{X: 4, Y: 63, Z: 7, Block: 2}},
			Says: []Said{{Player: "ef", Name: "eve", Text: "<hi>"}},
		},
		{Chunk: there, Leave: []string{"ef"}},
	}
	frame := Frame{Tick: 3}
	for _, p := range pieces {
		raw, err := EncodePiece(p)
		if err != nil {
			t.Fatal(err)
		}
		frame.Chunks = append(frame.Chunks, raw)
	}
	const second = `{"chunk":[0,7],"leave":["ef"]}`
	if string(frame.Chunks[1]) != second {
		t.Errorf("piece is %s, want %s", frame.Chunks[1], second)
	}
	m, err := DecodeServer(AppendFrame([]byte(nil), frame.Tick, frame.Chunks...))
	if err != nil || !reflect.DeepEqual(m, frame) {
		t.Fatalf("frame came back as %+v, %v", m, err)
	}
	for i, raw := range m.(Frame).Chunks {
		p, err := DecodePiece(raw)
		if err != nil || !reflect.DeepEqual(p, pieces[i]) {
			t.Errorf("piece %d came back as %+v, %v", i, p, err)
		}
	}
	if got := string(AppendFrame(nil, 1)); got != `{"type":"frame","tick":1,"chunks":[]}` {
		t.Errorf("empty frame is %s", got)
	}
}

func TestPackChunk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOf(rapid.Byte()).Draw(t, "encoded")
		packed, err := PackChunk(b)
		if err != nil {
			t.Fatal(err)
		}
		got, err := UnpackChunk(packed)
		if err != nil || !bytes.Equal(got, b) {
			t.Fatalf("came back as %x, %v", got, err)
		}
	})
	// A decompression bomb is refused at its limit.
	packed, err := PackChunk(make([]byte, MaxChunkBytes+1))
	if err != nil {
		t.Fatal(err)
	}
	if len(packed) > 64<<10 {
		t.Fatalf("the bomb has %d bytes", len(packed))
	}
	_, err = UnpackChunk(packed)
	if code := codeOf(t, err); code != FailTooLong {
		t.Errorf("bomb: %v", err)
	}
	_, err = UnpackChunk([]byte{0xff})
	if code := codeOf(t, err); code != FailBadValue {
		t.Errorf("no deflate: %v", err)
	}
}

func TestPackPiece(t *testing.T) {
	for _, size := range []int{0, 1, MaxPartBytes} {
		packed, err := PackPart(make([]byte, size))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := UnpackPart(packed); err != nil || len(got) != size {
			t.Errorf("%d bytes came back as %d, %v", size, len(got), err)
		}
	}
	over := make([]byte, MaxPartBytes+1)
	if _, err := PackPart(over); err == nil {
		t.Error("too large a piece is packed")
	}
	bomb, err := NewDeflater().Deflate(over)
	if err != nil {
		t.Fatal(err)
	}
	_, err = UnpackPart(bomb)
	if code := codeOf(t, err); code != FailTooLong {
		t.Errorf("bomb: %v", err)
	}
}

func BenchmarkDecodeMove(b *testing.B) {
	line := []byte(`{"type":"move","x":1234.5678901,"y":64.25,"z":-3.25,"yaw":1.5707964,"pitch":-0.2}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeClient(line); err != nil {
			b.Fatal(err)
		}
	}
}
