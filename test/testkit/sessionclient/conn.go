// Package sessionclient is the client's side of voxeld's session protocol (docs/protocol.md), in JSON and CBOR, over any
// connection. Conn only encodes and decodes; Player also keeps the land that the player sees.
//
// The methods that send belong to one goroutine, those that read to one other. bot, bench, chaos and tests may import it.
package sessionclient

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// Conn is one connection of a player.
type Conn struct {
	net.Conn
	in   *bufio.Reader
	cbor bool

	received      []byte // the latest message in CBOR
	plain, packet []byte // for Send; reused
}

// Message is what a server sent.
type Message struct {
	sessionmsg.FromServer           // nil for a tick frame
	Tick                  []byte    // a tick frame in CBOR, for sessionmsg.ReadTick; valid until the next Read
	Size                  int       // bytes on the connection, framing included
	At                    time.Time // when it had been received
}

// New returns the session of a new connection. Its first message must be sent by Join.
func New(c net.Conn) *Conn { return &Conn{Conn: c, in: bufio.NewReaderSize(c, 16<<10)} }

// Dial connects to a game server, and joins.
func Dial(ctx context.Context, game string, join sessionmsg.Join) (*Conn, error) {
	nc, err := new(net.Dialer).DialContext(ctx, "tcp", game)
	if err != nil {
		return nil, err
	}
	c := New(nc)
	if _, err := c.Join(join); err != nil {
		return nil, errors.Join(err, nc.Close())
	}
	return c, nil
}

// Join sends the first message, which chooses the encoding of all others. It sets the join's version.
func (c *Conn) Join(join sessionmsg.Join) (size int, err error) {
	join.Version = sessionmsg.SessionVersion
	c.cbor = join.Encoding == sessionmsg.EncodingCBOR
	return c.sendLine(join)
}

// Send sends a message, and returns its size on the connection.
func (c *Conn) Send(m sessionmsg.FromClient) (size int, err error) {
	if !c.cbor {
		return c.sendLine(m)
	}
	if move, ok := m.(sessionmsg.Move); ok {
		c.plain = sessionmsg.AppendMove(c.plain[:0], move.Pose)
	} else if c.plain, err = sessionmsg.EncodeClientCBOR(m); err != nil {
		return 0, err
	}
	c.packet = sessionmsg.AppendMessage(c.packet[:0], c.plain)
	return c.write(c.packet)
}

func (c *Conn) sendLine(m sessionmsg.FromClient) (size int, err error) {
	line, err := sessionmsg.EncodeClient(m)
	if err != nil {
		return 0, err
	}
	return c.write(append(line, '\n'))
}

func (c *Conn) write(packet []byte) (size int, err error) {
	if size, err = c.Write(packet); err != nil {
		return size, fmt.Errorf("send: %w", err)
	}
	return size, nil
}

// Read reads the next message. After an error with a Size, which is of a message that cannot be decoded, reading can continue.
func (c *Conn) Read() (m Message, err error) {
	if !c.cbor {
		line, err := wire.ReadLine(c.in, wire.MaxServerLine)
		if err != nil {
			return m, fmt.Errorf("read line: %w", err)
		}
		m.Size, m.At = len(line)+1, time.Now()
		m.FromServer, err = sessionmsg.DecodeServer(line)
		return m, err
	}
	if c.received, err = sessionmsg.ReadMessage(c.in, c.received, wire.MaxServerLine); err != nil {
		return m, fmt.Errorf("read message: %w", err)
	}
	m.Size, m.At = len(c.received)+1, time.Now()
	for n := len(c.received); n >= 0x80; n >>= 7 {
		m.Size++ // the length prefix has seven bits a byte
	}
	if c.received[0] == sessionmsg.TickFrame {
		m.Tick = c.received
		return m, nil
	}
	m.FromServer, err = sessionmsg.DecodeServerCBOR(c.received)
	return m, err
}

// Buffered returns what was received and not read yet.
func (c *Conn) Buffered() []byte {
	rest, _ := c.in.Peek(c.in.Buffered()) // so much is there
	return rest
}

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
