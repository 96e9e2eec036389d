package gameserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
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
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

const (
	// silence is how long a client may send nothing: moves and pings keep a connection alive.
	silence = 60 * time.Second
	// writeTimeout bounds one write; it may be up to half a second shorter.
	writeTimeout = 10 * time.Second
)

// conn carries messages to and from one client. One goroutine reads; another writes, flushes and closes.
type conn interface {
	outbox.Sink
	// read waits for the next message, which is valid until the next read. A message that is refused is a *wire.Error;
	// any other error means that the connection has ended.
	read() ([]byte, error)
	// setCodec sets the encoding of the messages that are read from now on. The reader calls it.
	setCodec(c codec.Codec)
	// close ends the connection in order: written data is delivered, and read returns.
	close() error
	// cut ends the connection at once. Any goroutine may call it, any number of times.
	cut()
	remote() net.Addr
}

// streamConn carries messages in frames on a stream of bytes: a TCP connection, or TLS over one.
type streamConn struct {
	net.Conn
	in      *bufio.Reader
	framing framing
	addr    net.Addr // of the client; nil: that of the connection
	page    page

	message []byte    // the reader's buffer
	out     []byte    // the writer's buffer of data not yet sent
	held    bool      // the socket holds data, too
	patient time.Time // the current write deadline
	broken  bool      // a write has failed, perhaps amid a frame; the writer's
}

// page is what the page of a WebSocket has said of itself.
type page struct {
	chunkHashes bool        // it understands ChunkHash
	looks       codec.Looks // that it understands in tick frames
	skin        player.Skin // that the player has chosen
}

func (c *streamConn) read() (data []byte, err error) {
	if data, err = c.framing.read(c.in, c.message); err == nil && cap(data) > cap(c.message) {
		c.message = data
	}
	return data, err
}

// split is the park.Splitter of the connection.
func (c *streamConn) split(received []byte) (message []byte, size int) {
	if message, size = c.framing.(binaryFraming).split(received, c.message); cap(message) > cap(c.message) {
		c.message = message
	}
	return message, size
}

// detach takes the connection out of Go's netpoller, where that is possible and of use. The returned release ends the
// connection so that the last message is delivered.
func (c *streamConn) detach() (release func()) {
	if _, binary := c.framing.(binaryFraming); !binary {
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

// webSocket returns the framing if the connection is a WebSocket, else nil.
func (c *streamConn) webSocket() *webSocket {
	socket, _ := c.framing.(*webSocket)
	return socket
}

// detached returns the detached socket of the connection; nil if there is none.
func (c *streamConn) detached() *park.Socket {
	socket, _ := c.Conn.(*park.Socket)
	return socket
}

// TryWrite writes as much as the detached socket accepts.
func (c *streamConn) TryWrite(data []byte) (rest []byte, err error) {
	return c.detached().TryWrite(data)
}

// AppendHead appends what precedes a message of so many bytes.
func (c *streamConn) AppendHead(dst []byte, size int) []byte {
	return c.framing.(binaryFraming).appendHead(dst, size)
}

// WriteLater buffers data for the next flush, which may be that of the socket only.
func (c *streamConn) WriteLater(data []byte) { c.out, c.held = append(c.out[:0], data...), true }

// setCodec sets which frames of a WebSocket are expected: over TCP the first message, before the connection is made,
// sets the encoding.
func (c *streamConn) setCodec(codec codec.Codec) {
	if socket := c.webSocket(); socket != nil {
		socket.text = codec.IsText()
	}
}

// keepBack is the number of bytes that are buffered before they are sent without a flush.
const keepBack = 64 << 10

func (c *streamConn) Send(message []byte) error {
	if len(message) >= keepBack && c.framing == (packets{}) { // a chunk of an original client: its buffer stays small
		if err := c.Flush(); err != nil {
			return err
		}
		return c.write(message)
	}
	c.out = c.framing.append(c.out, message)
	if len(c.out) >= keepBack {
		return c.Flush()
	}
	return nil
}

func (c *streamConn) Flush() error {
	if socket := c.webSocket(); socket != nil {
		c.out = socket.appendAnswer(c.out)
	}
	if len(c.out) == 0 && !c.held {
		return nil
	}
	c.held = false
	err := c.write(c.out)
	c.out = c.out[:0]
	if cap(c.out) > 2*keepBack {
		c.out = nil
	}
	return err
}

// write writes to the connection, within the time that a write may take.
func (c *streamConn) write(data []byte) error {
	// Setting a deadline costs more than comparing times.
	if now := time.Now(); c.patient.Sub(now) < writeTimeout-time.Second/2 {
		c.patient = now.Add(writeTimeout)
		if err := c.SetWriteDeadline(c.patient); err != nil {
			return err
		}
	}
	_, err := c.Conn.Write(data)
	c.broken = c.broken || err != nil
	return err
}

// close sends the end of the stream, and unblocks the reader. accept.HangUp does the rest.
func (c *streamConn) close() error {
	if socket := c.webSocket(); socket != nil && !c.broken {
		if err := c.write(socket.appendEnd(nil)); err != nil {
			return errors.Join(err, accept.CloseInOrder(c.Conn))
		}
	}
	return accept.CloseInOrder(c.Conn)
}

func (c *streamConn) cut() { c.Conn.Close() } //nolint:errcheck // readers and writers see the error

func (c *streamConn) remote() net.Addr {
	if c.addr != nil {
		return c.addr
	}
	return c.RemoteAddr()
}

// ready reports whether another whole line has been received.
func (c *streamConn) ready() bool {
	received, _ := c.in.Peek(c.in.Buffered())
	return bytes.IndexByte(received, '\n') >= 0
}

// resetConn carries packets of the original protocol, whose client does not notice the end of a stream: it is closed by
// a reset.
type resetConn struct{ streamConn }

func (c *resetConn) close() error { return c.Conn.Close() }

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
	return websocket.CloseStatus(err) != -1 // a client of another game
}

// runWriter is a connection's writer goroutine: it writes what the outbox has, as fast as the client's address may be
// sent bytes, and closes the connection in order. The end of ctx ends a wait for the address.
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
