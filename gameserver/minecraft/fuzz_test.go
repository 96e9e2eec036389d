package minecraft

import (
	"bufio"
	"bytes"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/games/gamestest"
	"github.com/voxelpopuli/voxeld/grid"
)

// received returns the packets that the client was sent since the last call.
func received(t testing.TB, s *gamestest.Script, compressed bool) (packets [][]byte) {
	t.Helper()
	r := &frameReader{in: bufio.NewReader(&s.Out)}
	for {
		frame, err := r.next()
		if err != nil {
			return packets
		}
		if compressed {
			if frame, err = r.inflate(frame); err != nil {
				t.Fatal(err)
			}
		}
		packets = append(packets, bytes.Clone(frame))
	}
}

func newTestAdapter() *Adapter {
	return New(prometheus.NewRegistry(), func() Status { return Status{Text: "a world", Players: []string{"ada", "bob", "eve"}} })
}

// hello is what a client of a version sends first.
func hello(name string, version, want int) []byte {
	handshake := begin(packetHandshake).varint(version).text("localhost").i16(25566).varint(want)
	login := begin(packetLoginStart).text(name).i64(1).i64(2)
	return appendFrame(appendFrame(nil, handshake, false), login, false)
}

// sent are the packets of a client that plays.
func sent(packets ...packet) (frames []byte) {
	for _, p := range packets {
		frames = appendFrame(frames, p, true)
	}
	return frames
}

// playing returns a client that stands on a floor of stone, and then sends some bytes.
func playing(t testing.TB, more []byte) (*Client, *gamestest.Script) {
	t.Helper()
	s := gamestest.NewScript(hello("ada", protocolVersion, wantLogin), sent(begin(packetLoginAck), begin(packetConfigFinish)), more)
	cl := gamestest.Open[*Client](t, newTestAdapter(), s)
	gamestest.Receive(t, cl, gamestest.Floor(t, grid.ChunkPos{}))
	for range 2 {
		frame, err := cl.in.next()
		if err != nil {
			t.Fatal(err)
		}
		if m, err := cl.translate(frame, time.Now()); m != nil || err != nil {
			t.Fatalf("%x becomes %#v, %v", frame, m, err)
		}
	}
	if cl.mu.state != inPlay {
		t.Fatal("the client does not play")
	}
	if err := cl.Flush(); err != nil {
		t.Fatal(err)
	}
	s.Out.Reset()
	return cl, s
}

// confirm is that of the first teleport.
func confirm() packet { return begin(packetConfirmTeleport).varint(1) }

// useOn is the placing of the block in the hand at the top of a block.
func useOn(x, y, z int32, number int) packet {
	return begin(packetUseItemOn).varint(0).position(grid.Pos{X: x, Y: y, Z: z}).varint(1).f32(.5).f32(1).f32(.5).u8(0).varint(number)
}

func dig(x, y, z int32, number int) packet {
	return begin(packetDig).varint(digStart).position(grid.Pos{X: x, Y: y, Z: z}).u8(1).varint(number)
}

func chatPacket(text string) packet {
	return begin(packetChat).text(text).i64(0).i64(0).u8(0).varint(0).u8(0, 0, 0)
}

// Whatever a client sends before it logs in is a login, or refused.
func FuzzOpen(f *testing.F) {
	f.Add([]byte{})
	f.Add(hello("ada", protocolVersion, wantLogin))
	f.Add(hello("a b", protocolVersion, wantLogin))
	f.Add(hello("ada", 763, wantLogin))
	f.Add(appendFrame(hello("", protocolVersion, wantStatus), begin(packetStatusPing).i64(5), false))
	f.Add([]byte{0xfe, 0x01, 0xfa})
	f.Fuzz(func(t *testing.T, login []byte) {
		s := gamestest.NewScript(login)
		cl, join, err := newTestAdapter().Open(t.Context(), s)
		if err == nil && (cl == nil || join.Name == "" || len(join.Name) > maxLoginName) {
			t.Errorf("%x is the login of %+v", login, join)
		}
	})
}

// Whatever a client sends later becomes messages that a session takes, or an error; and little of it is kept.
func FuzzClient(f *testing.F) {
	for _, p := range []packet{
		begin(packetMovePosition).f64(2, 10, 2.5).u8(1),
		begin(packetMovePositionLook).f64(2, 10, 2.5).f32(720).f32(-95).u8(1),
		begin(packetMoveLook).f32(-1e9).f32(3).u8(1), begin(packetMoveOnGround).u8(1),
		begin(packetKeepAliveAnswer).i64(1), useOn(1, 9, 2, 1), dig(1, 9, 2, 2), begin(packetUseItem).varint(0).varint(3),
		begin(packetDig).varint(2).i64(0).u8(0).varint(-1),
		begin(packetSelectSlot).i16(3), begin(packetSetCreativeSlot).i16(36).u8(1).varint(44).u8(1, 0), begin(packetSetCreativeSlot).i16(45).u8(0),
		chatPacket("hello"), begin(packetCommand).text("help"), begin(packetSettings).text("en_gb").u8(12).varint(0).u8(1, 0x7f).varint(1).u8(0, 1),
		begin(packetInteract).varint(2).varint(1).u8(0), begin(0x10), begin(packetPlayerAction).varint(1).varint(0).varint(0), writeSign(grid.Pos{X: 1, Y: 9, Z: 2}, "home"),
	} {
		f.Add([]byte(p))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		cl, _ := playing(t, sent(confirm(), p, useOn(1, 9, 2, 7), p, dig(0, 9, 0, 8)))
		gamestest.CheckMessages(t, cl, 4*2) // of each packet but the first, both halves of a door
		if len(cl.mu.requests.numbers) > 4 {
			t.Errorf("%d edits are kept", len(cl.mu.requests.numbers))
		}
	})
}

// Frames of any bytes are read within the bounds; a packet that is written is read again.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{1, 0})
	f.Add(sent(begin(packetMoveOnGround).u8(1), chatPacket("x")))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0x7f, 1})
	f.Add(append(sent(append(begin(1), bytes.Repeat([]byte("ab"), compressFrom)...)), 4, 0x80, 0x80, 0x04, 1))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := newFrameReader(bytes.NewReader(data))
		for {
			frame, err := r.next()
			if err != nil {
				break
			}
			p, err := r.inflate(frame)
			if len(frame) > maxPacket || len(p) > maxPacket || err != nil && p != nil {
				t.Fatalf("a frame of %d bytes has %d, %v", len(frame), len(p), err)
			}
		}
		if len(data) == 0 || len(data) > maxPacket {
			return
		}
		r = newFrameReader(bytes.NewReader(appendFrame(nil, data, true)))
		frame, err := r.next()
		if err == nil {
			frame, err = r.inflate(frame)
		}
		if err != nil || !bytes.Equal(frame, data) {
			t.Fatalf("%x is read as %x, %v", data, frame, err)
		}
	})
}

// A number and a position are read as they were written.
func FuzzFields(f *testing.F) {
	f.Add(int32(-1), int32(1), int32(-2048), int32(-1<<25))
	f.Add(int32(300), int32(1<<25-1), int32(2047), int32(0))
	f.Fuzz(func(t *testing.T, v, x, y, z int32) {
		pos := grid.Pos{X: x << 6 >> 6, Y: y << 20 >> 20, Z: z << 6 >> 6}
		got := fields{data: packet{}.varint(int(v)).position(pos)}
		if n, at := got.varint(), got.position(); got.bad || n != v || at != pos || len(got.data) > 0 {
			t.Fatalf("%d, %v are read as %d, %v", v, pos, n, at)
		}
	})
}

// Any blocks are sent as their images, and lit within the bounds of light.
func FuzzColumn(f *testing.F) {
	f.Add([]byte{0}, uint8(0))
	f.Add([]byte{1, 0, 3, 20, 0, 0, 200}, uint8(7))
	f.Add(bytes.Repeat([]byte{0, 5, 9, 16, 23, 42}, 40), uint8(1))
	f.Add([]byte{120}, uint8(0)) // doors
	f.Fuzz(func(t *testing.T, kinds []byte, every uint8) {
		if len(kinds) == 0 {
			return
		}
		blocks := make([]chunk.Block, chunk.SectionBlocks)
		fittings := 0
		for i := range blocks {
			if every == 0 || i%(int(every)+1) == 0 {
				blocks[i] = chunk.Block(kinds[(i*7+i/1024)%len(kinds)]) * 5 / 3
			}
			if isFitting(blocks[i]) {
				if fittings++; fittings > maxFittings { // more are not joined
					blocks[i] = chunk.Air
				}
			}
		}
		checkColumns(t, blocks)
	})
}
