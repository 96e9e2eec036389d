// Package classicclient is a client of Minecraft Classic, protocol 7, with or without CPE: written against the
// protocol's description, for tests of gameserver/classicube. Any goroutine may use a Client; one of its own reads
// until the connection ends.
package classicclient

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
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
	"FastMap", "SetHotbar", "InventoryOrder", "ExtPlayerList", "PlayerClick", "SomethingElse",
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
	Level   Level
	Levels  int
	Self    Place // where the server has put the client last, or it has moved
	Puts    int   // how often
	Players map[byte]string
	Chat    []string
	Status  string // at the bottom right
	Kicked  string // the reason
	Packets map[byte]int
	Err     error // the end of the connection
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
	c.mu.Players, c.mu.Packets = make(map[byte]string), make(map[byte]int)
	mark := 0
	if o.Extensions != nil {
		mark = 0x42
	}
	if err := c.send(0, cmp.Or(o.Version, 7), pad(o.Name), pad("-"), mark); err != nil {
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

// pad fills a text up to the 64 bytes that it has in packets.
func pad(t string) []byte { return append([]byte(t), bytes.Repeat([]byte{' '}, 64-len(t))...) }

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

// stand sends where the client is, as the game does all the time, until the connection ends: who is silent is
// disconnected.
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
	return c.send(8, 255, fixed(to.X), fixed(to.Y)+51, fixed(to.Z), 0, 0)
}

func fixed(v float64) uint16 { return uint16(int16(v * 32)) }

// Build places a block, or breaks one if the id is 0.
func (c *Client) Build(x, y, z int, id byte) error {
	mode := 1
	if id == 0 {
		mode, id = 0, 1 // what the player holds
	}
	return c.send(5, uint16(x), uint16(y), uint16(z), mode, id)
}

// Use clicks on a block with the right button, as a client that would place a block on top of it.
func (c *Client) Use(x, y, z int, id byte) error {
	for action := range 2 { // pressed, and released
		if err := c.send(0x22, 1, action, uint16(0), uint16(0), 255, uint16(x), uint16(y), uint16(z), 1); err != nil {
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

// Say sends a line of at most 64 bytes.
func (c *Client) Say(text string) error {
	part := 255
	if c.both["LongerMessages"] {
		part = 0 // nothing follows that continues it
	}
	return c.send(13, part, pad(text))
}

// send sends a packet of bytes, numbers of 16 and 32 bits, and texts.
func (c *Client) send(kind byte, body ...any) error {
	packet := []byte{kind}
	for _, part := range body {
		switch part := part.(type) {
		case byte:
			packet = append(packet, part)
		case int:
			packet = append(packet, byte(part))
		case uint16:
			packet = binary.BigEndian.AppendUint16(packet, part)
		case uint32:
			packet = binary.BigEndian.AppendUint32(packet, part)
		case []byte:
			packet = append(packet, part...)
		}
	}
	_, err := c.conn.Write(packet)
	return err
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
			0x10: 66, 0x11: 68, 0x12: 2, 0x13: 1, 0x16: 196 - 1, 0x18: 2, 0x19: 7, 0x20: 7, 0x21: 137, 0x29: 5, 0x2b: 3, 0x2c: 2, 0x2d: 2,
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
			if e := text(body[:64]); slices.Contains(extensions, e) {
				c.both[e] = true
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
	err := c.send(0x10, pad("test"), uint16(len(all)))
	for _, e := range all {
		version := uint32(1)
		if e == "ExtPlayerList" {
			version = 2
		}
		err = errors.Join(err, c.send(0x11, pad(e), version))
	}
	return err
}

func text(b []byte) string { return strings.TrimRight(string(b), " ") }

func xyz(b []byte) (x, y, z int) {
	return int(binary.BigEndian.Uint16(b)), int(binary.BigEndian.Uint16(b[2:])), int(binary.BigEndian.Uint16(b[4:]))
}

func place(b []byte) Place {
	x, y, z := xyz(b)
	return Place{X: float64(int16(x)) / 32, Y: (float64(int16(y)) - 51) / 32, Z: float64(int16(z)) / 32}
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
	case 0x03:
		c.mu.loading.Write(b[2 : 2+binary.BigEndian.Uint16(b)])
	case 0x04:
		return c.finish(xyz(b))
	case 0x06:
		x, y, z := xyz(b)
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
	case 0x0d:
		if b[0] == 11 {
			s.Status = text(b[1:])
		} else {
			s.Chat = append(s.Chat, text(b[1:]))
		}
	case 0x0e:
		s.Kicked = text(b)
	}
	return nil
}

func (c *Client) spawn(id byte, name string, at Place) {
	if id != 255 {
		c.mu.Players[id] = name
	}
	c.put(id, at)
}

// put moves the client's own player. The place is that of a correction: the server sends it lower than it is.
func (c *Client) put(id byte, at Place) {
	if id == 255 {
		at.Y += 22. / 32
		c.mu.Self = at
		c.mu.Puts++
	}
}

func (c *Client) finish(width, height, length int) error {
	blocks, err := c.unpack()
	if err != nil {
		return err
	}
	if volume := binary.BigEndian.Uint32(blocks); len(blocks) != 4+width*height*length || int(volume) != width*height*length {
		return fmt.Errorf("%d of %d blocks of %d×%d×%d", len(blocks)-4, volume, width, height, length)
	}
	c.mu.Level = Level{Width: width, Height: height, Length: length, Blocks: blocks[4:]}
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
