package luanti

import (
	"context"
	"encoding/binary"
	"io"
	"math"
	"net"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/gameserver/games/gamestest"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
)

// script is a connection whose client has sent everything already.
type script struct {
	net.Conn
	in    [][]byte
	out   []packet
	lossy []packet
}

func (s *script) WriteLossy(b []byte) { s.lossy = append(s.lossy, append(packet(nil), b...)) }

func (s *script) Read(b []byte) (int, error) {
	if len(s.in) == 0 {
		return 0, io.EOF
	}
	p := s.in[0]
	s.in = s.in[1:]
	if p == nil {
		return 0, os.ErrDeadlineExceeded
	}
	return copy(b, p), nil
}

func (s *script) Write(b []byte) (int, error) {
	s.out = append(s.out, append(packet(nil), b...))
	return len(b), nil
}

func (s *script) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (s *script) Backlog() int                     { return 0 }
func (s *script) SetReadDeadline(time.Time) error  { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }

// sent returns the bodies of the packets with a command.
func (s *script) sent(command uint16) (bodies []packet) {
	for _, p := range s.out {
		if binary.BigEndian.Uint16(p) == command {
			bodies = append(bodies, p[2:])
		}
	}
	return bodies
}

// testAdapter is the adapter of all tests.
var testAdapter = sync.OnceValues(func() (*Adapter, error) {
	return New(prometheus.NewRegistry(), func(context.Context, net.Addr, string) (*player.Verifier, bool, error) { return nil, true, nil })
})

// isKnown is of a world where everybody has played, and nobody has a password.
func isKnown(string) (*player.Verifier, bool, error) { return nil, true, nil }

func initOf(name string, oldest, newest uint16) packet {
	return begin(fromInit).u8(29).u16(0).u16(oldest).u16(newest).text(name)
}

// loginOf is what a client sends until it is in the game.
func loginOf(name string) [][]byte {
	return [][]byte{begin(fromNothing), initOf(name, 37, 41), begin(fromSRPBytesA).text("A").u8(1), begin(fromSRPBytesM).text("M")}
}

var start = gamestest.Start

// playing returns a client that stands on stone in the middle of nine chunks, and sends packets.
func playing(t testing.TB, sent ...[]byte) (*Client, *script) {
	t.Helper()
	s := &script{in: append(loginOf("ada"), sent...)}
	a, err := testAdapter()
	if err != nil {
		t.Fatal(err)
	}
	cl := gamestest.Open[*Client](t, a, s)
	for x := int32(-1); x <= 1; x++ {
		for z := int32(-1); z <= 1; z++ {
			gamestest.Receive(t, cl, gamestest.Floor(t, grid.ChunkPos{X: x, Z: z}))
		}
	}
	for _, p := range []packet{begin(fromInit2).text(""), begin(fromRequestMedia).u16(1).text(frontImage), begin(fromClientReady)} {
		if m, err := cl.translate(p, time.Now()); m != nil || err != nil {
			t.Fatalf("%v, %v", m, err)
		}
	}
	return cl, s
}

// moveTo is the packet of a client that is at a pose.
func moveTo(p motion.Pose) packet {
	at := origin{}.place(p)
	b := begin(fromPlayerPos)
	for _, v := range []float64{at.x, at.y, at.z, 0, 0, 0, at.pitch, at.yaw} {
		b = b.u32(uint32(int32(math.Round(v * 100))))
	}
	return b.u32(0).u8(0, 0)
}

// interact is the packet of a client that digs or places.
func interact(action byte, slot uint16, under, above grid.Pos) packet {
	return interactFrom(start, action, slot, under, above)
}

// interactFrom is that of a client whose player has a pose.
func interactFrom(p motion.Pose, action byte, slot uint16, under, above grid.Pos) packet {
	what := begin(fromInteract).u8(action).u16(slot).u32(14).u8(0, pointedNode).node(origin{}.node(under)).node(origin{}.node(above))
	return append(what, moveTo(p)[2:]...)
}

// Whatever a client sends, in its handshake and later, becomes messages that a session takes, or an error.
func FuzzClient(f *testing.F) {
	f.Add([]byte(initOf("ada", 37, 41)), []byte(moveTo(start)))
	f.Add([]byte(initOf("ada", 40, 41)), []byte(interact(interactPlaced, 2, grid.Pos{X: 1, Y: 9, Z: 3}, grid.Pos{X: 1, Y: 10, Z: 3})))
	f.Add([]byte(begin(fromFirstSRP)), []byte(interact(interactDug, 0, grid.Pos{X: 1, Y: 9, Z: 3}, grid.Pos{})))
	f.Add([]byte(begin(fromFirstSRP).bytes(make([]byte, player.SaltSize)).text("V").u8(0)), []byte{})
	f.Add([]byte(begin(fromSRPBytesA).text("A").u8(1)), []byte{})
	f.Add([]byte{}, []byte(begin(fromChatMessage).wide("/help ✓")))
	f.Add([]byte{0, 2}, []byte(begin(fromDeletedBlocks).u8(2).node(node{0, 0, 0})))
	f.Add([]byte{0}, []byte(append(begin(fromInventoryAction), "Move 1 current_player main 0 current_player main 9"...)))
	f.Add([]byte{0}, []byte(begin(fromRequestMedia).u16(65535).text("x")))
	f.Add([]byte{0}, []byte(moveTo(motion.Pose{X: 1, Y: -100, Z: 1})))
	f.Fuzz(func(t *testing.T, login, sent []byte) {
		for v, known := range map[*player.Verifier]bool{nil: true, {1, 2}: true, new(player.Verifier): false} {
			look := func(string) (*player.Verifier, bool, error) { return v, known, nil }
			if name, _, err := readLogin(&script{in: [][]byte{login}}, look); err == nil {
				t.Errorf("one packet is a login of %q", name)
			}
			after := [][]byte{initOf("ada", 37, 41), login, begin(fromSRPBytesM).text("M")}
			if _, proved, err := readLogin(&script{in: after}, look); err == nil && known && proved != nil {
				t.Error("a password is proved")
			}
		}
		cl, _ := playing(t)
		for _, p := range [][]byte{moveTo(start), sent, sent} {
			m, err := cl.translate(p, time.Now())
			if err != nil {
				continue
			}
			messages := 0
			for ; m != nil; m = cl.mu.edits.Next() {
				gamestest.CheckMessage(t, m)
				messages++
			}
			if messages > 2 { // both halves of a door
				t.Errorf("a packet becomes %d messages", messages)
			}
		}
		if len(cl.mu.slots) != len(firstSlots()) {
			t.Errorf("%d slots are kept", len(cl.mu.slots))
		}
	})
}

// Whatever datagrams a peer sends, what is kept of them is bounded, and packets are not longer than promised.
func FuzzPeer(f *testing.F) {
	f.Add([]byte{kindReliable, 0xff, 0xdc, kindOriginal, 0, 0}, byte(0))
	f.Add([]byte{kindReliable, 0xff, 0xdc, kindSplit, 0, 0, 0, 2, 0, 0, 1}, byte(1))
	f.Add([]byte{kindReliable, 0xff, 0xdc, kindControl, controlAck, 0, 0}, byte(2))
	f.Add([]byte{kindControl, controlDisconnect}, byte(0))
	f.Add([]byte{kindOriginal}, byte(0))
	f.Add([]byte{kindReliable, 0xff, 0xdc, kindReliable, 0xff, 0xdd, kindOriginal}, byte(0))
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { l.Close() })
	to := netip.MustParseAddrPort(l.Addr().String()) // its own: what comes from there is not an answer
	f.Fuzz(func(t *testing.T, body []byte, channel byte) {
		if len(body) == 0 {
			return
		}
		p := newPeer(l, to, 7)
		now := time.Now()
		for i := range 2 * maxInbox {
			if body[0] == kindReliable && len(body) > 3 && i > 0 { // the next numbers
				binary.BigEndian.PutUint16(body[1:], binary.BigEndian.Uint16(body[1:])+1)
			}
			p.receive(channel%channels, body, now)
		}
		kept := 0
		for i := range p.channels {
			kept += len(p.channels[i].ahead)
			if len(p.channels[i].split) > maxPacket {
				t.Fatalf("%d bytes of a packet are kept", len(p.channels[i].split))
			}
		}
		if len(p.inbox) > maxInbox+maxAhead || kept > channels*maxAhead {
			t.Fatalf("%d packets and %d early ones are kept", len(p.inbox), kept)
		}
		buffer := make([]byte, maxPacket)
		for range p.inbox {
			if _, err := p.Read(buffer); err != nil {
				t.Fatal(err)
			}
		}
		p.receive(0, []byte{kindOriginal, 0}, now)
		if err := p.SetReadDeadline(now); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Read(buffer); !os.IsTimeout(err) && (err == nil || err != p.err) {
			t.Fatalf("a read after its deadline returns %v", err)
		}
	})
}

// A place that a client sends has a pose within the rules of the wire, and is the same again.
func FuzzPlace(f *testing.F) {
	f.Add(int32(0), int32(5100), int32(-65535), int32(0), int32(0))
	f.Add(int32(30_000_000), int32(-32768), int32(1), int32(18000), int32(-9000))
	f.Fuzz(func(t *testing.T, x, y, z, yaw, pitch int32) {
		o := origin{x: -16384, z: 32768}
		at := place{x: float64(x) / 100, y: float64(y) / 100, z: float64(z) / 100, yaw: float64(yaw) / 100, pitch: float64(pitch) / 100}
		pose := o.pose(at)
		if math.Abs(float64(pose.Pitch)) > math.Pi/2+1e-6 || math.Abs(float64(pose.Yaw)) > math.Pi+1e-6 {
			t.Fatalf("%v becomes %v", at, pose)
		}
		back := o.place(pose)
		if math.Abs(back.x-at.x) > 1e-3 || math.Abs(back.y-at.y) > 1e-3 || math.Abs(back.z-at.z) > 1e-3 {
			t.Fatalf("%v becomes %v, and that %v", at, pose, back)
		}
		if turn := math.Remainder(back.yaw-at.yaw, 360); math.Abs(turn) > .1 {
			t.Fatalf("%v becomes %v, and that %v", at, pose, back)
		}
	})
}
