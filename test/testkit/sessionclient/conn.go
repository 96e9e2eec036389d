// Package sessionclient is the client's side of voxeld's session protocol (docs/protocol.md), in JSON and CBOR, over
// TCP, or over a WebSocket as a page in Chromium. Conn only encodes and decodes; Player also keeps the land that the
// player sees.
//
// The methods that send belong to one goroutine, those that read to one other. bot, bench, chaos and tests may import
// it.
package sessionclient

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// Conn is one connection of a player.
type Conn struct {
	net.Conn
	carrier Carrier
	cbor    bool

	received      []byte // from the connection, and not read yet; part of buffer
	buffer        []byte
	plain, packet []byte // for Send; reused
}

// Message is what a server sent.
type Message struct {
	sessionmsg.FromServer           // nil for a tick frame
	Tick                  []byte    // a tick frame in CBOR, for sessionmsg.ReadTick; valid until the next Read
	Size                  int       // bytes on the connection, framing included
	At                    time.Time // when it had been received
}

// New returns the session of a new connection over TCP. Its first message must be sent by Join.
func New(c net.Conn) *Conn { return &Conn{Conn: c, carrier: Lines{}, buffer: make([]byte, 16<<10)} }

// Open returns the session of a new connection to a target: over TCP, or over a WebSocket, which it opens. Its first
// message must be sent by Join.
func Open(c net.Conn, target string) (*Conn, error) {
	s := New(c)
	if !IsPage(target) {
		return s, nil
	}
	early, err := upgrade(c, target)
	s.carrier, s.received = WebSocket{}, s.buffer[:copy(s.buffer, early)]
	return s, err
}

// IsPage reports whether players of a target are pages: it is the URL of a WebSocket, ws:// or wss://. Else it is the
// host:port of a game server, whose players speak TCP.
func IsPage(target string) bool { return strings.Contains(target, "://") }

// Page returns the URL of the WebSocket of a node that serves pages at a host:port.
func Page(http string) string { return "ws://" + http + "/ws" }

// Connect connects to the server of a target, for Open. Over TLS it verifies the server's certificate.
func Connect(ctx context.Context, target string) (net.Conn, error) {
	if !IsPage(target) {
		return new(net.Dialer).DialContext(ctx, "tcp", target)
	}
	u, err := url.Parse(target)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	if u.Scheme == "wss" {
		return new(tls.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "443")))
	}
	return new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "80")))
}

// Dial connects to a target, and joins.
func Dial(ctx context.Context, target string, join sessionmsg.Join) (*Conn, error) {
	nc, err := Connect(ctx, target)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { nc.Close() })() //nolint:errcheck // the read reports it
	c, err := Open(nc, target)
	if err == nil {
		_, err = c.Join(join)
	}
	if err != nil {
		return nil, errors.Join(err, nc.Close())
	}
	return c, nil
}

// Join sends the first message, which chooses the encoding of all others. It sets the join's version.
func (c *Conn) Join(join sessionmsg.Join) (size int, err error) {
	join.Version = sessionmsg.SessionVersion
	line, err := sessionmsg.EncodeClient(join)
	if err != nil {
		return 0, err
	}
	size, err = c.write(line)
	if c.cbor = join.Encoding == sessionmsg.EncodingCBOR; c.cbor && c.carrier == (Lines{}) {
		c.carrier = Prefixed{}
	}
	return size, err
}

// Send sends a message, and returns its size on the connection.
func (c *Conn) Send(m sessionmsg.FromClient) (size int, err error) {
	switch move, ok := m.(sessionmsg.Move); {
	case !c.cbor:
		c.plain, err = sessionmsg.EncodeClient(m)
	case ok:
		c.plain = sessionmsg.AppendMove(c.plain[:0], move.Pose)
	default:
		c.plain, err = sessionmsg.EncodeClientCBOR(m)
	}
	if err != nil {
		return 0, err
	}
	return c.write(c.plain)
}

func (c *Conn) write(message []byte) (size int, err error) {
	c.packet = c.carrier.Append(c.packet[:0], message)
	if size, err = c.Write(c.packet); err != nil {
		return size, fmt.Errorf("send: %w", err)
	}
	return size, nil
}

// Read reads the next message. After an error with a Size, which is of a message that cannot be decoded, reading can
// continue.
func (c *Conn) Read() (m Message, err error) {
	message, size, err := c.next()
	if err != nil {
		return m, fmt.Errorf("read message: %w", err)
	}
	m.Size, m.At = size, time.Now()
	switch {
	case !c.cbor, message[0] == '{': // the refusal of a join is in JSON
		m.FromServer, err = sessionmsg.DecodeServer(message)
	case message[0] == sessionmsg.TickFrame:
		m.Tick = message
	default:
		m.FromServer, err = sessionmsg.DecodeServerCBOR(message)
	}
	return m, err
}

// next returns the next message, which is valid until its next call, and its size on the connection.
func (c *Conn) next() (message []byte, size int, err error) {
	for {
		message, answer, rest, err := c.carrier.Split(c.received)
		split := len(c.received) - len(rest)
		c.received = rest
		if answer != nil {
			_, failed := c.Write(answer)
			err = cmp.Or(err, failed)
		}
		if err != nil || message != nil {
			return message, split, err
		}
		if split > 0 {
			continue
		}
		kept := copy(c.buffer, c.received)
		if kept == len(c.buffer) {
			c.buffer = append(c.buffer, make([]byte, kept)...)
		}
		n, err := c.Conn.Read(c.buffer[kept:])
		c.received = c.buffer[:kept+n]
		if n == 0 && err != nil {
			return nil, 0, err
		}
	}
}

// Buffered returns what was received and not read yet.
func (c *Conn) Buffered() []byte { return c.received }

// Enter reads until the chunk in which the player stands has arrived. It calls each, if not nil, with every message.
func (c *Conn) Enter(each func(Message) error) (welcome sessionmsg.Welcome, err error) {
	for {
		m, err := c.Read()
		if err != nil {
			return welcome, fmt.Errorf("enter the world: %w", err)
		}
		if each != nil {
			if err := each(m); err != nil {
				return welcome, err
			}
		}
		switch m := m.FromServer.(type) {
		case sessionmsg.Welcome:
			welcome = m
		case sessionmsg.ChunkData:
			if welcome.Player != "" && m.Chunk == welcome.Pose.Chunk() {
				return welcome, nil
			}
		case sessionmsg.Failure:
			return welcome, errors.New(m.Code + ": " + m.Message)
		}
	}
}
