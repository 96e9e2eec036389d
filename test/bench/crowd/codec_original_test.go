package crowd

import (
	"bufio"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"strings"
	"testing"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/legacymsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// A player joins in the order that docs/protocol.md specifies, and stands on the land that they received.
func TestOriginalEnters(t *testing.T) {
	at := grid.ChunkPos{X: -2, Z: 3}
	client, server := net.Pipe()
	defer client.Close()
	said := make(chan string, 1)
	go func() { // ends when the client has entered, or with the test
		defer server.Close()
		in := bufio.NewReader(server)
		h, err := legacymsg.ReadHandshake(in)
		if err != nil {
			said <- err.Error()
			return
		}
		blocks := new(legacymsg.Slab)
		for x := range 32 {
			for z := range 32 {
				blocks[legacymsg.SlabIndex(x, 6, z)] = 1
			}
		}
		line, err := answer(in, server, "ok"+string(legacymsg.AppendChunkData(nil, at, blocks)))
		if err == nil {
			_, err = io.WriteString(server, `{"type":3,"args":[1,2,3,4],"player":"ben"}`+"\n"+`{"type":6,"args":[1.5],"player":""}`+"\n"+`{"type":1`)
		}
		if err != nil {
			line = []byte(err.Error())
		}
		said <- string(h.Purpose) + " " + h.Player + " " + string(line)
	}()
	heights := NewHeightMap()
	a, rest, err := originalCodec{at}.enter(client, "ada", 1, heights)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := <-said, `connect ada {"type":1,"args":[-2,3],"player":"ada"}`; got != want {
		t.Errorf("the client said %s, want %s", got, want)
	}
	if a.player != "ada" || a.pose.Chunk() != at || a.pose.Y != 7 || heights.chunk(at) == nil {
		t.Errorf("arrived as %+v", a)
	}
	if !strings.HasPrefix(`{"type":1`, string(rest)) {
		t.Errorf("read %q too far", rest)
	}
}

// answer writes to the client, and returns the line that it sends next.
func answer(in *bufio.Reader, server net.Conn, text string) ([]byte, error) {
	if _, err := io.WriteString(server, text); err != nil {
		return nil, err
	}
	return wire.ReadLine(in, wire.MaxLine)
}

func TestOriginalSplit(t *testing.T) {
	for _, c := range []struct {
		in, message, rest string
		whole, bad        bool
	}{
		{in: ""},
		{in: `{"type":6,`, rest: `{"type":6,`},
		{in: "{}\n", message: "{}", whole: true},
		{in: "{}\n{\"t", message: "{}", rest: `{"t`, whole: true},
		{in: strings.Repeat("1", wire.MaxServerLine+1), bad: true},
	} {
		message, rest, err := originalCodec{}.split([]byte(c.in))
		if (err != nil) != c.bad || (message != nil) != c.whole || string(message) != c.message || string(rest) != c.rest {
			t.Errorf("cut(%.40q) = %q, %.40q, %v", c.in, message, rest, err)
		}
	}
}

func TestOriginalDecode(t *testing.T) {
	for _, c := range []struct {
		line, player string
		pose         motion.Pose
		frame, bad   bool
	}{
		{line: `{"type":3,"args":[1.015625,20,-3.5,90],"player":"ada"}`, player: "ada", pose: motion.Pose{X: 1.015625, Y: 20, Z: -3.5, Yaw: -math.Pi / 2}},
		{line: `{"type":6,"args":[484.13],"player":""}`, frame: true},
		{line: `{"type":1,"args":[0,0],"player":"ada"}`},
		{line: `{"type":2,"args":[0,0],"player":"ada"}`},
		{line: `{"type":5,"args":[not read`},
		{line: `{"type":3,"args":[1,2],"player":"ada"}`, bad: true},
		{line: `ok`, bad: true},
	} {
		seen, pose := "", motion.Pose{}
		frame, err := originalCodec{}.decode(new(sessionmsg.AvatarDecoder), []byte(c.line), func(id string, p motion.Pose) { seen, pose = id, p })
		if frame != c.frame || (err != nil) != c.bad || seen != c.player || pose != c.pose {
			t.Errorf("look(%s) = %v, %v; saw %q at %+v", c.line, frame, err, seen, pose)
		}
	}
}

// A player's moves stay on the grid, and decoding a move's line returns the same position.
func TestOriginalMovesAreExact(t *testing.T) {
	land := new(chunkHeights)
	for i := range land {
		land[i] = int16(i * 7 % 5)
	}
	b := mover{rng: rand.New(rand.NewPCG(1, 2)), heights: land, grain: originalGrain, pose: motion.Pose{X: 3.3, Y: 20, Z: 4.4}}
	for i := range 2000 {
		b.step(.05)
		line, err := originalCodec{}.appendMove(nil, b.pose)
		if err != nil {
			t.Fatal(err)
		}
		packet, err := legacymsg.DecodeClientPacket(line[:len(line)-1])
		m, ok := packet.(legacymsg.PlayerMove)
		if err != nil || !ok || m.X != b.pose.X || m.Y != b.pose.Y || m.Z != b.pose.Z {
			t.Fatalf("step %d: %s for %+v: %v", i, line, b.pose, err)
		}
		if m.X*64 != math.Trunc(m.X*64) || m.Y*64 != math.Trunc(m.Y*64) || m.Z*64 != math.Trunc(m.Z*64) || b.pose.Chunk() != b.home {
			t.Fatalf("step %d: at %+v", i, b.pose)
		}
	}
}
