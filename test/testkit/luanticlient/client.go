// Package luanticlient is a client of Luanti, network protocol 39: written against the protocol's description, for
// tests of gameserver/luanti. Any goroutine may use a Client; two of its own read, and send again, until the connection
// ends.
package luanticlient

import (
	"bytes"
	"cmp"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"math"
	"net"
	"sync"
	"time"
	"unicode/utf16"
)

// Options are how a client joins.
type Options struct {
	Name     string
	Password string
	Version  uint16 // of the protocol; 0: 39
	Login    bool   // with the button Login: a name that is not known is refused
	Register bool   // with the button Register: a name that is known is refused
}

// Place is a place of the player's feet, in nodes: their middles are at whole numbers.
type Place struct{ X, Y, Z float64 }

// Node is the position of a node.
type Node struct{ X, Y, Z int }

// State is what a client has been sent.
type State struct {
	Blocks    map[Node]*[4096]uint16 // map blocks, by their position in map blocks
	Self      Place                  // where the server has put the client last, or it has moved
	Puts      int                    // how often
	Players   map[uint16]string
	Chat      []string // "name: text"
	Inventory string
	Media     map[string]int // bytes
	Nodes     int            // that are defined
	Kicked    string         // the reason
	Packets   map[uint16]int
	Err       error // the end of the connection
}

// Client is a client in the game, or on the way there.
type Client struct {
	socket *net.UDPConn
	o      Options
	srp    *SRP

	mu       sync.Mutex
	state    State
	id       uint16
	next     [3]uint16
	expected [3]uint16
	early    [3]map[uint16][]byte
	split    [3][]byte
	flying   map[[2]uint16][]byte // by channel and number
	left     bool
}

const (
	first   = 65500
	silence = 30 * time.Second
)

// Dial connects to a server, and joins.
func Dial(address string, o Options) (*Client, error) {
	to, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return nil, err
	}
	socket, err := net.DialUDP("udp", nil, to)
	if err != nil {
		return nil, err
	}
	return New(socket, o)
}

// New joins over a socket that is connected to a server.
func New(socket *net.UDPConn, o Options) (*Client, error) {
	o.Version = cmp.Or(o.Version, 39)
	c := &Client{socket: socket, o: o, srp: NewSRP(o.Name, o.Password), flying: make(map[[2]uint16][]byte), state: State{
		Blocks: make(map[Node]*[4096]uint16), Players: make(map[uint16]string), Media: make(map[string]int),
		Packets: make(map[uint16]int),
	}}
	for i := range c.next {
		c.next[i], c.expected[i], c.early[i] = first, first, make(map[uint16][]byte)
	}
	c.reliable(0, []byte{0, 0})
	go c.read() // ends with the connection, and when the client has left it
	go c.again()
	return c, nil
}

// Look calls a function with what the client has been sent.
func (c *Client) Look(f func(s *State)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.state)
}

// Leave ends the connection.
func (c *Client) Leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = true
	c.send(0, []byte{0, 3})
	c.socket.Close() //nolint:errcheck // the reader ends
}

// again sends again what was not acknowledged, and the first packet until it is answered.
func (c *Client) again() {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for range ticker.C {
		c.mu.Lock()
		if c.left || c.state.Err != nil {
			c.mu.Unlock()
			return
		}
		for key, body := range maps.Clone(c.flying) {
			c.send(byte(key[0]), body)
		}
		if c.id != 0 && c.state.Packets[2] == 0 {
			c.send(1, append([]byte{1}, c.init()...))
		}
		c.mu.Unlock()
	}
}

func (c *Client) init() []byte {
	b := []byte{0, 2, 29, 0, 0}
	b = binary.BigEndian.AppendUint16(b, min(37, c.o.Version))
	b = binary.BigEndian.AppendUint16(b, c.o.Version)
	return text(b, c.o.Name)
}

func text(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...)
}

func (c *Client) send(channel byte, body []byte) {
	c.socket.Write(append(c.header(channel), body...)) //nolint:errcheck // as good as lost
}

func (c *Client) header(channel byte) []byte {
	return append(binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint32(nil, 0x4f457403), c.id), channel)
}

// reliable sends a packet, again and again until it is acknowledged.
func (c *Client) reliable(channel byte, packet []byte) {
	number := c.next[channel]
	c.next[channel]++
	body := append(binary.BigEndian.AppendUint16([]byte{3}, number), 1)
	body = append(body, packet...)
	c.flying[[2]uint16{uint16(channel), number}] = body
	c.send(channel, body)
}

// read reads until the connection ends.
func (c *Client) read() {
	buffer := make([]byte, 64<<10)
	for {
		c.mu.Lock()
		if c.left {
			c.mu.Unlock()
			return
		}
		err := c.socket.SetReadDeadline(time.Now().Add(silence))
		c.mu.Unlock()
		n := 0
		if err == nil {
			n, err = c.socket.Read(buffer)
		}
		c.mu.Lock()
		if err == nil && n > 8 {
			err = c.receive(buffer[6], bytes.Clone(buffer[7:n]))
		}
		if err != nil && c.state.Err == nil {
			c.state.Err = err
		}
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

var (
	errDisconnected = errors.New("disconnected by the server")
	// The game's own words.
	errTaken        = errors.New("name is taken: please choose another name")
	errUnregistered = errors.New("name is not registered: to create an account on this server, click 'Register'")
)

func (c *Client) receive(channel byte, body []byte) error {
	switch body[0] {
	case 0:
		return c.control(channel, body)
	case 1:
		return c.handle(body[1:])
	case 3:
		number := binary.BigEndian.Uint16(body[1:])
		c.send(channel, binary.BigEndian.AppendUint16([]byte{0, 0}, number))
		if number-c.expected[channel] >= 1<<15 {
			return nil
		}
		c.early[channel][number] = body[3:]
		for {
			next, here := c.early[channel][c.expected[channel]]
			if !here {
				return nil
			}
			delete(c.early[channel], c.expected[channel])
			c.expected[channel]++
			if err := c.inOrder(channel, next); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Client) control(channel byte, body []byte) error {
	switch body[1] {
	case 0:
		delete(c.flying, [2]uint16{uint16(channel), binary.BigEndian.Uint16(body[2:])})
	case 1:
		c.id = binary.BigEndian.Uint16(body[2:])
	case 3:
		return errDisconnected
	}
	return nil
}

func (c *Client) inOrder(channel byte, body []byte) error {
	switch body[0] {
	case 0:
		return c.control(channel, body)
	case 1:
		return c.handle(body[1:])
	case 2:
		of, part := binary.BigEndian.Uint16(body[3:]), binary.BigEndian.Uint16(body[5:])
		if part == 0 {
			c.split[channel] = nil
		}
		c.split[channel] = append(c.split[channel], body[7:]...)
		if part+1 == of {
			return c.handle(c.split[channel])
		}
	}
	return nil
}

// fields reads a packet; the client panics if it is cut off, which fails a test.
type fields struct{ b []byte }

func (f *fields) take(n int) []byte { b := f.b[:n]; f.b = f.b[n:]; return b }
func (f *fields) u16() uint16       { return binary.BigEndian.Uint16(f.take(2)) }
func (f *fields) u32() uint32       { return binary.BigEndian.Uint32(f.take(4)) }
func (f *fields) f32() float64      { return float64(math.Float32frombits(f.u32())) }
func (f *fields) text() string      { return string(f.take(int(f.u16()))) }
func (f *fields) node() Node {
	return Node{int(int16(f.u16())), int(int16(f.u16())), int(int16(f.u16()))}
}
func (f *fields) place() Place { return Place{f.f32() / 10, f.f32() / 10, f.f32() / 10} }
func (f *fields) wide() string {
	units := make([]uint16, f.u16())
	for i := range units {
		units[i] = f.u16()
	}
	return string(utf16.Decode(units))
}

func (c *Client) handle(packet []byte) error {
	f := &fields{packet}
	command, s := f.u16(), &c.state
	s.Packets[command]++
	switch command {
	case 2: // hello
		f.take(5)
		known := f.u32()&2 != 0
		switch {
		case known && c.o.Register:
			return errTaken
		case !known && c.o.Login:
			return errUnregistered
		case known:
			c.reliable(1, append(text([]byte{0, 81}, string(c.srp.A())), 1))
		default:
			salt, verifier := c.srp.Choose()
			empty := byte(0)
			if c.o.Password == "" {
				empty = 1
			}
			c.reliable(1, append(text(text([]byte{0, 80}, string(salt)), string(verifier)), empty))
		}
	case 96:
		salt := f.text()
		c.reliable(1, text([]byte{0, 82}, string(c.srp.Prove([]byte(salt), []byte(f.text())))))
	case 3: // accepted
		s.Self = f.place()
		c.reliable(1, text([]byte{0, 17}, ""))
	case 10:
		f.take(1)
		s.Kicked = f.text()
	case 58:
		defs := &fields{inflate(f.take(int(f.u32())))}
		defs.take(1)
		s.Nodes = int(defs.u16())
	case 60:
		n := f.u16()
		request := binary.BigEndian.AppendUint16([]byte{0, 64}, n)
		for range n {
			request = text(request, f.text())
			f.text()
		}
		c.longer(request)
	case 56:
		f.u32()
		for range f.u32() {
			name := f.text()
			s.Media[name] = len(f.take(int(f.u32())))
		}
		c.reliable(1, text([]byte{0, 67, 5, 6, 1, 0}, "test"))
	case 32:
		at := f.node()
		f.take(5)
		raw := inflate(f.b)
		block := new([4096]uint16)
		for i := range block {
			block[i] = binary.BigEndian.Uint16(raw[2*i:])
		}
		s.Blocks[at] = block
	case 33:
		s.set(f.node(), f.u16())
	case 34:
		s.set(f.node(), 126)
	case 39:
		s.Inventory = string(f.b)
	case 47:
		f.u16()
		name := f.wide()
		s.Chat = append(s.Chat, name+": "+f.wide())
	case 49:
		for range f.u16() {
			delete(s.Players, f.u16())
		}
		for range f.u16() {
			id := f.u16()
			f.take(1)
			o := &fields{f.take(int(f.u32()))}
			o.take(1)
			s.Players[id] = o.text()
		}
	case 50: // where other players are
		for len(f.b) > 0 {
			f.u16()
			if o := (&fields{f.take(int(f.u16()))}); o.take(1)[0] == 1 {
				o.place()
			}
		}
	case 52:
		s.Self = f.place()
		s.Puts++
		c.move()
	}
	return nil
}

// longer sends a packet in parts.
func (c *Client) longer(packet []byte) {
	const most = 400
	count := (len(packet) + most - 1) / most
	for i := range count {
		number := c.next[1]
		c.next[1]++
		body := append(binary.BigEndian.AppendUint16([]byte{3}, number), 2)
		for _, v := range []int{first, count, i} {
			body = binary.BigEndian.AppendUint16(body, uint16(v))
		}
		body = append(body, packet[i*most:min(len(packet), (i+1)*most)]...)
		c.flying[[2]uint16{1, number}] = body
		c.send(1, body)
	}
}

func inflate(b []byte) []byte {
	r, err := zlib.NewReader(bytes.NewReader(b))
	if err != nil {
		panic(err)
	}
	all, err := io.ReadAll(r)
	if err != nil {
		panic(err)
	}
	return all
}

func floor(v, by int) int { return int(math.Floor(float64(v) / float64(by))) }

func (s *State) find(at Node) (block *[4096]uint16, index int) {
	b := Node{floor(at.X, 16), floor(at.Y, 16), floor(at.Z, 16)}
	return s.Blocks[b], (at.Z-16*b.Z)*256 + (at.Y-16*b.Y)*16 + at.X - 16*b.X
}

func (s *State) set(at Node, id uint16) {
	if block, i := s.find(at); block != nil {
		block[i] = id
	}
}

// Block returns a node, and whether the client has it.
func (s *State) Block(at Node) (id uint16, known bool) {
	if block, i := s.find(at); block != nil {
		return block[i], true
	}
	return 0, false
}

// move sends where the player is.
func (c *Client) move() {
	b := []byte{1, 0, 35}
	for _, v := range []float64{c.state.Self.X, c.state.Self.Y, c.state.Self.Z} {
		b = binary.BigEndian.AppendUint32(b, uint32(int32(math.Round(v*1000))))
	}
	c.send(0, append(b, make([]byte, 12+8+4+2)...))
}

// Move moves the player.
func (c *Client) Move(to Place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.Self = to
	c.move()
}

// Dig removes a node, as the player's own screen does already.
func (c *Client) Dig(at Node) { c.interact(2, 0, at, at) }

// Build puts the block of a slot of the inventory at a node, on the side of another one.
func (c *Client) Build(slot int, on, at Node) { c.interact(3, slot, on, at) }

func (c *Client) interact(action byte, slot int, under, above Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := append([]byte{0, 57, action}, 0, byte(slot), 0, 0, 0, 14, 0, 1)
	for _, n := range []Node{under, above} {
		for _, v := range []int{n.X, n.Y, n.Z} {
			b = binary.BigEndian.AppendUint16(b, uint16(int16(v)))
		}
	}
	c.reliable(0, append(b, make([]byte, 38)...))
	c.move()
}

// Say sends a chat line.
func (c *Client) Say(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	units := utf16.Encode([]rune(line))
	b := binary.BigEndian.AppendUint16([]byte{0, 50}, uint16(len(units)))
	for _, u := range units {
		b = binary.BigEndian.AppendUint16(b, u)
	}
	c.reliable(0, b)
}
