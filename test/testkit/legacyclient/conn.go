// Package legacyclient is the client's side of VoxelPopuli's protocol (docs/protocol.md), over any connection: a
// connection to one chunk, or one in dht mode.
//
// The methods that send belong to one goroutine, those that read to one other; in dht mode to the same.
package legacyclient

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/legacymsg"
)

// Conn is one connection.
type Conn struct {
	net.Conn
	in *bufio.Reader
}

// New returns the client of a new connection. It begins with Handshake.
func New(c net.Conn) *Conn { return &Conn{Conn: c, in: bufio.NewReaderSize(c, 16<<10)} }

// Dial connects to a game server, and makes the handshake. The connection is closed if ctx ends before that.
func Dial(ctx context.Context, game string, h legacymsg.Handshake) (*Conn, error) {
	nc, err := new(net.Dialer).DialContext(ctx, "tcp", game)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { nc.Close() })() //nolint:errcheck // the handshake reports it
	c := New(nc)
	if _, err := c.Handshake(h); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to %s: %w", game, err), nc.Close())
	}
	return c, nil
}

// RefusedError is the answer to a handshake that the server refuses.
type RefusedError struct{ Answer string }

func (e *RefusedError) Error() string { return fmt.Sprintf("the handshake is answered %q", e.Answer) }

// Handshake makes the handshake, and returns the size of what it sent.
func (c *Conn) Handshake(h legacymsg.Handshake) (size int, err error) {
	packet, err := legacymsg.AppendHandshake(nil, h)
	if err != nil {
		return 0, err
	}
	if size, err = c.write(packet); err != nil {
		return size, err
	}
	answer := make([]byte, len(legacymsg.AnswerOK))
	if _, err := io.ReadFull(c.in, answer); err != nil {
		return size, fmt.Errorf("await answer: %w", err)
	}
	if string(answer) != legacymsg.AnswerOK {
		return size, &RefusedError{string(answer)}
	}
	return size, nil
}

// WhereIsChunk asks for the address of a chunk's server, in dht mode.
func (c *Conn) WhereIsChunk(at grid.ChunkPos) (server netip.AddrPort, err error) {
	if err := c.ask(legacymsg.WhereIsChunk{Chunk: at}); err != nil {
		return server, err
	}
	if server, err = legacymsg.ReadChunkAddress(c.in); err != nil {
		return server, fmt.Errorf("ask where chunk %v is: %w", at, err)
	}
	return server, nil
}

// WhereIsPlayer asks where a player stood last, in dht mode.
func (c *Conn) WhereIsPlayer(name string) (x, y, z float64, err error) {
	if err := c.ask(legacymsg.WhereIsPlayer{Name: name}); err != nil {
		return 0, 0, 0, err
	}
	if x, y, z, err = legacymsg.ReadPlayerPlace(c.in); err != nil {
		return 0, 0, 0, fmt.Errorf("ask where %s is: %w", name, err)
	}
	return x, y, z, nil
}

func (c *Conn) ask(q legacymsg.Query) error {
	packet, err := legacymsg.AppendQuery(nil, q)
	if err != nil {
		return err
	}
	_, err = c.write(packet)
	return err
}

// Send sends a packet, and returns its size.
func (c *Conn) Send(p legacymsg.Packet) (size int, err error) {
	line, err := legacymsg.AppendPacket(nil, p)
	if err != nil {
		return 0, err
	}
	return c.write(line)
}

func (c *Conn) write(packet []byte) (size int, err error) {
	if size, err = c.Write(packet); err != nil {
		return size, fmt.Errorf("send: %w", err)
	}
	return size, nil
}

// ReadLine reads the line of the next packet, without its end.
func (c *Conn) ReadLine() ([]byte, error) {
	line, err := wire.ReadLine(c.in, wire.MaxServerLine)
	if err != nil {
		return nil, fmt.Errorf("read line: %w", err)
	}
	return line, nil
}

// IsChunkData reports whether a line is a CHUNK_DATA: 65 kB of numbers, which is not worth decoding if nobody stands
// there.
func IsChunkData(line []byte) bool { return bytes.HasPrefix(line, []byte(`{"type":5,`)) }
