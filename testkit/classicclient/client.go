// Package classicclient is a client of Minecraft Classic, protocol 7, with or without CPE: written against the protocol's description, for
// tests of gameserver/classicube. Any goroutine may use a Client; one of its own reads until the connection ends.
package classicclient

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/wire"
)

// Options are how a client joins.
type Options struct {
	Name       string
	Extensions []string // nil: without CPE
	Version    byte     // of the protocol; 0: 7
}

// Usual are the extensions of ClassiCube that tests need.
var Usual = []string{
	"ClickDistance", "CustomBlocks", "EnvColors", "EnvMapAspect", "MessageTypes", "HackControl", "FullCP437", "LongerMessages", "TwoWayPing",
	"FastMap", "SetHotbar", "ExtPlayerList", "PlayerClick", "SomethingElse",
}

// Place is a place in a level: X, Y (of the feet) and Z in blocks.
type Place struct{ X, Y, Z float64 }

// Level is what the client was sent.
type Level struct {
	Width, Height, Length int
	Blocks                []byte
}

// State is what a client has been sent.
type State struct {
	Level    Level
	Levels   int
	Self     Place // where the server has put the client last, or it has moved
	Puts     int   // how often
	Players  map[byte]string
	Places   map[byte]Place
	Listed   map[uint16]string // in the player list
	Chat     []string
	Status   string // at the bottom right
	Kicked   string // the reason
	Packets  map[byte]int
	Hotbar   map[byte]byte
	Pongs    []uint16
	Operator byte
	Err      error // the end of the connection
}

// Client is a connection.
type Client struct {
	conn net.Conn
	in   *bufio.Reader
	both map[string]bool
	done chan struct{}

	mu struct {
		sync.Mutex
		State
		loading bytes.Buffer
	}
}

// Dial connects over TCP, and joins.
func Dial(address string, o Options) (*Client, error) {
	c, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		return nil, err
	}
	return New(c, o)
}

// New joins over a connection.
func New(conn net.Conn, o Options) (*Client, error) {
	c := &Client{conn: conn, in: bufio.NewReader(conn), both: make(map[string]bool), done: make(chan struct{})}
	c.mu.Players, c.mu.Places, c.mu.Listed = make(map[byte]string), make(map[byte]Place), make(map[uint16]string)
	c.mu.Packets, c.mu.Hotbar = make(map[byte]int), make(map[byte]byte)
	version, mark := o.Version, byte(0)
	if version == 0 {
		version = 7
	}
	if o.Extensions != nil {
		mark = 0x42
	}
	hello := append([]byte{0, version}, Text(o.Name)...)
	hello = append(append(hello, Text("-")...), mark)
	if _, err := conn.Write(hello); err != nil {
		return nil, err
	}
	go func() { // ends with the connection
		defer close(c.done)
		err := c.read(o.Extensions)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.mu.Err = err
	}()
	go c.stand()
	return c, nil
}

// Text fills a text up to the 64 bytes that it has in packets.
func Text(t string) []byte { return append([]byte(t), bytes.Repeat([]byte{' '}, 64-len(t))...) }

// Leave ends the connection.
func (c *Client) Leave() {
	c.conn.Close() //nolint:errcheck // it may be broken
	<-c.done
}

// Look calls f with what the client was sent.
func (c *Client) Look(f func(s *State)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.mu.State)
}

// Block returns a block of the level.
func (c *Client) Block(x, y, z int) (id byte) {
	c.Look(func(s *State) { id = s.Level.Blocks[s.Level.index(x, y, z)] })
	return id
}

func (l *Level) index(x, y, z int) int { return (y*l.Length+z)*l.Width + x }

// Move sends where the client is.
func (c *Client) Move(to Place) error {
	c.mu.Lock() // places are sent in order
	defer c.mu.Unlock()
	c.mu.Self = to
	return c.sendPlace()
}

// stand sends where the client is, as the game does all the time, until the connection ends: who is silent is disconnected.
func (c *Client) stand() {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-c.done:
			return
		case <-ticker.C:
		}
		c.mu.Lock()
		if c.mu.Puts > 0 && c.mu.loading.Len() == 0 {
			c.sendPlace() //nolint:errcheck // the reader sees the end
		}
		c.mu.Unlock()
	}
}

// sendPlace sends where the client is. The caller holds the lock.
func (c *Client) sendPlace() error {
	to := c.mu.Self
	return c.send(8, 255, binary.BigEndian.AppendUint16(nil, fixed(to.X)), binary.BigEndian.AppendUint16(nil, fixed(to.Y)+51),
		binary.BigEndian.AppendUint16(nil, fixed(to.Z)), []byte{0, 0})
}

func fixed(v float64) uint16 { return uint16(int16(v * 32)) }

// Build places a block, or breaks one if the id is 0.
func (c *Client) Build(x, y, z int, id byte) error {
	body := binary.BigEndian.AppendUint16(nil, uint16(x))
	body = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(body, uint16(y)), uint16(z))
	mode := byte(1)
	if id == 0 {
		mode, id = 0, 1 // what the player holds
	}
	return c.send(5, body, mode, id)
}

// Use clicks on a block with the right button, as a client that would place a block on top of it.
func (c *Client) Use(x, y, z int, id byte) error {
	at := binary.BigEndian.AppendUint16(nil, uint16(x))
	at = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(at, uint16(y)), uint16(z))
	for action := range 2 { // pressed, and released
		if err := c.send(0x22, 1, action, []byte{0, 0, 0, 0}, 255, at, 1); err != nil {
			return err
		}
		if action == 0 {
			if err := c.Build(x, y+1, z, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// Say sends a line of at most 64 bytes. With more, LongerMessages, another follows that continues it.
func (c *Client) Say(text string, more bool) error {
	part := byte(255)
	if c.both["LongerMessages"] {
		part = 0
	}
	if more {
		part = 1
	}
	return c.send(13, part, Text(text))
}

// Raw sends bytes.
func (c *Client) Raw(b []byte) error {
	_, err := c.conn.Write(b)
	return err
}

func (c *Client) send(kind byte, body ...any) error {
	packet := []byte{kind}
	for _, part := range body {
		switch part := part.(type) {
		case byte:
			packet = append(packet, part)
		case int:
			packet = append(packet, byte(part))
		case []byte:
			packet = append(packet, part...)
		}
	}
	return c.Raw(packet)
}

// read reads packets until the connection ends.
func (c *Client) read(extensions []string) error {
	left := -1 // extensions that the server still lists
	for {
		kind, err := c.in.ReadByte()
		if err != nil {
			return err
		}
		size, known := map[byte]int{
			0x00: 130, 0x01: 0, 0x02: 0, 0x03: 1027, 0x04: 6, 0x06: 7, 0x07: 73, 0x08: 9, 0x0c: 1, 0x0d: 65, 0x0e: 64, 0x0f: 1,
			0x10: 66, 0x11: 68, 0x12: 2, 0x13: 1, 0x16: 196 - 1, 0x18: 2, 0x19: 7, 0x20: 7, 0x21: 137, 0x29: 5, 0x2b: 3, 0x2d: 2,
		}[kind]
		if !known {
			return fmt.Errorf("the server sent packet %#x", kind)
		}
		if kind == 2 && c.both["FastMap"] {
			size += 4
		}
		body := make([]byte, size)
		if _, err := io.ReadFull(c.in, body); err != nil {
			return err
		}
		switch kind {
		case 0x10:
			left = int(binary.BigEndian.Uint16(body[64:]))
		case 0x11:
			left--
			for _, e := range extensions {
				if e == text(body[:64]) {
					c.both[e] = true
				}
			}
			if left == 0 {
				err = c.listExtensions(extensions)
			}
		case 0x13:
			err = c.send(0x13, 1)
		default:
			err = c.apply(kind, body)
		}
		if err != nil {
			return err
		}
	}
}

func (c *Client) listExtensions(all []string) error {
	hello := append([]byte{0x10}, Text("test")...)
	hello = binary.BigEndian.AppendUint16(hello, uint16(len(all)))
	for _, e := range all {
		version := uint32(1)
		if e == "ExtPlayerList" {
			version = 2
		}
		hello = binary.BigEndian.AppendUint32(append(append(hello, 0x11), Text(e)...), version)
	}
	return c.Raw(hello)
}

func text(b []byte) string { return strings.TrimRight(string(b), " ") }

func place(b []byte) Place {
	at := func(i int) float64 { return float64(int16(binary.BigEndian.Uint16(b[i:]))) }
	return Place{X: at(0) / 32, Y: (at(2) - 51) / 32, Z: at(4) / 32}
}

// apply applies a packet.
func (c *Client) apply(kind byte, b []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &c.mu.State
	s.Packets[kind]++
	switch kind {
	case 0x02:
		c.mu.loading.Reset()
		if len(b) == 4 {
			c.mu.loading.Write(b)
		}
		clear(s.Players)
		clear(s.Places)
	case 0x03:
		c.mu.loading.Write(b[2 : 2+binary.BigEndian.Uint16(b)])
	case 0x04:
		return c.finish(int(binary.BigEndian.Uint16(b)), int(binary.BigEndian.Uint16(b[2:])), int(binary.BigEndian.Uint16(b[4:])))
	case 0x06:
		x, y, z := int(binary.BigEndian.Uint16(b)), int(binary.BigEndian.Uint16(b[2:])), int(binary.BigEndian.Uint16(b[4:]))
		if x >= s.Level.Width || y >= s.Level.Height || z >= s.Level.Length {
			return fmt.Errorf("a block at %d %d %d is not in the level", x, y, z)
		}
		s.Level.Blocks[s.Level.index(x, y, z)] = b[6]
	case 0x07:
		c.spawn(b[0], text(b[1:65]), place(b[65:]))
	case 0x21:
		c.spawn(b[0], text(b[1:65]), place(b[129:]))
	case 0x08:
		c.put(b[0], place(b[1:]))
	case 0x0c:
		if _, known := s.Players[b[0]]; !known {
			return fmt.Errorf("player %d left, who was not there", b[0])
		}
		delete(s.Players, b[0])
		delete(s.Places, b[0])
	case 0x16:
		s.Listed[binary.BigEndian.Uint16(b)] = text(b[2:66])
	case 0x18:
		delete(s.Listed, binary.BigEndian.Uint16(b))
	case 0x0d:
		if b[0] == 11 {
			s.Status = text(b[1:])
		} else {
			s.Chat = append(s.Chat, text(b[1:]))
		}
	case 0x0e:
		s.Kicked = text(b)
	case 0x0f:
		s.Operator = b[0]
	case 0x2b:
		if b[0] == 0 {
			s.Pongs = append(s.Pongs, binary.BigEndian.Uint16(b[1:]))
		}
	case 0x2d:
		s.Hotbar[b[1]] = b[0]
	}
	return nil
}

func (c *Client) spawn(id byte, name string, at Place) {
	if id != 255 {
		c.mu.Players[id] = name
	}
	c.put(id, at)
}

// put moves a player. The client's own place is that of a correction: the server sends it lower than it is.
func (c *Client) put(id byte, at Place) {
	if id == 255 {
		at.Y += 22. / 32
		c.mu.Self = at
		c.mu.Puts++
		return
	}
	c.mu.Places[id] = at
}

func (c *Client) finish(width, height, length int) error {
	blocks, err := c.unpack()
	if err != nil {
		return err
	}
	if volume := binary.BigEndian.Uint32(blocks); len(blocks) != 4+width*height*length || int(volume) != width*height*length {
		return fmt.Errorf("%d of %d blocks of %d×%d×%d", len(blocks)-4, volume, width, height, length)
	}
	blocks = blocks[4:]
	c.mu.Level = Level{Width: width, Height: height, Length: length, Blocks: blocks}
	c.mu.Levels++
	return nil
}

// unpack returns the number of the level's blocks, and the blocks.
func (c *Client) unpack() ([]byte, error) {
	if c.both["FastMap"] {
		volume := bytes.Clone(c.mu.loading.Next(4))
		blocks, err := wire.Inflate("level", c.mu.loading.Bytes(), 1<<30)
		return append(volume, blocks...), err
	}
	zipped, err := gzip.NewReader(&c.mu.loading)
	if err != nil {
		return nil, err
	}
	blocks, err := io.ReadAll(zipped)
	if err == nil && len(blocks) < 4 {
		err = io.ErrUnexpectedEOF
	}
	return blocks, err
}
