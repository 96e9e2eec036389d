package sessionmsg

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"reflect"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"pgregory.net/rapid"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/wiretest"
)

var update = flag.Bool("update", false, "write testdata anew")

// pieces records the content of a frame.
type pieces struct {
	ticks   []uint16
	deltas  []TickDelta
	motions []placedMotion
}

type placedMotion struct {
	At grid.ChunkPos
	Motion
}

func (p *pieces) Tick(low uint16) { p.ticks = append(p.ticks, low) }

func (p *pieces) Delta(n *TickDelta) { p.deltas = append(p.deltas, *n) }

func (p *pieces) Motion(at grid.ChunkPos, m *Motion) {
	p.motions = append(p.motions, placedMotion{at, *m})
}

func anyPlace(t *rapid.T) Place {
	return Place{
		X: rapid.Uint16Range(0, chunkUnits-1).Draw(t, "x"), Z: rapid.Uint16Range(0, chunkUnits-1).Draw(t, "z"),
		Y: rapid.Uint16().Draw(t, "y"), Yaw: rapid.Byte().Draw(t, "yaw"), Pitch: rapid.Int8Range(-127, 127).Draw(t, "pitch"),
	}
}

func anyChunk(t *rapid.T) grid.ChunkPos {
	return grid.ChunkPos{X: rapid.Int32Range(-grid.Limit, grid.Limit-1).Draw(t, "X"), Z: rapid.Int32Range(-grid.Limit, grid.Limit-1).Draw(t, "Z")}
}

func anyDelta(t *rapid.T) TickDelta {
	n := TickDelta{Chunk: anyChunk(t)}
	index := rapid.Uint32Range(0, MaxAvatarIndex)
	for i := range rapid.IntRange(0, 3).Draw(t, "enter") {
		name := fmt.Sprintf("p_%d", i)
		n.Enter = append(n.Enter, TickAvatar{
			Index: index.Draw(t, "index"), Player: player.GuestID(name), Name: name, Guest: rapid.Bool().Draw(t, "guest"),
			Skin: player.Skin(rapid.Uint32().Draw(t, "skin")), Place: anyPlace(t),
			Stance: nodemsg.Stance{Held: chunk.Block(rapid.Uint16().Draw(t, "held")), Sneaks: rapid.Bool().Draw(t, "sneaks")},
		})
	}
	n.Leave = rapid.SliceOfN(index, 0, 3).Draw(t, "leave")
	for range rapid.IntRange(0, 3).Draw(t, "blocks") {
		n.Blocks = append(n.Blocks, nodemsg.BlockAt{
			At: chunk.Index(rapid.Uint32Range(0, wire.ColumnBlocks-1).Draw(t, "at")), Block: chunk.Block(rapid.Uint16().Draw(t, "block")),
		})
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "says") {
		n.Chat = append(n.Chat, nodemsg.ChatEvent{Player: player.GuestID("a"), Name: "a", Chunk: n.Chunk, Text: fmt.Sprint("hello 🌍 ", i)})
	}
	if len(n.Enter)+len(n.Leave)+len(n.Blocks)+len(n.Chat) == 0 {
		n.Leave = []uint32{7}
	}
	if len(n.Leave) == 0 {
		n.Leave = nil
	}
	return n
}

// anyCell draws the motion of one cell, in the order of the indices.
func anyCell(t *rapid.T, cell uint8) []Motion {
	const row = grid.ChunkSize / CellSize
	var all []Motion
	index := rapid.Uint32Range(0, 1000).Draw(t, "first")
	for range rapid.IntRange(0, 300).Draw(t, "avatars") {
		m := Motion{
			Index: index, HasAcross: rapid.Bool().Draw(t, "across"), HasHeight: rapid.Bool().Draw(t, "height"), HasFacing: rapid.Bool().Draw(t, "facing"),
		}
		p := anyPlace(t)
		if m.HasAcross {
			m.X, m.Z = uint16(cell%row)*cellUnits+p.X%cellUnits, uint16(cell/row)*cellUnits+p.Z%cellUnits
			if m.HasVelocity = rapid.Bool().Draw(t, "pace"); m.HasVelocity {
				m.VelocityX, m.VelocityZ = rapid.Int8().Draw(t, "pace x"), rapid.Int8().Draw(t, "pace z")
			}
		}
		if m.HasHeight {
			m.Y, m.Climb = p.Y, rapid.SampledFrom([]int8{0, 0, -128, -3, 1, 127}).Draw(t, "climb")
		}
		if m.HasFacing {
			m.Yaw, m.Pitch = p.Yaw, p.Pitch
		}
		all = append(all, m)
		index += 1 + rapid.Uint32Range(0, 500).Draw(t, "gap")
	}
	return all
}

func TestTickFramesComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tick := rapid.Uint64().Draw(t, "tick")
		frame := AppendTick(nil, tick)
		want := pieces{ticks: []uint16{uint16(tick)}}
		for range rapid.IntRange(0, 3).Draw(t, "deltas") {
			n := anyDelta(t)
			frame = AppendDelta(frame, &n)
			want.deltas = append(want.deltas, n)
		}
		for range rapid.IntRange(0, 2).Draw(t, "chunks") {
			if rapid.Bool().Draw(t, "later") {
				tick++
				frame = AppendLaterTick(frame, tick)
				want.ticks = append(want.ticks, uint16(tick))
			}
			at := anyChunk(t)
			frame = AppendMotionChunk(frame, at)
			for range rapid.IntRange(0, 2).Draw(t, "cells") {
				cell := rapid.Uint8Range(0, CellsPerChunk-1).Draw(t, "cell")
				var w MotionWriter
				w.Begin(cell, rapid.Uint16().Draw(t, "lowest"))
				for _, m := range anyCell(t, cell) {
					frame = w.Append(frame, &m)
					want.motions = append(want.motions, placedMotion{at, m})
				}
			}
		}
		var got pieces
		if err := ReadTick(frame, &got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("read %+v, want %+v", got, want)
		}
	})
}

func TestPlacesAreTrueToAHalfUnit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := grid.ChunkPos{X: rapid.Int32Range(-1000, 1000).Draw(t, "X"), Z: rapid.Int32Range(-1000, 1000).Draw(t, "Z")}
		p := motion.Pose{
			X: float64(at.X)*32 + rapid.Float64Range(0, 31.98).Draw(t, "x"), Y: rapid.Float64Range(motion.MinY, motion.MaxY).Draw(t, "y"),
			Z: float64(at.Z)*32 + rapid.Float64Range(0, 31.98).Draw(t, "z"), Yaw: rapid.Float32Range(-100, 100).Draw(t, "yaw"),
			Pitch: rapid.Float32Range(-1.57, 1.57).Draw(t, "pitch"),
		}
		q := PlaceOf(at, p).Pose(at)
		const half = 1. / PlaceUnit / 2
		if math.Abs(p.X-q.X) > half || math.Abs(p.Y-q.Y) > half || math.Abs(p.Z-q.Z) > half {
			t.Fatalf("%+v became %+v", p, q)
		}
		if turn := math.Abs(math.Remainder(float64(p.Yaw-q.Yaw), 2*math.Pi)); turn > math.Pi/255 {
			t.Fatalf("yaw %v became %v", p.Yaw, q.Yaw)
		}
	})
}

// A block change takes at most 16 bytes per session, and usually less, including the length before the frame.
func TestBlockChangeIsSmall(t *testing.T) {
	for _, c := range []struct {
		at   grid.ChunkPos
		most int
	}{{grid.ChunkPos{X: -3, Z: 63}, 12}, {grid.ChunkPos{X: 8000, Z: -8000}, 14}, {grid.ChunkPos{X: -1_000_000, Z: 1_000_000}, 16}} {
		frame := AppendDelta(AppendTick(nil, math.MaxUint64), &TickDelta{Chunk: c.at, Blocks: []nodemsg.BlockAt{{At: wire.ColumnBlocks - 1, Block: 37}}})
		if n := len(AppendMessage(nil, frame)); n > c.most {
			t.Errorf("a change in chunk %v takes %d bytes, want at most %d", c.at, n, c.most)
		}
	}
}

func TestBadFramesAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":                "",
		"no frame":               "020000",
		"no such piece":          "01000010",
		"no piece at all":        "01000000",
		"motion in no chunk":     "01000080010000",
		"no such cell":           "0100002000009001000000",
		"cut off":                "010000200000800100080a",
		"pace without a place":   "010000200000800100400101",
		"climb cut off":          "010000200000800100200f",
		"tall cut off":           "0100002000008001003001ff",
		"endless list":           "0100000200008080808010",
		"chunk out of the world": "01000020" + "ffffffff7f" + "00",
		"block out of a column":  "01000004000001ffffff01",
	} {
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		err = ReadTick(b, &pieces{})
		if wiretest.CodeOf(t, err) != wire.FailBadValue {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzReadTick(f *testing.F) {
	for _, g := range goldenFrames() {
		f.Add(g)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var p pieces
		if err := ReadTick(data, &p); err != nil {
			wiretest.CodeOf(t, err)
			return
		}
		frame := AppendTick(nil, uint64(data[1])|uint64(data[2])<<8)
		for _, n := range p.deltas {
			frame = AppendDelta(frame, &n)
		}
		var again pieces
		if err := ReadTick(frame, &again); err != nil || len(again.deltas) != len(p.deltas) {
			t.Fatalf("%v: %+v became %+v", err, p.deltas, again.deltas)
		}
	})
}

func FuzzDecodeClientCBOR(f *testing.F) {
	for _, c := range clientMessages {
		if b, err := EncodeClientCBOR(c.m); err == nil {
			f.Add(b)
		}
	}
	f.Add([]byte{0xa6, 0x64, 't', 'y', 'p', 'e', 0x64, 'e', 'd', 'i', 't', 0x61, 'x', 0x39, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := DecodeClientCBOR(data)
		if err != nil {
			wiretest.CodeOf(t, err)
			return
		}
		if _, joins := m.(Join); joins {
			return
		}
		b, err := EncodeClientCBOR(m)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := DecodeClientCBOR(b); err != nil || !reflect.DeepEqual(again, m) {
			t.Fatalf("%+v became %+v (%v)", m, again, err)
		}
	})
}

func FuzzDecodeServerCBOR(f *testing.F) {
	for _, m := range serverMessages {
		if b, err := EncodeServerCBOR(m.m); err == nil {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := DecodeServerCBOR(data)
		if err != nil {
			wiretest.CodeOf(t, err)
			return
		}
		if _, err := EncodeServerCBOR(m); err != nil {
			t.Fatalf("%+v: %v", m, err)
		}
	})
}

func TestSessionMessagesInCBOR(t *testing.T) {
	for _, c := range clientMessages {
		if _, joins := c.m.(Join); joins {
			if _, err := EncodeClientCBOR(c.m); err == nil {
				t.Error("a join goes in JSON: it says the encoding")
			}
			continue
		}
		b, err := EncodeClientCBOR(c.m)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := DecodeClientCBOR(b); err != nil || !reflect.DeepEqual(got, c.m) {
			t.Errorf("%+v became %+v (%v)", c.m, got, err)
		}
	}
	for _, c := range serverMessages {
		if _, frame := c.m.(Frame); frame {
			continue
		}
		b, err := EncodeServerCBOR(c.m)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := DecodeServerCBOR(b); err != nil || !reflect.DeepEqual(got, c.m) {
			t.Errorf("%+v became %+v (%v)", c.m, got, err)
		}
	}
}

// The short form of an acknowledgement has the bytes of the general one.
func TestShortAck(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := Ack{Seq: rapid.Uint64().Draw(t, "seq"), Block: rapid.Uint16().Draw(t, "block")}
		want, err := encodeNamedCBOR("ack", a)
		if got := encodeAck(a); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%+v became %x, %x in the general form, %v", a, got, want, err)
		}
	})
}

// Both encodings refuse the same, with the same code.
func TestDecodeClientCBORRefuses(t *testing.T) {
	for _, c := range []struct {
		in   map[string]any
		code string
	}{
		{map[string]any{}, wire.FailMissingField},
		{map[string]any{"type": 7}, wire.FailBadType},
		{map[string]any{"type": "fly"}, wire.FailUnknownMessage},
		{map[string]any{"type": "ping"}, wire.FailMissingField},
		{map[string]any{"type": "ping", "Nonce": 1}, wire.FailMissingField},
		{map[string]any{"type": "ping", "nonce": 1, "extra": 1}, wire.FailUnknownField},
		{map[string]any{"type": "ping", "nonce": nil}, wire.FailBadType},
		{map[string]any{"type": "ping", "nonce": "1"}, wire.FailBadType},
		{map[string]any{"type": "ping", "nonce": []int{1}}, wire.FailBadType},
		{map[string]any{"type": "ping", "nonce": -1}, wire.FailBadValue},
		{map[string]any{"type": "ping", "nonce": 1.5}, wire.FailBadValue},
		{map[string]any{"type": "edit", "seq": 1, "x": 1 << 31, "y": 0, "z": 0, "block": 0}, wire.FailBadValue},
		{map[string]any{"type": "edit", "seq": 1, "x": 0, "y": 0, "z": 0, "block": 1 << 16}, wire.FailBadValue},
		{map[string]any{"type": "move", "x": 1, "y": 2, "z": 3, "yaw": 1e39, "pitch": 0}, wire.FailBadValue},
		{map[string]any{"type": "chat", "text": "a\u202eb"}, wire.FailBadValue},
		{map[string]any{"type": "chat", "text": "\xff"}, wire.FailBadCBOR},
		{map[string]any{"type": "chat", "text": []byte("hi")}, wire.FailBadType},
		{map[string]any{"type": "gift", "player": aPlayer, "block": 1, "count": 65}, wire.FailBadValue},
		{map[string]any{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1, "g": 1, "h": 1, "i": 1, "j": 1, "k": 1, "l": 1, "m": 1}, wire.FailUnknownField},
	} {
		b, err := cbor.Marshal(c.in)
		if err != nil {
			t.Fatal(err)
		}
		if m, err := DecodeClientCBOR(b); wiretest.CodeOf(t, err) != c.code {
			t.Errorf("%v became %+v, %v; want %s", c.in, m, err, c.code)
		}
	}
	for _, in := range []string{"", "\xa1", "\x80", "\xa1\x64type\x64ping", "\xa2\x64type\x64ping\x65nonce\x01\x01", "\xa2\x61a\x01\x61a\x01", "\xbf\x64type\x64ping\xff"} {
		if m, err := DecodeClientCBOR([]byte(in)); err == nil {
			t.Errorf("%x became %+v", in, m)
		} else {
			wiretest.RefusedOnly(t, err)
		}
	}
}

func TestMessagesWithTheirLength(t *testing.T) {
	var stream []byte
	sizes := []int{1, 127, 128, 16383, 16384, 100_000}
	for i, n := range sizes {
		stream = AppendMessage(stream, bytes.Repeat([]byte{byte(i)}, n))
	}
	r := bufio.NewReaderSize(bytes.NewReader(stream), 16)
	var buf []byte
	for i, n := range sizes {
		var err error
		if buf, err = ReadMessage(r, buf, 1<<20); err != nil || len(buf) != n || buf[n-1] != byte(i) {
			t.Fatalf("message %d of %d bytes: %d bytes (%v)", i, n, len(buf), err)
		}
	}
	for name, c := range map[string]struct{ stream, code string }{
		"empty":       {"\x00", wire.FailTooLong},
		"too long":    {"\xff\xff\x7f", wire.FailTooLong},
		"long length": {"\x80\x80\x80\x80\x01", wire.FailTooLong},
	} {
		_, err := ReadMessage(bufio.NewReader(bytes.NewReader([]byte(c.stream))), nil, 1000)
		if wiretest.CodeOf(t, err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// goldenFrames returns consecutive frames of a session. The browser's client decodes the same (web/test/tick.test.ts).
func goldenFrames() [][]byte {
	at, next := grid.ChunkPos{X: -1, Z: 2}, grid.ChunkPos{X: 0, Z: 2}
	var frames [][]byte
	frames = append(frames, AppendDelta(AppendTick(nil, 65535), &TickDelta{
		Chunk: at,
		Enter: []TickAvatar{
			{Index: 3, Player: player.GuestID("ann"), Name: "ann", Guest: true, Place: PlaceOf(at, motion.Pose{X: -20.5, Y: 64, Z: 70.25, Yaw: math.Pi / 2})},
			{Index: 300, Player: player.GuestID("bob"), Name: "bob", Place: PlaceOf(at, motion.Pose{X: -4, Y: 70.5, Z: 95.5, Pitch: -math.Pi / 2})},
		},
		Blocks: []nodemsg.BlockAt{{At: chunk.IndexOf(4, 63, 7), Block: 0}, {At: chunk.IndexOf(31, 127, 31), Block: 300}},
		Chat:   []nodemsg.ChatEvent{{Player: player.GuestID("ann"), Name: "ann", Text: "hello 🌍"}},
	}))
	var w MotionWriter
	frame := AppendMotionChunk(AppendTick(nil, 65536), at)
	place := PlaceOf(at, motion.Pose{X: -20.25, Y: 64.5, Z: 70.25})
	w.Begin(place.Cell(), place.Y)
	frame = w.Append(frame, &Motion{Index: 3, Place: place, VelocityX: 32, VelocityZ: -1, HasAcross: true, HasHeight: true, HasVelocity: true})
	far := PlaceOf(at, motion.Pose{X: -4, Y: 200, Z: 95.5, Yaw: math.Pi})
	w.Begin(far.Cell(), 0)
	frame = w.Append(frame, &Motion{Index: 300, Place: far, Climb: -16, HasHeight: true, HasFacing: true})
	later := Place{X: place.X + 16, Y: place.Y, Z: place.Z}
	w.Begin(later.Cell(), later.Y)
	frame = AppendMotionChunk(AppendLaterTick(frame, 65537), at)
	frame = w.Append(frame, &Motion{Index: 3, Place: later, Climb: 8, HasAcross: true, HasHeight: true})
	frames = append(frames, frame)
	frames = append(frames, AppendTick(nil, 65541))
	frame = AppendDelta(AppendTick(nil, 65542), &TickDelta{Chunk: next, Enter: []TickAvatar{
		{Index: 300, Player: player.GuestID("bob"), Name: "bob", Place: PlaceOf(next, motion.Pose{X: .5, Y: 70, Z: 95.5})},
	}})
	frames = append(frames, AppendDelta(frame, &TickDelta{Chunk: at, Leave: []uint32{300, 3}}))
	frames = append(frames, AppendDelta(AppendTick(nil, 65543), &TickDelta{Chunk: at, Enter: []TickAvatar{
		{Index: 3, Player: player.GuestID("ann"), Name: "ann", Guest: true, Skin: 0x83fa10cd, Place: PlaceOf(at, motion.Pose{X: -20.5, Y: 64, Z: 70.25})},
	}}))
	frames = append(frames, AppendDelta(AppendTick(nil, 65544), &TickDelta{Chunk: at, Enter: []TickAvatar{
		{
			Index: 3, Player: player.GuestID("ann"), Name: "ann", Skin: 0x83fa10cd, Stance: nodemsg.Stance{Held: chunk.Stone, Sneaks: true},
			Place: PlaceOf(at, motion.Pose{X: -20.5, Y: 64, Z: 70.25}),
		},
		{Index: 4, Player: player.GuestID("bob"), Name: "bob", Stance: nodemsg.Stance{Held: chunk.Sign}, Place: PlaceOf(at, motion.Pose{X: -20.5, Y: 64, Z: 70.25})},
	}}))
	return frames
}

// goldenMessages returns server messages for the CBOR golden file.
func goldenMessages() []FromServer {
	return []FromServer{
		ChunkData{Chunk: grid.ChunkPos{X: 0, Z: -1}, Data: []byte{1, 2, 255}},
		Ack{Seq: 1767225600000000, Block: 15, Error: wire.RefusedUnbreakable},
		Correction{Pose: motion.Pose{X: 12.5, Y: 64, Z: -3.25, Yaw: 1.57, Pitch: -.2}, Reason: "too_fast"},
		Pong{Nonce: 7, TimeOfDay: 481.1},
	}
}

type golden struct {
	Frames   []string          `json:"frames"`
	Messages []string          `json:"messages"`
	JSON     []json.RawMessage `json:"json"` // the messages in JSON; bytes are in base64 there
}

func TestGoldenTicks(t *testing.T) {
	var g golden
	for _, f := range goldenFrames() {
		g.Frames = append(g.Frames, hex.EncodeToString(f))
	}
	for _, m := range goldenMessages() {
		binary, err := EncodeServerCBOR(m)
		if err != nil {
			t.Fatal(err)
		}
		text, err := EncodeServer(m)
		if err != nil {
			t.Fatal(err)
		}
		g.Messages, g.JSON = append(g.Messages, hex.EncodeToString(binary)), append(g.JSON, text)
	}
	got, err := json.MarshalIndent(g, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	const path = "testdata/session.json"
	if *update {
		if err := os.WriteFile(path, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != string(got)+"\n" {
		t.Errorf("%s is not what the encoder writes; if it should be, go test ./wire/sessionmsg -run GoldenTicks -update, and look at web/test/tick.test.ts", path)
	}
}
