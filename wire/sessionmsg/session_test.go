package sessionmsg

import (
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/notice"
	"github.com/voxelpopuli/voxeld/wire/wiretest"
)

const (
	aKey       = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
	aSignature = "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
)

// aSign is the id of a sign.
var aSign = strconv.Itoa(int(chunk.Sign))

const aPlayer = "6b86b273ff34fce19d6b804eff5a3f57"

// clientMessages has one message of each type, with the bytes that docs/protocol.md promises.
var clientMessages = []struct {
	bytes string
	m     FromClient
}{
	{`{"type":"join","version":1,"name":"ada","view":6,"encoding":"json"}`, Join{Version: 1, Name: "ada", View: 6, Encoding: "json"}},
	{`{"type":"join","version":2,"name":"ada","view":6,"encoding":"cbor"}`, Join{Version: 2, Name: "ada", View: 6, Encoding: "cbor"}},
	{`{"type":"join","version":1,"name":"ada","view":12,"encoding":"json","key":"` + aKey + `"}`, Join{Version: 1, Name: "ada", View: 12, Encoding: "json", Key: aKey}},
	{`{"type":"command","text":"help"}`, Command{Text: "help"}},
	{`{"type":"command","text":"ban eve","seq":5,"signature":"` + aSignature + `"}`, Command{Text: "ban eve", Seq: 5, Signature: aSignature}},
	{`{"type":"prove","signature":"` + aSignature + `"}`, Prove{Signature: aSignature}},
	{`{"type":"move","x":12.5,"y":64,"z":-3.25,"yaw":1.57,"pitch":-0.2}`, Move{motion.Pose{X: 12.5, Y: 64, Z: -3.25, Yaw: 1.57, Pitch: -0.2}}},
	{`{"type":"edit","seq":1,"x":12,"y":63,"z":-4,"block":0}`, Edit{Seq: 1, X: 12, Y: 63, Z: -4}},
	{
		`{"type":"edit","seq":1,"x":12,"y":63,"z":-4,"block":` + aSign + `,"text":"to the\nharbour"}`,
		Edit{Seq: 1, X: 12, Y: 63, Z: -4, Block: uint16(chunk.Sign), Text: "to the\nharbour"},
	},
	{`{"type":"bulk","seq":1,"x":-1,"z":2,"runs":"8008010001","signature":"` + aSignature + `"}`, Bulk{Seq: 1, X: -1, Z: 2, Runs: "8008010001", Signature: aSignature}},
	{`{"type":"chat","text":"hello 🌍"}`, Chat{Text: "hello 🌍"}},
	{`{"type":"nearby"}`, NearbyRequest{}},
	{`{"type":"people"}`, PeopleRequest{}},
	{`{"type":"map","x":3,"z":-2}`, MapRequest{X: 3, Z: -2}},
	{`{"type":"chunk","x":0,"z":-1}`, ChunkRequest{Z: -1}},
	{`{"type":"hit","player":"` + aPlayer + `"}`, Hit{Player: aPlayer}},
	{`{"type":"gift","player":"` + aPlayer + `","block":16,"count":3}`, Gift{Player: aPlayer, Block: 16, Count: 3}},
	{`{"type":"view","view":8}`, View{View: 8}},
	{`{"type":"stance","held":65535,"sneaks":true}`, Stance{Held: 65535, Sneaks: true}},
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
	for _, c := range []struct{ in, code, chat string }{
		{``, wire.FailBadJSON, "not a JSON object"},
		{`[]`, wire.FailBadJSON, "not a JSON object"},
		{`{"type":"ping","nonce":1`, wire.FailBadJSON, "too early"},
		{`{"type":"ping","nonce":1}{}`, wire.FailBadJSON, "more than one"},
		{`{"type":"ping","nonce":1,}`, wire.FailBadJSON, "byte"},
		{`{"type":"ping","nonce":01}`, wire.FailBadJSON, "byte"},
		{`{"type":"ping","nonce":NaN}`, wire.FailBadJSON, "byte"},
		{`{"type":"ping","nonce":1,"nonce":1}`, wire.FailBadJSON, `"nonce" occurs twice`},
		{`{"type":"ping","nonce":1,"\u006eonce":1}`, wire.FailBadJSON, `"nonce" occurs twice`},
		{"{\"type\":\"chat\",\"text\":\"\xff\"}", wire.FailBadJSON, "UTF-8"},
		{`{"type":"chat","text":"\ud83c"}`, wire.FailBadJSON, "surrogate"},
		{"{\"type\":\"chat\",\"text\":\"a\nb\"}", wire.FailBadJSON, "byte"},
		{`{"type":"chat","text":` + strings.Repeat("[", 100000) + `}`, wire.FailTooLong, "65536"},
		{`{"type":"chat","text":` + strings.Repeat("[", 1000) + `}`, wire.FailBadJSON, "byte"},
		{`{"nonce":1}`, wire.FailMissingField, `"type"`},
		{`{"type":7,"nonce":1}`, wire.FailBadType, `"type"`},
		{`{"type":"fly"}`, wire.FailUnknownMessage, `"fly"`},
		{`{"type":"Ping","nonce":1}`, wire.FailUnknownMessage, `"Ping"`},
		{`{"type":"ping"}`, wire.FailMissingField, `"nonce"`},
		{`{"type":"ping","Nonce":1}`, wire.FailMissingField, `"nonce"`},
		{`{"type":"ping","nonce":1,"extra":[1,{"a":2}]}`, wire.FailUnknownField, `"extra"`},
		{`{"type":"ping","nonce":"1"}`, wire.FailBadType, `"nonce"`},
		{`{"type":"ping","nonce":null}`, wire.FailBadType, `"nonce"`},
		{`{"type":"ping","nonce":-1}`, wire.FailBadValue, `"nonce"`},
		{`{"type":"ping","nonce":1.5}`, wire.FailBadValue, `"nonce"`},
		{`{"type":"ping","nonce":1e999}`, wire.FailBadValue, `"nonce"`},
		{`{"type":"move","x":1,"y":2,"z":3,"yaw":0}`, wire.FailMissingField, `"pitch"`},
		{`{"type":"move","x":1e999,"y":2,"z":3,"yaw":0,"pitch":0}`, wire.FailBadValue, `"x" is too large`},
		{`{"type":"move","x":1,"y":2,"z":3,"yaw":1e39,"pitch":0}`, wire.FailBadValue, `"yaw" is too large`},
		{`{"type":"move","x":2147483648,"y":2,"z":3,"yaw":0,"pitch":0}`, wire.FailBadValue, "out of the world"},
		{`{"type":"move","x":1,"y":-65,"z":3,"yaw":0,"pitch":0}`, wire.FailBadValue, "out of the world"},
		{`{"type":"move","x":true,"y":2,"z":3,"yaw":0,"pitch":0}`, wire.FailBadType, `"x"`},
		{`{"type":"edit","seq":1,"x":2147483648,"y":0,"z":0,"block":0}`, wire.FailBadValue, `"x"`},
		{`{"type":"edit","seq":1,"x":0.5,"y":0,"z":0,"block":0}`, wire.FailBadValue, `"x"`},
		{`{"type":"edit","seq":1,"x":0,"y":0,"z":0,"block":65536}`, wire.FailBadValue, `"block"`},
		{`{"type":"edit","seq":1,"x":0,"y":0,"z":0,"block":` + aSign + `,"text":"` + strings.Repeat("x", wire.MaxSignText+1) + `"}`, wire.FailBadValue, `"text"`},
		{`{"type":"stance","held":65536,"sneaks":true}`, wire.FailBadValue, `"held"`},
		{`{"type":"stance","held":1,"sneaks":1}`, wire.FailBadType, `"sneaks"`},
		{`{"type":"stance","held":1}`, wire.FailMissingField, `"sneaks"`},
		{`{"type":"chat","text":""}`, wire.FailBadValue, "must not be blank"},
		{`{"type":"chat","text":" \u00a0 "}`, wire.FailBadValue, "must not be blank"},
		{`{"type":"chat","text":"a\u0007"}`, wire.FailBadValue, "U+0007"},
		{`{"type":"chat","text":"a\u202eb"}`, wire.FailBadValue, "U+202E"},
		{`{"type":"chat","text":"` + strings.Repeat("é", 129) + `"}`, wire.FailBadValue, "256"},
		{`{"type":"hit"}`, wire.FailMissingField, `"player"`},
		{`{"type":"hit","player":7}`, wire.FailBadType, `"player"`},
		{`{"type":"hit","player":"6b86"}`, wire.FailBadValue, "16 bytes"},
		{`{"type":"hit","player":"` + strings.ToUpper(aPlayer) + `"}`, wire.FailBadValue, "16 bytes"},
		{`{"type":"hit","player":"` + aPlayer + `0"}`, wire.FailBadValue, `"player"`},
		{`{"type":"hit","player":"` + aPlayer + `","block":1}`, wire.FailUnknownField, `"block"`},
		{`{"type":"gift","player":"` + aPlayer + `","block":1}`, wire.FailMissingField, `"count"`},
		{`{"type":"gift","player":"` + aPlayer + `","block":1,"count":0}`, wire.FailBadValue, "1 to 64"},
		{`{"type":"gift","player":"` + aPlayer + `","block":1,"count":65}`, wire.FailBadValue, "1 to 64"},
		{`{"type":"gift","player":"` + aPlayer + `","block":65536,"count":1}`, wire.FailBadValue, `"block"`},
		{`{"type":"gift","player":"` + aPlayer + `","block":1,"count":1.5}`, wire.FailBadValue, `"count"`},
		{`{"type":"view","view":0}`, wire.FailBadValue, "1 to 12"},
		{`{"type":"view","view":13}`, wire.FailBadValue, "1 to 12"},
		{`{"type":"join","version":3,"name":"a b","view":6,"encoding":"json"}`, wire.FailWrongVersion, "version 2"},
		{`{"type":"join","version":0,"name":"a b","view":6,"encoding":"json"}`, wire.FailWrongVersion, "version 2"},
		{`{"type":"join","version":1,"name":"a","view":6,"encoding":"cbor"}`, wire.FailWrongVersion, "version 2"},
		{`{"type":"join","version":1,"name":"a b","view":6,"encoding":"json"}`, wire.FailBadName, "a b"},
		{`{"type":"join","version":1,"name":"a\u0000","view":6,"encoding":"json"}`, wire.FailBadName, "name"},
		{`{"type":"join","version":1,"name":"abcdefghijklmnopqrstu","view":6,"encoding":"json"}`, wire.FailBadName, "21"},
		{`{"type":"join","version":1,"name":"","view":6,"encoding":"json"}`, wire.FailBadName, "name"},
		{`{"type":"join","version":1,"name":"a","view":6,"encoding":"xml"}`, wire.FailBadValue, `"encoding"`},
		{`{"type":"join","version":1,"name":"a","view":6,"encoding":"json","key":"00"}`, wire.FailBadKey, "32"},
		{`{"type":"prove","signature":"zz"}`, wire.FailBadSignature, "64"},
	} {
		m, err := DecodeClient([]byte(c.in))
		if err == nil {
			t.Errorf("DecodeClient(%.80s) = %+v, want %s", c.in, m, c.code)
			continue
		}
		if code := wiretest.CodeOf(t, err); code != c.code || !strings.Contains(err.Error(), c.chat) {
			t.Errorf("DecodeClient(%.80s): %v; want %s: …%s…", c.in, err, c.code, c.chat)
		}
	}
}

var serverMessages = []struct {
	bytes string
	m     FromServer
}{
	{`{"type":"challenge","nonce":"9f","world":"4b"}`, Challenge{Nonce: "9f", World: "4b"}},
	{
		`{"type":"standing","role":"moderator","name":"ada","commands":[{"name":"kick","usage":"NAME","help":"disconnect a player"}]}`,
		Permissions{Role: "moderator", Name: "ada", Commands: []CommandHelp{{Name: "kick", Usage: "NAME", Help: "disconnect a player"}}},
	},
	{
		`{"type":"claims","claims":[{"owner":"ada","name":"harbour","min":[10,0,-20],"max":[30,1023,40],"enter":true}]}`,
		Claims{Claims: []Claim{{Owner: "ada", Name: "harbour", Min: grid.Pos{X: 10, Z: -20}, Max: grid.Pos{X: 30, Y: 1023, Z: 40}, Enter: true}}},
	},
	{
		`{"type":"welcome","version":1,"world":"4b","world_name":"voxels","sections":4,"player":"6b","name":"ada","guest":true,"next_seq":1,"pose":{"x":0.5,"y":70,"z":0.5,"yaw":0,"pitch":0},"view":6,"reach":8,"tick_ms":50,"time_of_day":480.25,"day_ms":1200000,"gateway":"12D3","server_version":"0.1.0","textures":""}`,
		Welcome{Version: 1, World: "4b", WorldName: "voxels", Sections: 4, Player: "6b", Name: "ada", Guest: true, NextSeq: 1, Pose: motion.Pose{X: 0.5, Y: 70, Z: 0.5}, View: 6, Reach: 8, TickMS: 50, TimeOfDay: 480.25, DayMS: 1200000, Gateway: "12D3", ServerName: "0.1.0"},
	},
	{`{"type":"chunk","chunk":[0,-1],"data":"AQI="}`, ChunkData{Chunk: grid.ChunkPos{X: 0, Z: -1}, Data: []byte{1, 2}}},
	{`{"type":"chunk_hash","chunk":[0,-1],"hash":"/v4BAA=="}`, ChunkHash{Chunk: grid.ChunkPos{X: 0, Z: -1}, Hash: []byte{0xfe, 0xfe, 1, 0}}},
	{`{"type":"chunk_gone","chunk":[0,-1]}`, ChunkGone{Chunk: grid.ChunkPos{X: 0, Z: -1}}},
	{`{"type":"frame","tick":9,"chunks":[{"chunk":[0,0]},{"chunk":[1,0],"leave":["cd"]}]}`, Frame{Tick: 9, Chunks: []json.RawMessage{[]byte(`{"chunk":[0,0]}`), []byte(`{"chunk":[1,0],"leave":["cd"]}`)}}},
	{`{"type":"ack","seq":1,"block":0}`, Ack{Seq: 1}},
	{`{"type":"ack","seq":2,"block":15,"error":"unbreakable"}`, Ack{Seq: 2, Block: 15, Error: wire.RefusedUnbreakable}},
	{`{"type":"hit","player":"6b","name":"ada","to":"ef","to_name":"eve"}`, Struck{Player: "6b", Name: "ada", To: "ef", ToName: "eve"}},
	{
		`{"type":"gift","player":"6b","name":"ada","to":"ef","to_name":"eve","block":16,"count":3}`,
		Given{Player: "6b", Name: "ada", To: "ef", ToName: "eve", Block: 16, Count: 3},
	},
	{`{"type":"denied","deed":"hit","player":"ef","error":"out_of_reach"}`, Denied{Interaction: "hit", Player: "ef", Error: DeniedOutOfReach}},
	{`{"type":"correction","x":12.5,"y":64,"z":-3.25,"yaw":1.5,"pitch":-0.25,"reason":"too_fast"}`, Correction{Pose: motion.Pose{X: 12.5, Y: 64, Z: -3.25, Yaw: 1.5, Pitch: -0.25}, Reason: "too_fast"}},
	{`{"type":"pong","nonce":7,"time_of_day":481.5}`, Pong{Nonce: 7, TimeOfDay: 481.5}},
	{
		`{"type":"nearby","players":[{"player":"` + aPlayer + `","name":"ada","x":120,"y":31,"z":-8}],"complete":true}`,
		Nearby{Players: []NearbyPlayer{{Player: aPlayer, Name: "ada", X: 120, Y: 31, Z: -8}}, Complete: true},
	},
	{`{"type":"people","names":["ada","bob"],"players":2}`, People{Names: []string{"ada", "bob"}, Players: 2}},
	{`{"type":"map","x":3,"z":-2,"points":"HwAFAA==","complete":false}`, MapTile{X: 3, Z: -2, Points: []byte{31, 0, 5, 0}}},
	{
		`{"type":"rollback","command":"revert eve 5 0,1,2 3,4,5","of":"eve","blocks":7,"min":[0,1,2],"max":[3,4,5],"columns":[{"x":1,"z":-1,"bits":"AQ=="}]}`,
		RollbackPreview{Command: "revert eve 5 0,1,2 3,4,5", Of: "eve", Blocks: 7, Min: grid.Pos{Y: 1, Z: 2}, Max: grid.Pos{X: 3, Y: 4, Z: 5}, Columns: []PreviewChunk{{X: 1, Z: -1, Bits: []byte{1}}}},
	},
	{
		`{"type":"history","min":[0,1,2],"max":[3,4,5],"until":1767225600000,"skip":1,"names":["ada"],"changes":[1767225599900,0,3,1,-2,0,19],"more":true}`,
		History{Min: grid.Pos{Y: 1, Z: 2}, Max: grid.Pos{X: 3, Y: 4, Z: 5}, Until: 1767225600000, Skip: 1, Names: []string{"ada"}, Changes: []int64{1767225599900, 0, 3, 1, -2, 0, 19}, More: true},
	},
	{
		`{"type":"signs","chunk":[0,-1],"signs":[{"x":12,"y":63,"z":-4,"text":"to the\nharbour"}]}`,
		SignsOf(grid.ChunkPos{Z: -1}, []nodemsg.SignAt{{At: chunk.IndexOf(12, 63, 28), Text: "to the\nharbour"}}),
	},
	{`{"type":"notice","text":"land is loading"}`, Notice{Text: "land is loading"}},
	{`{"type":"notice","text":"ada is banned","code":"banned","args":{"name":"ada"},"parts":{"by":{"text":"an operator","code":"an_operator"}}}`, Notice{
		Text: "ada is banned", Code: "banned", Args: map[string]string{"name": "ada"}, Parts: map[string]notice.Notice{"by": {Text: "an operator", Code: "an_operator"}},
	}},
	{`{"type":"failure","code":"full","message":"no room"}`, Failure{Code: wire.FailFull, Message: "no room"}},
	{`{"type":"reconnect","homes":[],"reason":"no other node"}`, Reconnect{Gateways: []wire.Gateway{}, Reason: "no other node"}},
	{
		`{"type":"reconnect","homes":[{"url":"wss://b.example/ws","game":"b.example:4002"},{"url":"ws://192.0.2.7:8080/ws","game":"192.0.2.7:4002"}],"reason":"upgrade"}`,
		Reconnect{Gateways: []wire.Gateway{{URL: "wss://b.example/ws", Game: "b.example:4002"}, {URL: "ws://192.0.2.7:8080/ws", Game: "192.0.2.7:4002"}}, Reason: "upgrade"},
	},
}

func TestFailureOf(t *testing.T) {
	m := FailureOf(wire.Stop(wire.FailNameTaken, notice.New("taken", "the name {name} is taken", "ada")))
	if m.Code != wire.FailNameTaken || m.Notice == nil || m.Notice.Text != "The name ada is taken." || m.Notice.Code != "taken" {
		t.Errorf("%+v, %+v", m, m.Notice)
	}
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
		``:                        wire.FailBadJSON,
		`{"type":"ack","seq":-1}`: wire.FailBadJSON,
		`{"type":"later"}`:        wire.FailUnknownMessage,
		`{"type":"chunk","chunk":[99999999,0],"data":""}`: wire.FailBadJSON,
	} {
		_, err := DecodeServer([]byte(in))
		if got := wiretest.CodeOf(t, err); got != code {
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
			Chat: []ChatLine{{Player: "ef", Name: "eve", Text: "<hi>"}},
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

func BenchmarkDecodeMove(b *testing.B) {
	line := []byte(`{"type":"move","x":1234.5678901,"y":64.25,"z":-3.25,"yaw":1.5707964,"pitch":-0.2}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeClient(line); err != nil {
			b.Fatal(err)
		}
	}
}
