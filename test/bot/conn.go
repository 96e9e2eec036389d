package bot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/voxelpopuli/voxeld/test/testkit/legacyclient"
	"github.com/voxelpopuli/voxeld/test/testkit/sessionclient"
	"github.com/voxelpopuli/voxeld/wire"
)

// failure is an error that the server reported or that the bot detected. The report counts it under its code.
type failure struct{ code, text string }

func (f *failure) Error() string { return f.code + ": " + f.text }

// codeOf returns the short code under which the report counts the error.
func codeOf(err error) string {
	var (
		f       *failure
		refuse  *wire.Error
		refused *legacyclient.RefusedError
		upgrade *sessionclient.UpgradeError
		netErr  net.Error
		opErr   *net.OpError
	)
	switch {
	case errors.As(err, &f):
		return f.code
	case errors.As(err, &refused):
		return "refused: " + refused.Answer
	case errors.As(err, &upgrade):
		return "refused: " + http.StatusText(upgrade.Status)
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

// conn is one connection of a player. One goroutine writes, and another reads, and answers pings.
type conn struct {
	net.Conn
	in, out int           // bytes so far
	timeout time.Duration // of a write
	stop    func() bool

	mu struct {
		sync.Mutex              // held while writing
		writeDeadline time.Time // it is extended only when less than timeout is left
		reset         bool      // a write has failed with ECONNRESET; the kernel reports that only once, and the reader sees EOF
	}
}

// dial connects to a target of a sessionclient, or a game server. The connection is closed when ctx is done.
func dial(ctx context.Context, target string, timeout time.Duration) (*conn, error) {
	dialling, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	nc, err := sessionclient.Connect(dialling, target)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", target, err)
	}
	cn := &conn{Conn: nc, timeout: timeout}
	cn.stop = context.AfterFunc(ctx, func() { _ = nc.Close() }) // unblocks reads and writes
	return cn, nil
}

// Close ends the connection.
func (c *conn) Close() error {
	c.stop()
	return c.Conn.Close()
}

// Write writes within the timeout.
func (c *conn) Write(packet []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); c.mu.writeDeadline.Sub(now) < c.timeout {
		c.mu.writeDeadline = now.Add(2 * c.timeout)
		if err := c.SetWriteDeadline(c.mu.writeDeadline); err != nil {
			return 0, err
		}
	}
	n, err := c.Conn.Write(packet)
	c.out += n
	c.mu.reset = c.mu.reset || errors.Is(err, syscall.ECONNRESET)
	return n, err
}

// Read reads. Its error at the end is ECONNRESET if a write has failed with it.
func (c *conn) Read(buffer []byte) (int, error) {
	n, err := c.Conn.Read(buffer)
	c.in += n
	if errors.Is(err, io.EOF) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.mu.reset {
			return n, syscall.ECONNRESET
		}
	}
	return n, err
}

// within calls read, which must return before the timeout.
func (c *conn) within(read func() error) error {
	if err := c.SetReadDeadline(time.Now().Add(c.timeout)); err != nil {
		return err
	}
	if err := read(); err != nil {
		return err
	}
	return c.SetReadDeadline(time.Time{})
}
