package bot

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/legacymsg"
)

// failure is an error that the server reported or that the bot detected. The report counts it under its code.
type failure struct{ code, text string }

func (f *failure) Error() string { return f.code + ": " + f.text }

// codeOf returns the short code under which the report counts the error.
func codeOf(err error) string {
	var (
		f      *failure
		refuse *wire.Error
		netErr net.Error
		opErr  *net.OpError
	)
	switch {
	case errors.As(err, &f):
		return f.code
	case errors.As(err, &refuse):
		return "server sent " + refuse.Code
	case errors.As(err, &netErr) && netErr.Timeout():
		return "timeout"
	case errors.As(err, &opErr):
		return opErr.Op + " failed" // dial, read, write
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "closed by server"
	default:
		return "other"
	}
}

// causeOf returns the detail that codeOf omits, or "" if there is none.
func causeOf(err error) string {
	var (
		f     *failure
		errno syscall.Errno
		opErr *net.OpError
	)
	switch {
	case errors.As(err, &f):
		return f.text
	case errors.As(err, &errno):
		return errno.Error()
	case errors.As(err, &opErr):
		return opErr.Err.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return ""
	}
	return err.Error()
}

// conn is one TCP connection of a player. One goroutine writes and another reads.
type conn struct {
	net.Conn
	in            *bufio.Reader
	meter         *meter
	timeout       time.Duration // of a write or a handshake
	writeDeadline time.Time     // the write deadline; it is extended only when less than timeout is left
	stop          func() bool

	mu struct {
		sync.Mutex      // held while writing
		reset      bool // a write has failed with ECONNRESET; the kernel reports that only once, and the reader sees EOF
	}
}

// codeRefused is the code of a handshake that the server refused.
const codeRefused = "refused: " + legacymsg.AnswerNo

// dial connects to addr. The connection is closed when ctx is done.
func (c *runState) dial(ctx context.Context, addr string) (*conn, error) {
	d := net.Dialer{Timeout: c.Timeout}
	nc, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", addr, err)
	}
	cn := &conn{Conn: nc, in: bufio.NewReaderSize(nc, 16<<10), meter: c.meter, timeout: c.Timeout}
	cn.stop = context.AfterFunc(ctx, func() { _ = nc.Close() }) // unblocks reads and writes
	return cn, nil
}

// close ends the connection. It ignores the error of one that is broken already.
func (c *conn) close() {
	c.stop()
	_ = c.Close()
}

// send writes an encoded packet and counts it under kind.
func (c *conn) send(kind string, packet []byte) error {
	if now := time.Now(); c.writeDeadline.Sub(now) < c.timeout {
		c.writeDeadline = now.Add(2 * c.timeout)
		if err := c.SetWriteDeadline(c.writeDeadline); err != nil {
			return fmt.Errorf("send %s: %w", kind, err)
		}
	}
	if err := c.write(packet); err != nil {
		return fmt.Errorf("send %s: %w", kind, err)
	}
	c.meter.wrote(kind, len(packet))
	return nil
}

func (c *conn) write(packet []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.Write(packet)
	c.mu.reset = c.mu.reset || errors.Is(err, syscall.ECONNRESET)
	return err
}

// readError returns the error of a read, or ECONNRESET if an earlier write failed with it.
func (c *conn) readError(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.reset && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) {
		return syscall.ECONNRESET
	}
	return err
}

// readLine reads up to a newline and returns the line without it.
func (c *conn) readLine() ([]byte, error) {
	line, err := wire.ReadLine(c.in, wire.MaxServerLine)
	if err != nil {
		return nil, fmt.Errorf("read line: %w", c.readError(err))
	}
	return line, nil
}

// answer calls read, which must receive the expected answer before the timeout, and counts the bytes under kind.
func (c *conn) answer(kind string, read func() (bytes int, err error)) error {
	if err := c.SetReadDeadline(time.Now().Add(c.timeout)); err != nil {
		return fmt.Errorf("await %s: %w", kind, err)
	}
	n, err := read()
	if err != nil {
		return fmt.Errorf("await %s: %w", kind, err)
	}
	c.meter.read(kind, n)
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		return fmt.Errorf("await %s: %w", kind, err)
	}
	return nil
}

// handshake starts the original protocol and returns when the server has accepted.
func (c *conn) handshake(h legacymsg.Handshake) error {
	packet, err := legacymsg.AppendHandshake(nil, h)
	if err != nil {
		return err
	}
	if err := c.send(string(h.Purpose), packet); err != nil {
		return err
	}
	said := make([]byte, len(legacymsg.AnswerOK))
	if err := c.answer("answer", func() (int, error) { return io.ReadFull(c.in, said) }); err != nil {
		return err
	}
	if string(said) != legacymsg.AnswerOK {
		return &failure{"refused: " + string(said), fmt.Sprintf("%s %v", h.Purpose, h.Chunk)}
	}
	return nil
}
