package gameserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/coder/websocket"

	"github.com/voxelpopuli/voxeld/gameserver/accept"
	"github.com/voxelpopuli/voxeld/gameserver/codec"
	"github.com/voxelpopuli/voxeld/gameserver/outbox"
	"github.com/voxelpopuli/voxeld/gameserver/park"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

const (
	// silence is how long a client may send nothing: moves and pings keep a connection alive.
	silence = 60 * time.Second
	// writeTimeout bounds one write; over TCP it may be up to half a second shorter.
	writeTimeout = 10 * time.Second
)

// conn carries messages to and from one client. One goroutine reads; another writes, flushes and closes.
type conn interface {
	outbox.Sink
	// read waits for the next message, which is valid until the next read. A message that is refused is a *wire.Error; any other
	// error means that the connection has ended.
	read() ([]byte, error)
	// setCodec sets the encoding of the messages that are read from now on. The reader calls it.
	setCodec(c codec.Codec)
	// close ends the connection in order: written data is delivered, and read returns.
	close() error
	// cut ends the connection at once. Any goroutine may call it, any number of times.
	cut()
	remote() net.Addr
}

// lineConn carries messages over TCP: JSON as one line each, CBOR with a length prefix.
type lineConn struct {
	net.Conn
	in     *bufio.Reader
	ending string // appended to each message: "\n", or nothing if messages include it
	framed bool   // messages in both directions have a length prefix; never changes after the first write

	message []byte    // the reader's buffer
	out     []byte    // the writer's buffer of data not yet sent
	patient time.Time // the current write deadline
}

func (c *lineConn) read() (data []byte, err error) {
	if !c.framed {
		return wire.ReadLine(c.in, wire.MaxLine)
	}
	if data, err = sessionmsg.ReadMessage(c.in, c.message, wire.MaxLine); err == nil {
		c.message = data
	}
	return data, err
}

// detach takes the connection of a CBOR session out of Go's netpoller, where that is possible. The returned release ends the
// connection so that the last message is delivered.
func (c *lineConn) detach() (release func()) {
	if !c.framed {
		return func() {}
	}
	early, _ := c.in.Peek(c.in.Buffered())
	socket := park.Detach(c.Conn, early)
	if socket == nil {
		return func() {}
	}
	c.Conn, c.in = socket, bufio.NewReader(socket)
	return func() {
		accept.HangUp(socket, accept.AdmittedTime)
		socket.Release()
	}
}

// socket returns the detached socket of the connection; nil if there is none.
func (c *lineConn) socket() *park.Socket {
	socket, _ := c.Conn.(*park.Socket)
	return socket
}

// TryWrite writes as much as the detached socket accepts.
func (c *lineConn) TryWrite(data []byte) (n int, err error) { return c.socket().TryWrite(data) }

// WriteLater buffers data for the next flush.
func (c *lineConn) WriteLater(data []byte) { c.out = append(c.out[:0], data...) }

// setCodec does nothing: over TCP the first message, before the connection is made, sets the encoding.
func (c *lineConn) setCodec(codec.Codec) {}

// keepBack is the number of bytes that are buffered before they are sent without a flush.
const keepBack = 64 << 10

func (c *lineConn) Send(message []byte) error {
	if len(message) >= keepBack && !c.framed && c.ending == "" { // a chunk of an original client: its buffer stays small
		if err := c.Flush(); err != nil {
			return err
		}
		return c.write(message)
	}
	if c.framed {
		c.out = sessionmsg.AppendMessage(c.out, message)
	} else {
		c.out = append(append(c.out, message...), c.ending...)
	}
	if len(c.out) >= keepBack {
		return c.Flush()
	}
	return nil
}

func (c *lineConn) Flush() error {
	if len(c.out) == 0 {
		return nil
	}
	err := c.write(c.out)
	c.out = c.out[:0]
	if cap(c.out) > 2*keepBack {
		c.out = nil
	}
	return err
}

// write writes to the connection, within the time that a write may take.
func (c *lineConn) write(data []byte) error {
	// Setting a deadline costs more than comparing times.
	if now := time.Now(); c.patient.Sub(now) < writeTimeout-time.Second/2 {
		c.patient = now.Add(writeTimeout)
		if err := c.SetWriteDeadline(c.patient); err != nil {
			return err
		}
	}
	_, err := c.Conn.Write(data)
	return err
}

// close sends the end of the stream, and unblocks the reader. accept.HangUp does the rest.
func (c *lineConn) close() error { return accept.CloseInOrder(c.Conn) }

func (c *lineConn) cut()             { c.Conn.Close() } //nolint:errcheck // readers and writers see the error
func (c *lineConn) remote() net.Addr { return c.RemoteAddr() }

// ready reports whether another whole line has been received.
func (c *lineConn) ready() bool {
	received, _ := c.in.Peek(c.in.Buffered())
	return bytes.IndexByte(received, '\n') >= 0
}

// resetConn carries packets of the original protocol, whose client does not notice the end of a stream: it is closed by a reset.
type resetConn struct{ lineConn }

func (c *resetConn) close() error { return c.Conn.Close() }

// socketConn carries messages over WebSocket: JSON in text frames, CBOR in binary frames.
type socketConn struct {
	codec  codec.Codec     // of messages read; the reader's
	ctx    context.Context //nolint:containedctx // the connection's; websocket needs one for each call
	cancel context.CancelFunc
	ws     *websocket.Conn
	addr   net.Addr

	chunkHashes bool        // the client understands ChunkHash
	skins       bool        // the client understands skins in tick frames
	skin        player.Skin // that the player has chosen
}

func (c *socketConn) read() ([]byte, error) {
	kind, data, err := c.ws.Read(c.ctx)
	switch {
	case errors.Is(err, websocket.ErrMessageTooBig):
		return nil, &wire.Error{Code: wire.FailTooLong, Message: fmt.Sprintf("a message may have %d bytes", wire.MaxLine)}
	case err != nil:
		return nil, err
	case c.codec.IsText() && kind != websocket.MessageText:
		return nil, &wire.Error{Code: wire.FailBadType, Message: "send text frames: this session speaks JSON"}
	case !c.codec.IsText() && kind != websocket.MessageBinary:
		return nil, &wire.Error{Code: wire.FailBadType, Message: "send binary frames: this session speaks CBOR"}
	}
	return data, nil
}

func (c *socketConn) setCodec(new codec.Codec) { c.codec = new }

func (c *socketConn) Send(message []byte) error {
	ctx, cancel := context.WithTimeout(c.ctx, writeTimeout)
	defer cancel()
	kind := websocket.MessageBinary
	if message[0] == '{' { // no binary message begins like this
		kind = websocket.MessageText
	}
	return c.ws.Write(ctx, kind, message)
}

func (c *socketConn) Flush() error { return nil }

func (c *socketConn) close() error     { return c.ws.Close(websocket.StatusNormalClosure, "") }
func (c *socketConn) cut()             { c.cancel() }
func (c *socketConn) remote() net.Addr { return c.addr }

// redirectError refuses a player, and redirects them.
type redirectError struct {
	message sessionmsg.Reconnect
	why     error
}

func (e *redirectError) Error() string { return e.why.Error() }

var errDraining = errors.New("draining: this node is shutting down")

// isClosed reports whether an error only means that the client or this gateway has ended the connection.
func isClosed(err error) bool {
	for _, end := range []error{
		io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed, os.ErrDeadlineExceeded,
		syscall.ECONNRESET, syscall.EPIPE, context.Canceled, outbox.ErrEnded,
	} {
		if errors.Is(err, end) {
			return true
		}
	}
	if _, sentOn := errors.AsType[*redirectError](err); sentOn {
		return true
	}
	return websocket.CloseStatus(err) != -1
}

// runWriter is a connection's writer goroutine: it writes what the outbox has, as fast as the client's address may be sent bytes, and
// closes the connection in order. The end of ctx ends a wait for the address.
func (g *Gateway) runWriter(ctx context.Context, o *outbox.Outbox, c conn) {
	defer o.MarkClosed()
	defer g.metrics.panics.Recover("writer", c.cut, "remote", c.remote().String())
	client := g.limits.Client(c.remote())
	err := o.Drain(pacedConn{c, g.metrics, func(bytes int) error { return client.Send(ctx, bytes) }})
	if !isClosed(err) {
		g.Logger.Debug("write to client failed", "remote", c.remote().String(), "error", err)
	}
	if err := c.close(); err != nil && !isClosed(err) {
		g.Logger.Debug("connection not closed cleanly", "remote", c.remote().String(), "error", err)
	}
}

// pacedConn counts the messages of a connection, and waits until each may be sent.
type pacedConn struct {
	conn
	metrics *metrics
	wait    func(bytes int) error
}

func (c pacedConn) Send(message []byte) error {
	if err := c.wait(len(message)); err != nil {
		return err
	}
	c.metrics.sent(len(message))
	return c.conn.Send(message)
}
