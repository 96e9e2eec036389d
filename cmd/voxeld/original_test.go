package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
)

// original is a connection of VoxelPopuli's own protocol, byte for byte as its released client sends it: no newline
// ends a handshake or a query.
type original struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

type packet struct {
	Type   int       `json:"type"`
	Args   []float64 `json:"args"`
	Player string    `json:"player"`
}

func dialOriginal(t *testing.T, address string) *original {
	t.Helper()
	return dialOriginalFrom(t, nil, address)
}

// dialOriginalFrom dials from an address of this machine; nil leaves the choice to the system.
func dialOriginalFrom(t *testing.T, local net.IP, address string) *original {
	t.Helper()
	dialer := net.Dialer{Timeout: patience}
	if local != nil {
		dialer.LocalAddr = &net.TCPAddr{IP: local}
	}
	conn, err := dialer.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(60 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &original{t: t, conn: conn, in: bufio.NewReader(conn)}
}

func (c *original) send(bytes string) {
	c.t.Helper()
	if _, err := io.WriteString(c.conn, bytes); err != nil {
		c.t.Fatal(err)
	}
}

// expect reads exactly these bytes: the answer to a handshake has no newline.
func (c *original) expect(want string) {
	c.t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c.in, got); err != nil || string(got) != want {
		c.t.Fatalf("got %q (%v), want %q", got, err, want)
	}
}

// closed waits until the server has closed the connection, and returns what it sent before.
func (c *original) closed() string {
	c.t.Helper()
	said, err := io.ReadAll(c.in)
	if err, timeout := err.(net.Error); timeout && err.Timeout() {
		c.t.Fatalf("the server did not close the connection; it said %.100q", said)
	}
	return string(said)
}

// packet reads packets until one of the type, and returns it. TIME is sent all the time.
func (c *original) packet(kind int) packet {
	c.t.Helper()
	for {
		if p := c.next(); p.Type == kind {
			return p
		}
	}
}

// next reads a packet.
func (c *original) next() packet {
	c.t.Helper()
	line, err := c.in.ReadBytes('\n')
	if err != nil {
		c.t.Fatalf("waiting for a packet: %v", err)
	}
	var p packet
	if err := json.Unmarshal(line, &p); err != nil {
		c.t.Fatalf("packet %.100q: %v", line, err)
	}
	return p
}

func (c *original) whereIsChunk(pos grid.ChunkPos) string {
	c.t.Helper()
	c.send(fmt.Sprintf("\x00[%d,%d]", pos.X, pos.Z))
	line, err := c.in.ReadBytes('\n')
	if err != nil {
		c.t.Fatalf("where is chunk %v: %v", pos, err)
	}
	var at struct {
		IP   string `json:"ip"`
		Port int    `json:"port"`
	}
	if err := json.Unmarshal(line, &at); err != nil {
		c.t.Fatalf("where is chunk %v: %v in %q", pos, err, line)
	}
	return net.JoinHostPort(at.IP, fmt.Sprint(at.Port))
}

func (c *original) whereIsPlayer(name string) (x, y, z float64) {
	c.t.Helper()
	c.send("\x01" + fmt.Sprintf(`{"name":%q}`, name))
	text, err := c.in.ReadBytes('}')
	if err != nil {
		c.t.Fatalf("where is %s: %v", name, err)
	}
	var at struct{ X, Y, Z float64 }
	if err := json.Unmarshal(text, &at); err != nil {
		c.t.Fatalf("where is %s: %v in %q", name, err, text)
	}
	return at.X, at.Y, at.Z
}

// VoxelPopuli's released client can play: everything that it sends and receives, in its own bytes.
func TestOriginalClientPlays(t *testing.T) {
	d := startDaemon(t)
	ping := dialOriginal(t, d.Game)
	ping.send(`{"type":"ping"}`)
	ping.expect("pong")
	if rest := ping.closed(); rest != "" {
		t.Errorf("after pong came %q", rest)
	}

	dht := dialOriginal(t, d.Game)
	dht.send(`{"type":"dht"}`)
	dht.expect("ok")
	if at := dht.whereIsChunk(grid.ChunkPos{X: 3, Z: -2}); at != d.Game {
		t.Fatalf("the chunk lives at %s, the only node is %s", at, d.Game)
	}
	connectTo := func(at grid.ChunkPos, name string) *original {
		c := dialOriginal(t, d.Game)
		c.send(fmt.Sprintf(`{"type":"connect","chunk":[%d,%d],"player":%q}`, at.X, at.Z, name))
		c.expect("ok")
		return c
	}
	connect := func(name string) *original { return connectTo(grid.ChunkPos{X: 3, Z: -2}, name) }
	block := func(p packet, x, y, z int) int { return int(p.Args[2+1024*x+32*y+z]) }

	// Unknown players start on the ground, in free space.
	x, y, z := dht.whereIsPlayer("stranger")
	feet := grid.Pos{X: int32(floor(x)), Y: int32(floor(y)), Z: int32(floor(z))}
	land := connectTo(feet.Chunk(), "stranger").packet(5)
	at := func(y int32) int {
		o := feet.Chunk().Origin()
		return block(land, int(feet.X-o.X), int(y), int(feet.Z-o.Z))
	}
	if at(feet.Y-1) == 0 || at(feet.Y) != 0 || at(feet.Y+1) != 0 {
		t.Errorf("an unknown player begins at %v, %v, %v, between blocks %d, %d and %d", x, y, z, at(feet.Y-1), at(feet.Y), at(feet.Y+1))
	}

	ann := connect("ann")
	data := ann.packet(5)
	if len(data.Args) != 2+32768 || data.Args[0] != 3 || data.Args[1] != -2 {
		t.Fatalf("CHUNK_DATA of %d numbers for chunk %v", len(data.Args), data.Args[:2])
	}
	ann.send(`{"type":1,"args":[3,-2],"player":"ann"}` + "\n")
	if time := ann.packet(6); len(time.Args) != 1 || time.Args[0] < 0 || time.Args[0] >= 1440 {
		t.Errorf("TIME %v", time.Args)
	}

	bob := connect("bob")
	bob.packet(5)
	if seen := bob.packet(1); seen.Player != "ann" || seen.Args[0] != 3 || seen.Args[1] != -2 {
		t.Errorf("bob, new, is told of %+v; want ann in 3, -2", seen)
	}
	bob.send(`{"type":1,"args":[3,-2],"player":"bob"}` + "\n")
	if seen := ann.packet(1); seen.Player != "bob" {
		t.Errorf("ann is told of %q, want bob", seen.Player)
	}

	// 32·3+10 = 106, and −2·32+5 = −59; the block is two beside it.
	ann.send(`{"type":3,"args":[106.25,20,-59.5,90],"player":"ann"}` + "\n")
	for {
		if m := bob.packet(3); m.Player == "ann" && m.Args[0] == 106.25 {
			if len(m.Args) != 4 || m.Args[1] != 20 || m.Args[2] != -59.5 || m.Args[3] != 90 {
				t.Errorf("ann's move arrives as %v", m.Args)
			}
			break
		}
	}

	was := block(data, 12, 20, 5)
	want := 1
	if was == 1 {
		want = 3
	}
	ann.send(fmt.Sprintf(`{"type":7,"args":[108,20,-59,%d],"player":"ann"}`+"\n", want))
	for _, c := range []*original{ann, bob} {
		if got := block(c.packet(5), 12, 20, 5); got != want {
			t.Errorf("after BLOCK_CHANGE the block is %d, want %d", got, want)
		}
	}
	ann.send(`{"type":2,"args":[3,-2],"player":"ann"}` + "\n")
	if gone := bob.packet(2); gone.Player != "ann" {
		t.Errorf("bob is told that %q left, want ann", gone.Player)
	}
	eventually(t, "ann is saved", patience, func() bool {
		x, y, z := dht.whereIsPlayer("ann")
		return x == 106.25 && y == 20 && z == -59.5
	})
}
