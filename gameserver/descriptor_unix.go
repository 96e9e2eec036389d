//go:build unix

package gameserver

import (
	"bufio"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// descriptor is the socket of a session in CBOR over TCP, as a file descriptor of the gateway's own, which never blocks.
// Go's netpoller wakes a thread for whatever comes on a socket that it knows, also if nobody waits for it. So it knows this one
// only as long as somebody waits for it, through a window; while the poller reads it there is none.
//
// One goroutine reads, until release; while the socket is lodged that is the poller's. Another one writes. Any goroutine may call
// Close and SetReadDeadline.
type descriptor struct {
	net.Conn           // as it was, which still has its addresses
	fd       int       // open until release
	patience time.Time // the writer's: until when he may wait
	unread   []byte    // the reader's: what was read before, and not by Read
	lodging

	mu struct {
		sync.Mutex
		window   window    // the reader's; nil while the socket is lodged
		err      error     // why there is none
		hurry    time.Time // until when the reader may wait
		released bool
	}
}

// window is a second file descriptor of a socket, which Go's netpoller knows.
type window interface {
	Read(b []byte) (int, error)
	Write(b []byte) (int, error)
	SetReadDeadline(t time.Time) error
	SetWriteDeadline(t time.Time) error
	Close() error
}

// takeOver puts the descriptor in the place of a connection that has just been asked for a session in CBOR. Where there is none
// nothing changes. The session is over when release is called, which ends the connection so that the last words arrive.
func takeOver(c *lineConn) (release func()) {
	socket, ok := c.Conn.(*net.TCPConn)
	if !ok || !c.framed {
		return func() {}
	}
	fd, err := duplicate(socket)
	if err != nil {
		return func() {} // no file descriptor is left: it goes on as it is
	}
	d := &descriptor{Conn: socket, fd: fd}
	if n := c.in.Buffered(); n > 0 {
		early, _ := c.in.Peek(n)
		d.unread = append(d.unread, early...)
	}
	d.mu.window = socket
	c.Conn, c.in = d, bufio.NewReader(d)
	return d.release
}

func duplicate(socket *net.TCPConn) (fd int, err error) {
	raw, err := socket.SyscallConn()
	if err != nil {
		return -1, err
	}
	other := raw.Control(func(socket uintptr) { fd, err = unix.FcntlInt(socket, unix.F_DUPFD_CLOEXEC, 0) })
	return fd, errors.Join(other, err)
}

// open opens a window.
func (d *descriptor) open() (window, error) {
	fd, err := unix.FcntlInt(uintptr(d.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fd), "session"), nil
}

func (d *descriptor) Read(b []byte) (int, error) {
	if len(d.unread) > 0 {
		n := copy(b, d.unread)
		d.unread = d.unread[n:]
		return n, nil
	}
	d.mu.Lock()
	w, err := d.mu.window, d.mu.err
	d.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return w.Read(b)
}

// Write writes all, and waits for the client as long as SetWriteDeadline says.
func (d *descriptor) Write(b []byte) (int, error) {
	n, err := d.try(b)
	if n == len(b) || err != nil {
		return n, err
	}
	w, err := d.open()
	if err != nil {
		return n, err
	}
	defer w.Close() //nolint:errcheck // the socket stays
	if err := w.SetWriteDeadline(d.patience); err != nil {
		return n, err
	}
	rest, err := w.Write(b[n:])
	return n + rest, err
}

// try writes what the socket takes at once.
func (d *descriptor) try(b []byte) (int, error) {
	for {
		n, err := unix.Write(d.fd, b)
		switch {
		case err == nil:
			return n, nil
		case errors.Is(err, unix.EAGAIN):
			return 0, nil
		case !errors.Is(err, unix.EINTR):
			return 0, os.NewSyscallError("write", err)
		}
	}
}

// Close ends the connection at once, both ways. Whoever reads or writes finds it so.
func (d *descriptor) Close() error { return d.shutdown(unix.SHUT_RDWR) }

// CloseWrite tells the client that nothing more comes.
func (d *descriptor) CloseWrite() error { return d.shutdown(unix.SHUT_WR) }

func (d *descriptor) shutdown(how int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.released {
		return net.ErrClosed
	}
	return os.NewSyscallError("shutdown", unix.Shutdown(d.fd, how))
}

// release is called when nobody reads or writes any more.
func (d *descriptor) release() {
	hangUp(d)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.released = true
	if d.mu.window != nil {
		d.mu.window.Close() //nolint:errcheck // done with
	}
	unix.Close(d.fd) //nolint:errcheck // done with
}

// SetReadDeadline also fetches a lodged socket back.
func (d *descriptor) SetReadDeadline(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.hurry = t
	d.fetch()
	if d.mu.err != nil {
		return d.mu.err
	}
	return d.mu.window.SetReadDeadline(t)
}

func (d *descriptor) SetWriteDeadline(t time.Time) error {
	d.patience = t
	return nil
}

func (d *descriptor) SetDeadline(t time.Time) error {
	return errors.Join(d.SetReadDeadline(t), d.SetWriteDeadline(t))
}

// direct is the short way of a descriptor.
type direct struct {
	*descriptor
	line *lineConn
}

// promptly gives the short way to a connection; nil if it has none.
func promptly(c *lineConn) prompter {
	if d, ok := c.Conn.(*descriptor); ok {
		return direct{d, c}
	}
	return nil
}

func (d direct) keep(data []byte) { d.line.out = append(d.line.out[:0], data...) }
