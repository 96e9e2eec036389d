package crowd

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"

	"golang.org/x/sys/unix"
)

// secure is TLS over a player's connection. While the player joins it is over a connection of Go's netpoller, and
// blocks; then over a descriptor, and does not.
type secure struct {
	*tls.Conn
	below *ciphertext
}

// ciphertext carries what TLS has encrypted.
type ciphertext struct {
	net.Conn
	fd  int    // -1 while the player joins
	out []byte // what the socket has not accepted yet
}

// isSecure reports whether a target is reached over TLS.
func isSecure(target string) bool { return strings.HasPrefix(target, "wss:") }

// dialSecure connects to a target over TLS, and verifies its certificate.
func dialSecure(ctx context.Context, target string) (*secure, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return nil, err
	}
	s := &secure{below: &ciphertext{Conn: conn, fd: -1}}
	s.Conn = tls.Client(s.below, &tls.Config{ServerName: u.Hostname()})
	if err := s.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return s, nil
}

// wouldBlock is returned while nothing has arrived. TLS reads on after an error that is temporary.
type wouldBlock struct{}

func (wouldBlock) Error() string   { return "nothing to read" }
func (wouldBlock) Timeout() bool   { return true }
func (wouldBlock) Temporary() bool { return true }

func (c *ciphertext) Read(b []byte) (int, error) {
	if c.fd < 0 {
		return c.Conn.Read(b)
	}
	switch n, err := unix.Read(c.fd, b); {
	case err == unix.EAGAIN || err == unix.EINTR:
		return 0, wouldBlock{}
	case n == 0 && err == nil:
		return 0, io.EOF
	default:
		return max(n, 0), err
	}
}

func (c *ciphertext) Write(b []byte) (int, error) {
	if c.fd < 0 {
		return c.Conn.Write(b)
	}
	c.out = append(c.out, b...)
	return len(b), nil
}

// flush writes as much as the socket accepts.
func (c *ciphertext) flush() error {
	n, err := unix.Write(c.fd, c.out)
	if err == unix.EAGAIN {
		return nil
	}
	if err == nil {
		c.out = c.out[:copy(c.out, c.out[n:])]
	}
	return err
}

// receive reads what has arrived, without blocking: EAGAIN if that is nothing.
func (p *client) receive(b []byte) (n int, err error) {
	if p.secure == nil {
		return unix.Read(p.fd, b)
	}
	for n < len(b) && err == nil {
		var more int
		more, err = p.secure.Read(b[n:])
		n += more
	}
	switch {
	case n > 0:
		return n, nil
	case errors.Is(err, io.EOF):
		return 0, nil
	case errors.Is(err, wouldBlock{}):
		return 0, unix.EAGAIN
	}
	return 0, err
}

// send writes as much as the socket accepts; over TLS all, or nothing, and then EAGAIN.
func (p *client) send(b []byte) (n int, err error) {
	if p.secure == nil {
		return unix.Write(p.fd, b)
	}
	below := p.secure.below
	if err := below.flush(); err != nil {
		return 0, err
	}
	if len(below.out) > 0 {
		return 0, unix.EAGAIN
	}
	if _, err := p.secure.Write(b); err != nil {
		return 0, err
	}
	return len(b), below.flush()
}
