package legacymsg

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
	"github.com/voxelpopuli/voxeld/wire/wiretest"
)

// The exact bytes of the handshakes of the released client (with its spaces) and of the dissertation.
func TestHandshakes(t *testing.T) {
	at := grid.ChunkPos{X: -1, Z: 12}
	for _, c := range []struct {
		in   string
		want Handshake
	}{
		{`{"type": "connect", "chunk": [-1,12], "player":"Abrasam"}`, Handshake{Purpose: PurposeConnect, Chunk: at, Player: "Abrasam"}},
		{`{"type": "dht"}`, Handshake{Purpose: PurposeDHT}},
		{`{"type":"connect","chunk":[-1.0,12.0],"player":"a"}`, Handshake{Purpose: PurposeConnect, Chunk: at, Player: "a"}},
		{`{"type":"generate","chunk":[-1, 12]}`, Handshake{Purpose: PurposeGenerate, Chunk: at}},
		{`{"type":"ping"}`, Handshake{Purpose: PurposePing}},
		// VoxelPopuli's server accepts any name and ignores unknown fields.
		{`{"type":"connect","chunk":[-1,12]}`, Handshake{Purpose: PurposeConnect, Chunk: at}},
		{`{"type":"connect","chunk":[-1,12],"player":"a b","x":1}`, Handshake{Purpose: PurposeConnect, Chunk: at, Player: "a b"}},
		{`{"type":"ping","player":"}{\"\\"}`, Handshake{Purpose: PurposePing}},
		{`{"type":"join","version":1,"name":"ada","view":6,"encoding":"json"}`, Handshake{Purpose: PurposeJoin, Join: sessionmsg.Join{Version: 1, Name: "ada", View: 6, Encoding: "json"}}},
	} {
		// The bytes after the object must not be consumed, whether its newline arrives with it, later or never.
		for _, end := range []string{"", "\n", "\r\n"} {
			const next = "\x00[0,0]"
			for name, stream := range map[string]io.Reader{
				"in one piece":  strings.NewReader(c.in + end + next),
				"byte for byte": iotest.OneByteReader(strings.NewReader(c.in + end + next)),
			} {
				r := bufio.NewReader(stream)
				h, err := ReadHandshake(r)
				if err != nil || h != c.want {
					t.Errorf("ReadHandshake(%q) %s = %+v, %v; want %+v", c.in+end, name, h, err, c.want)
					continue
				}
				q, err := ReadQuery(r)
				if err != nil || q != (WhereIsChunk{}) {
					t.Errorf("after %q %s: %+v, %v", c.in+end, name, q, err)
				}
			}
		}
		// The client sends no newline and waits, so nothing more may be read. A read that would block is EOF here.
		r := bufio.NewReader(strings.NewReader(c.in))
		if _, err := ReadHandshake(r); err != nil {
			t.Errorf("ReadHandshake(%q) needs more: %v", c.in, err)
		}
	}
}

// TestHandshakeDoesNotWait has a peer that sends nothing after the closing brace.
func TestHandshakeDoesNotWait(t *testing.T) {
	server, client := io.Pipe()
	defer server.Close()
	done := make(chan error, 1)
	go func() {
		_, err := client.Write([]byte(`{"type":"dht"}`))
		done <- err
	}()
	h, err := ReadHandshake(bufio.NewReader(server))
	if err != nil || h.Purpose != PurposeDHT {
		t.Errorf("got %+v, %v", h, err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestReadHandshakeRefuses(t *testing.T) {
	for _, c := range []struct{ in, code string }{
		{"GET / HTTP/1.1\r\n", wire.FailBadJSON},
		{`[1]`, wire.FailBadJSON},
		{`{]`, wire.FailBadJSON},
		{`{"type":"ping","type":"dht"}`, wire.FailBadJSON},
		{`{"type":"`, ""},
		{`{"type":"ping"` + strings.Repeat(" ", 1<<20), wire.FailTooLong},
		{strings.Repeat(" ", 1<<20), wire.FailTooLong},
		{`{}`, wire.FailMissingField},
		{`{"type":"CONNECT"}`, wire.FailUnknownMessage},
		{`{"type":"connect","player":"a"}`, wire.FailMissingField},
		{`{"type":"connect","chunk":[0],"player":"a"}`, wire.FailBadValue},
		{`{"type":"connect","chunk":[0,0,0],"player":"a"}`, wire.FailBadValue},
		{`{"type":"connect","chunk":[0.5,0],"player":"a"}`, wire.FailBadValue},
		{`{"type":"connect","chunk":[67108864,0],"player":"a"}`, wire.FailBadValue},
		{`{"type":"connect","chunk":[1e999,0],"player":"a"}`, wire.FailBadValue},
		{`{"type":"connect","chunk":["0",0],"player":"a"}`, wire.FailBadType},
		{`{"type":"connect","chunk":"0,0","player":"a"}`, wire.FailBadType},
		{`{"type":"generate","chunk":null}`, wire.FailBadType},
		{`{"type":"generate","chunk":"[1,2]"}`, wire.FailBadType},
		{`{"type":"generate","chunk":"[1,2]junk"}`, wire.FailBadType},
	} {
		h, err := ReadHandshake(bufio.NewReader(strings.NewReader(c.in)))
		if c.code == "" {
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("ReadHandshake(%.60q) = %+v, %v; want an unexpected EOF", c.in, h, err)
			}
			continue
		}
		if err == nil || wiretest.CodeOf(t, err) != c.code {
			t.Errorf("ReadHandshake(%.60q) = %+v, %v; want %s", c.in, h, err, c.code)
		}
	}
	// A refused join is reported as a join, so that it can be answered in its own protocol.
	h, err := ReadHandshake(bufio.NewReader(strings.NewReader(`{"type":"join","version":9}`)))
	if wiretest.CodeOf(t, err) != wire.FailWrongVersion || h.Purpose != PurposeJoin {
		t.Errorf("a join of version 9: %+v, %v", h, err)
	}
	if _, err := ReadHandshake(bufio.NewReader(strings.NewReader(""))); err != io.EOF {
		t.Errorf("a silent connection: %v, want io.EOF", err)
	}
}

func TestAppendHandshake(t *testing.T) {
	at := grid.ChunkPos{X: -1, Z: 12}
	for want, h := range map[string]Handshake{
		`{"type":"connect","chunk":[-1,12],"player":"a"}`: {Purpose: PurposeConnect, Chunk: at, Player: "a"},
		`{"type":"generate","chunk":[-1,12]}`:             {Purpose: PurposeGenerate, Chunk: at},
		`{"type":"dht"}`:                                  {Purpose: PurposeDHT},
		`{"type":"ping"}`:                                 {Purpose: PurposePing},
		`{"type":"join","version":1,"name":"ada","view":6,"encoding":"json"}`: {Purpose: PurposeJoin, Join: sessionmsg.Join{Version: 1, Name: "ada", View: 6, Encoding: "json"}},
	} {
		if got, err := AppendHandshake(nil, h); err != nil || string(got) != want {
			t.Errorf("AppendHandshake(%+v) = %s, %v; want %s", h, got, err, want)
		}
	}
	for _, h := range []Handshake{{Purpose: PurposeConnect, Player: `a"`}, {Purpose: "fly"}} {
		if got, err := AppendHandshake(nil, h); err == nil {
			t.Errorf("AppendHandshake(%+v) = %s", h, got)
		}
	}
}

// packets has one packet of each type, with its exact bytes.
var packets = []struct {
	bytes string
	p     Packet
}{
	{`{"type":1,"args":[3,-4],"player":"ada"}` + "\n", PlayerRegister{Player: "ada", Chunk: grid.ChunkPos{X: 3, Z: -4}}},
	{`{"type":2,"args":[3,-4],"player":"ada"}` + "\n", PlayerDeregister{Player: "ada", Chunk: grid.ChunkPos{X: 3, Z: -4}}},
	{`{"type":3,"args":[1.5,20,-3.25,359.5],"player":"ada"}` + "\n", PlayerMove{Player: "ada", X: 1.5, Y: 20, Z: -3.25, Yaw: 359.5, HasYaw: true}},
	{`{"type":6,"args":[754.55],"player":""}` + "\n", TimeOfDay{Minutes: 754.55}},
	{`{"type":7,"args":[-1,31,40,2],"player":"ada"}` + "\n", BlockWrite{Player: "ada", Pos: grid.Pos{X: -1, Y: 31, Z: 40}, Block: 2}},
}

func TestPackets(t *testing.T) {
	for _, c := range packets {
		got, err := AppendPacket([]byte("x"), c.p)
		if err != nil || string(got) != "x"+c.bytes {
			t.Errorf("AppendPacket(%+v) = %q, %v; want %q", c.p, got, err, c.bytes)
		}
		p, err := DecodePacket([]byte(c.bytes))
		if err != nil || p != c.p {
			t.Errorf("DecodePacket(%q) = %+v, %v; want %+v", c.bytes, p, err, c.p)
		}
	}
	for _, p := range []Packet{nil, PlayerMove{X: math.NaN()}, TimeOfDay{Minutes: math.Inf(1)}, PlayerRegister{Player: `"`}} {
		if got, err := AppendPacket(nil, p); err == nil || len(got) != 0 {
			t.Errorf("AppendPacket(%+v) = %q, %v", p, got, err)
		}
	}
}

// Clients send malformed packets. VoxelPopuli's server accepts them, and so does this decoder.
func TestDecodeClientPacket(t *testing.T) {
	for in, want := range map[string]Packet{
		// Unity's JsonUtility prints floats like this.
		`{"type":1,"args":[0.0,-1.0],"player":"Abrasam"}`:          PlayerRegister{Player: "Abrasam"},
		`{"type":7,"args":[-0.0,1e1,33.0,0.0],"player":"Abrasam"}`: BlockWrite{Player: "Abrasam", Pos: grid.Pos{Y: 10, Z: 33}},
		`{"player":"a","args":[1,2,3],"type":3.0}`:                 PlayerMove{Player: "a", X: 1, Y: 2, Z: 3},
		`{"type":3,"args":[ 1 , 2 , 3 , 4 ],"player":""}`:          PlayerMove{X: 1, Y: 2, Z: 3, Yaw: 4, HasYaw: true},
		`{"type":7,"args":[0,40,0,3]}`:                             BlockWrite{Pos: grid.Pos{Y: 40}, Block: 3},
		// The arguments of registers are ignored: in the dissertation's text they are the player's position.
		`{"type":1,"args":[1.5,20,-3.25],"player":"a b\u0007"}`: PlayerRegister{Player: "a b\a"},
		`{"type":1,"args":[],"player":"a"}`:                     PlayerRegister{Player: "a"},
		`{"type":1,"player":"a"}`:                               PlayerRegister{Player: "a"},
		`{"type":2,"args":{"x":1},"player":7}`:                  PlayerDeregister{},
		`{"type":2,"args":null}`:                                PlayerDeregister{},
		// Superfluous fields and arguments.
		`{"type":3,"args":[1,2,3],"player":"a","time":1}`:   PlayerMove{Player: "a", X: 1, Y: 2, Z: 3},
		`{"type":3,"args":[1,2,3,4,5],"player":"a"}`:        PlayerMove{Player: "a", X: 1, Y: 2, Z: 3, Yaw: 4, HasYaw: true},
		`{"type":3,"args":[1,2,3,"north"],"player":"a"}`:    PlayerMove{Player: "a", X: 1, Y: 2, Z: 3},
		`{"type":3,"args":[1,2,3,1e999],"player":"a"}`:      PlayerMove{Player: "a", X: 1, Y: 2, Z: 3},
		`{"type":7,"args":[-0.5,20.9,31.99,1.7]}`:           BlockWrite{Pos: grid.Pos{X: -1, Y: 20, Z: 31}, Block: 1},
		`{"type":7,"args":[0,0,0,1,9,9],"player":"\ud800"}`: BlockWrite{Block: 1},
		// Packets without effect.
		`{"type":3,"args":[1,2],"player":"a"}`:              nil,
		`{"type":3,"args":[1,null,3],"player":"a"}`:         nil,
		`{"type":3,"args":[[1,2,3]],"player":"a"}`:          nil,
		`{"type":3,"args":[1e999,2,3],"player":"a"}`:        nil,
		`{"type":3,"player":"a"}`:                           nil,
		`{"type":7,"args":[0,0,0],"player":"a"}`:            nil,
		`{"type":7,"args":[0,0,0,-1],"player":"a"}`:         nil,
		`{"type":7,"args":[0,0,0,65536],"player":"a"}`:      nil,
		`{"type":7,"args":[2147483648,0,0,1],"player":"a"}`: nil,
		`{"type":4,"args":[0],"player":"a"}`:                nil,
		`{"type":-1,"args":[],"player":"a"}`:                nil,
		`{"type":6,"args":[1],"player":""}`:                 nil,
		`{"type":5,"args":[0,0],"player":""}`:               nil,
	} {
		p, err := DecodeClientPacket([]byte(in))
		if err != nil || p != want {
			t.Errorf("DecodeClientPacket(%s) = %+v, %v; want %+v", in, p, err, want)
		}
	}
}

func TestDecodeClientPacketRefuses(t *testing.T) {
	long := `{"type":3,"args":[` + strings.Repeat("1,", 1<<16) + `1],"player":"a"}`
	for _, c := range []struct{ in, code string }{
		{``, wire.FailBadJSON},
		{`7`, wire.FailBadJSON},
		{`{"type":3,"args":[1,2,3],"args":[1,2,3],"player":"a"}`, wire.FailBadJSON},
		{"{\"type\":3,\"args\":[1,2,3],\"player\":\"\xc3\"}", wire.FailBadJSON},
		{`{"type":3,"args":[1,2,NaN],"player":"a"}`, wire.FailBadJSON},
		{`{"type":3,"args":[1,2,-Infinity],"player":"a"}`, wire.FailBadJSON},
		{long, wire.FailTooLong},
		{`{"args":[1,2,3],"player":"a"}`, wire.FailMissingField},
		{`{"type":"3","args":[1,2,3],"player":"a"}`, wire.FailBadType},
		{`{"type":3.5,"args":[1,2,3],"player":"a"}`, wire.FailBadValue},
	} {
		p, err := DecodeClientPacket([]byte(c.in))
		if err == nil || wiretest.CodeOf(t, err) != c.code {
			t.Errorf("DecodeClientPacket(%.80s) = %+v, %v; want %s", c.in, p, err, c.code)
		}
	}
}

// CHUNK_DATA is 2 + 32768 numbers, and block (x, y, z) stands at 2 + 1024·x + 32·y + z.
func TestChunkData(t *testing.T) {
	blocks := new(Slab)
	blocks[SlabIndex(1, 2, 3)] = 2
	blocks[SlabIndex(31, 31, 31)] = 3
	line := AppendChunkData(nil, grid.ChunkPos{X: -7, Z: 9}, blocks)

	const head, tail = `{"type":5,"args":[-7,9,0,`, `,3],"player":""}` + "\n"
	if s := string(line); !strings.HasPrefix(s, head) || !strings.HasSuffix(s, tail) || strings.ContainsAny(s, " ") {
		t.Errorf("CHUNK_DATA begins %q and ends %q", s[:30], s[len(s)-30:])
	}
	var packet struct {
		Type   int
		Args   []float64
		Player string
	}
	if err := json.Unmarshal(line, &packet); err != nil {
		t.Fatal(err)
	}
	if len(packet.Args) != 2+32768 || packet.Args[2+1024*1+32*2+3] != 2 || packet.Args[2+32767] != 3 {
		t.Errorf("CHUNK_DATA has %d numbers, %v at (1,2,3)", len(packet.Args), packet.Args[2+1024+64+3])
	}

	p, err := DecodePacket(line)
	if want := (ChunkContents{Chunk: grid.ChunkPos{X: -7, Z: 9}, Blocks: blocks}); err != nil || !reflect.DeepEqual(p, want) {
		t.Errorf("CHUNK_DATA came back as %T, %v", p, err)
	}
	if _, err := DecodeClientPacket(line); err == nil {
		t.Error("a client may send a line that is as long as CHUNK_DATA")
	}
	for _, c := range []struct{ old, new string }{{`,3],`, `,3,0],`}, {`,3],`, `],`}, {`,3],`, `,256],`}, {`,3],`, `,0.5],`}} {
		_, err := DecodePacket([]byte(strings.Replace(string(line), c.old, c.new, 1)))
		if wiretest.CodeOf(t, err) != wire.FailBadValue {
			t.Errorf("CHUNK_DATA with %s for %s: %v", c.new, c.old, err)
		}
	}
}

func TestSlabOf(t *testing.T) {
	c, err := chunk.FromBlocks(make([]chunk.Block, 2*32*32*32))
	if err != nil {
		t.Fatal(err)
	}
	c.Set(chunk.IndexOf(1, 40, 3), chunk.Grass)
	c.Set(chunk.IndexOf(1, 39, 3), chunk.GoldOre)
	c.Set(chunk.IndexOf(1, 9, 3), chunk.Dirt)
	for _, base := range []int{-10, 0, 9, 10, 39, 40, 63, 64} {
		want := new(Slab)
		for x := range 32 {
			for z := range 32 {
				want[1024*x+z] = byte(chunk.Stone) // the lowest layer has no holes
			}
		}
		for y, block := range map[int]chunk.Block{40: chunk.Grass, 39: chunk.Stone, 9: chunk.Dirt} {
			if y >= base && y < base+SlabHeight {
				want[1024*1+32*(y-base)+3] = byte(block)
			}
		}
		if got := SlabOf(c, base); *got != *want {
			t.Errorf("the slab from %d up is wrong", base)
		}
	}
}

func TestYaw(t *testing.T) {
	for _, c := range []struct{ degrees, yaw float64 }{{0, 0}, {90, -math.Pi / 2}, {270, math.Pi / 2}, {359, math.Pi / 180}, {45, -math.Pi / 4}} {
		if got := YawOfOriginal(c.degrees); math.Abs(float64(got)-c.yaw) > 1e-6 {
			t.Errorf("YawOfOriginal(%v) = %v, want %v", c.degrees, got, c.yaw)
		}
		if got := OriginalYaw(float32(c.yaw)); math.Abs(got-c.degrees) > 1e-4 || math.Signbit(got) {
			t.Errorf("OriginalYaw(%v) = %v, want %v", c.yaw, got, c.degrees)
		}
	}
	for _, yaw := range []float32{1e-30, -1e-30, 1e30, 2 * math.Pi, float32(math.Copysign(0, -1))} {
		if got := OriginalYaw(yaw); got < 0 || got >= 360 || math.Signbit(got) {
			t.Errorf("OriginalYaw(%v) = %v", yaw, got)
		}
	}
}

func TestQueries(t *testing.T) {
	// The released client's bytes: queries have no terminator. After a query with refused values the stream is still in
	// step.
	stream := "\x00[-1,2]\x01{\"name\": \"Abrasam\"}\n\r\n\x01{\"name\":\"a b\"}\x00[1e999,0]\x00[0.0, -3]"
	r := bufio.NewReader(iotest.OneByteReader(strings.NewReader(stream)))
	for _, want := range []any{
		WhereIsChunk{grid.ChunkPos{X: -1, Z: 2}}, WhereIsPlayer{"Abrasam"}, WhereIsPlayer{"a b"}, wire.FailBadValue, WhereIsChunk{grid.ChunkPos{Z: -3}},
	} {
		q, err := ReadQuery(r)
		if code, refused := want.(string); refused {
			if wiretest.CodeOf(t, err) != code {
				t.Errorf("ReadQuery = %+v, %v; want %s", q, err, code)
			}
		} else if err != nil || q != want {
			t.Errorf("ReadQuery = %+v, %v; want %+v", q, err, want)
		}
	}
	if _, err := ReadQuery(r); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
	for in, code := range map[string]string{
		"\x02[]":                              wire.FailUnknownMessage,
		"\x00{}":                              wire.FailBadJSON,
		"\x00[1,2}":                           wire.FailBadJSON,
		"\x00[1]":                             wire.FailBadValue,
		"\x00[1,2,3]":                         wire.FailBadValue,
		"\x00[\"1\",2]":                       wire.FailBadType,
		"\x00[" + strings.Repeat(" ", 1<<20):  wire.FailTooLong,
		"\x01{}":                              wire.FailMissingField,
		"\x01{\"name\":\"a\",\"name\":\"a\"}": wire.FailBadJSON,
		"\x01{\"name\":7}":                    wire.FailBadType,
	} {
		q, err := ReadQuery(bufio.NewReader(strings.NewReader(in)))
		if err == nil || wiretest.CodeOf(t, err) != code {
			t.Errorf("ReadQuery(%.40q) = %+v, %v; want %s", in, q, err, code)
		}
	}
	for _, in := range []string{"\x00", "\x00[1", "\x01{\"name\":\"}"} {
		if q, err := ReadQuery(bufio.NewReader(strings.NewReader(in))); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("ReadQuery(%q) = %+v, %v", in, q, err)
		}
	}
	for want, q := range map[string]Query{
		"\x00[-1,2]":           WhereIsChunk{grid.ChunkPos{X: -1, Z: 2}},
		"\x01{\"name\":\"a\"}": WhereIsPlayer{"a"},
	} {
		if got, err := AppendQuery(nil, q); err != nil || string(got) != want {
			t.Errorf("AppendQuery(%+v) = %q, %v; want %q", q, got, err, want)
		}
	}
}

func TestQueryAnswers(t *testing.T) {
	for want, address := range map[string]netip.AddrPort{
		"{\"ip\":\"127.0.0.1\",\"port\":4002}\n": netip.MustParseAddrPort("127.0.0.1:4002"),
		"{\"ip\":\"127.0.0.1\",\"port\":4003}\n": netip.MustParseAddrPort("[::ffff:127.0.0.1]:4003"),
		"{\"ip\":\"2001:db8::1\",\"port\":1}\n":  netip.MustParseAddrPort("[2001:db8::1]:1"),
	} {
		got := AppendChunkAddress(nil, address)
		if string(got) != want {
			t.Errorf("AppendChunkAddress(%v) = %q, want %q", address, got, want)
		}
		back, err := ReadChunkAddress(bufio.NewReader(strings.NewReader(want)))
		if err != nil || back != netip.AddrPortFrom(address.Addr().Unmap(), address.Port()) {
			t.Errorf("ReadChunkAddress(%q) = %v, %v", want, back, err)
		}
	}
	if _, err := ReadChunkAddress(bufio.NewReader(strings.NewReader("{\"ip\":\"localhost\",\"port\":1}\n"))); wiretest.CodeOf(t, err) != wire.FailBadValue {
		t.Errorf("a host name: %v", err)
	}

	place, err := AppendPlayerPlace(nil, DefaultX, DefaultY, DefaultZ)
	if err != nil || string(place) != `{"x":0,"y":32,"z":0}` {
		t.Errorf("the unknown player's place is %s, %v", place, err)
	}
	place, err = AppendPlayerPlace(nil, 1.5, 20, -3.25)
	if err != nil || string(place) != `{"x":1.5,"y":20,"z":-3.25}` {
		t.Errorf("place is %s, %v", place, err)
	}
	if x, y, z, err := ReadPlayerPlace(bufio.NewReader(strings.NewReader(string(place)))); err != nil || x != 1.5 || y != 20 || z != -3.25 {
		t.Errorf("ReadPlayerPlace = %v %v %v, %v", x, y, z, err)
	}
	if _, err := AppendPlayerPlace(nil, math.NaN(), 0, 0); err == nil {
		t.Error("NaN is a place")
	}
}
