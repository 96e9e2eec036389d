package classicube

import (
	"bytes"
	"math"
	"testing"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/gameserver/games/gamestest"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
)

func newTestAdapter() *Adapter { return New(prometheus.NewRegistry()) }

// hello is the identification of a client.
func hello(name string, version, mark byte) []byte {
	return begin(packetIdentification).u8(version).text(name).text("").u8(mark)
}

// extensionsOf is what a client with extensions sends.
func extensionsOf(names ...string) []byte {
	p := begin(packetExtInfo).text("test").u16(uint16(len(names)))
	for _, n := range names {
		version := uint32(1)
		if n == extPlayerList || n == extBlockDefsExt {
			version = 2
		}
		p = append(p, begin(packetExtEntry).text(n).u32(version)...)
	}
	return p
}

// playing returns a client that stands at the corner of a level of one chunk in each direction, on stone.
func playing(t testing.TB, sent []byte, f ...string) (*Client, *gamestest.Script) {
	t.Helper()
	s := gamestest.NewScript(hello("ada", protocolVersion, cpeMark), extensionsOf(f...), sent)
	cl := gamestest.Open[*Client](t, newTestAdapter(), s)
	for x := int32(-1); x <= 1; x++ {
		for z := int32(-1); z <= 1; z++ {
			gamestest.Receive(t, cl, gamestest.Floor(t, grid.ChunkPos{X: x, Z: z}))
		}
	}
	if !cl.mu.loaded {
		t.Fatal("no level was sent")
	}
	return cl, s
}

// here is the move of a client that is where it was put, in the level of playing.
func here() []byte {
	return begin(packetTeleport).u8(selfID).place(placeOf(gamestest.Start, grid.Pos{X: -32, Z: -32}, eyes))
}

// Whatever a client sends, in its handshake and later, becomes messages that a session takes, or an error.
func FuzzClient(f *testing.F) {
	f.Add([]byte{}, []byte{})
	f.Add(hello("ada", 7, 0), here())
	f.Add(append(hello("ada", 7, cpeMark), extensionsOf(extCustomBlocks, extFastMap)...), []byte{packetCustomBlocks, 1})
	f.Add(append(hello("ada", 7, cpeMark), begin(packetExtInfo).text("x").u16(65535)...), []byte{})
	f.Add(hello("ada", 6, 0), []byte(begin(packetMessage).u8(1).text("/help &")))
	f.Add(hello("a b", 7, 0), append(here(), begin(packetSetBlockClient).u16(33).u16(10).u16(34).u8(1, 65)...))
	f.Add(hello("x", 7, 0), append(append(here(), begin(packetMessage).u8(1).text("one ")...), begin(packetMessage).u8(0).text("%4two")...))
	f.Add(hello("x", 7, 0), []byte{packetTwoWayPing, 0, 1, 2, packetTwoWayPing, 1, 0, 0, 0xff})
	f.Add(hello("x", 7, 0), []byte(begin(packetPlayerClick).u8(rightButton, isPressed).u32(0).u8(255).u16(33).u16(9).u16(34).u8(1)))
	f.Add(hello("x", 7, 0), []byte(begin(packetTeleport).u8(selfID).place(place{x: 1000, y: 0x9000, z: 1000})))
	f.Fuzz(func(t *testing.T, login, sent []byte) {
		if _, _, err := newTestAdapter().Open(t.Context(), gamestest.NewScript(login)); err == nil && len(login) < 131 {
			t.Errorf("%d bytes are a login", len(login))
		}
		cl, _ := playing(t, append(here(), sent...), extLongerMessages, extTwoWayPing, extPlayerClick)
		const shortest, each = 9, 2 // a packet that becomes a message; both halves of a door
		gamestest.CheckMessages(t, cl, 1+each*(len(sent)/shortest))
		if len(cl.partial) > wire.MaxChat {
			t.Errorf("%d bytes are kept", len(cl.partial))
		}
	})
}

// Whatever a session says is shown in whole lines, without a code cut in two.
func FuzzSay(f *testing.F) {
	f.Add("&ehello")
	f.Add(string(bytes.Repeat([]byte("a&b "), 300)))
	f.Add("ä ✓ \x00 &")
	f.Fuzz(func(t *testing.T, text string) {
		for _, upper := range []bool{true, false} {
			lines := wrap(encodeText(text, upper))
			if len(lines) > maxLines {
				t.Fatalf("%d lines", len(lines))
			}
			for _, l := range lines {
				if len(l) == 0 || len(l) > textBytes || l[len(l)-1] == '&' || bytes.ContainsAny(l, "\x00\n") {
					t.Fatalf("%q has the line %q", text, l)
				}
				if got := decodeText(begin(0).line(l)[1:]); !utf8.ValidString(got) {
					t.Fatalf("%q is shown as %q", l, got)
				}
			}
		}
	})
}

// A place that a client sends has a pose within the rules of the wire, and is the same again.
func FuzzPlace(f *testing.F) {
	f.Add(uint16(0), uint16(51), uint16(65535), byte(0), byte(0))
	f.Add(uint16(32767), uint16(32768), uint16(1), byte(128), byte(64))
	f.Fuzz(func(t *testing.T, x, y, z uint16, yaw, pitch byte) {
		origin := grid.Pos{X: -320, Z: 64}
		at := place{x, y, z, yaw, pitch}
		pose := at.pose(origin)
		if math.Abs(float64(pose.Pitch)) > math.Pi/2+1e-6 || math.Abs(pose.X) > 2000 {
			t.Fatalf("%v becomes %v", at, pose)
		}
		back := placeOf(pose, origin, eyes)
		if back.x != at.x || back.z != at.z || back.y != at.y && int16(y) > math.MinInt16+eyes || back.yaw != at.yaw {
			t.Fatalf("%v becomes %v, and that %v", at, pose, back)
		}
	})
}
