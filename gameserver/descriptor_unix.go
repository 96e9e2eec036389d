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

// descriptor is the socket of a CBOR session over TCP, as a non-blocking file descriptor of the gateway's own. Go's netpoller
// wakes a thread for every event on a socket registered with it, even if no goroutine waits. So this one is registered only while
// a goroutine waits, through a duplicate; while the poller reads it there is no duplicate.
//
// One goroutine reads, until release; while the socket is parked that is the poller's. Another one writes. Any goroutine may call
// Close and SetReadDeadline.
type descriptor struct {
	net.Conn                // the original connection, for its addresses
	fd            int       // open until release
	writeDeadline time.Time // the writer's deadline
	unread        []byte    // the reader's: data that was read before, other than by Read
	parking

	mu struct {
		sync.Mutex
		dup          dupFD     // the reader's; nil while the socket is parked
		err          error     // why there is none
		readDeadline time.Time // the reader's deadline
		released     bool
	}
}

// dupFD is a duplicate file descriptor of a socket, registered with Go's netpoller.
type dupFD interface {
	Read(b []byte) (int, error)
	Write(b []byte) (int, error)
	SetReadDeadline(t time.Time) error
	SetWriteDeadline(t time.Time) error
	Close() error
}

// takeOver replaces a connection by its descriptor when a CBOR session is requested on it. Where that is not possible nothing
// changes. The returned release ends the session's connection so that the last message is delivered.
func takeOver(c *lineConn) (release func()) {
	socket, ok := c.Conn.(*net.TCPConn)
	if !ok || !c.framed {
		return func() {}
	}
	fd, err := duplicate(socket)
	if err != nil {
		return func() {} // no file descriptor is left: the connection stays as it is
	}
	d := &descriptor{Conn: socket, fd: fd}
	if n := c.in.Buffered(); n > 0 {
		early, _ := c.in.Peek(n)
		d.unread = append(d.unread, early...)
	}
	d.mu.dup = socket
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

// open duplicates the descriptor.
func (d *descriptor) open() (dupFD, error) {
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
	w, err := d.mu.dup, d.mu.err
	d.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return w.Read(b)
}

// Write writes all of b, and waits for the client until the write deadline.
func (d *descriptor) Write(b []byte) (int, error) {
	n, err := d.tryWrite(b)
	if n == len(b) || err != nil {
		return n, err
	}
	w, err := d.open()
	if err != nil {
		return n, err
	}
	defer w.Close() //nolint:errcheck // the socket stays
	if err := w.SetWriteDeadline(d.writeDeadline); err != nil {
		return n, err
	}
	rest, err := w.Write(b[n:])
	return n + rest, err
}

// tryWrite writes what the socket accepts without blocking.
func (d *descriptor) tryWrite(b []byte) (int, error) {
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

// Close ends the connection at once, both ways. Readers and writers see an error.
func (d *descriptor) Close() error { return d.shutdown(unix.SHUT_RDWR) }

// CloseWrite ends the stream towards the client.
func (d *descriptor) CloseWrite() error { return d.shutdown(unix.SHUT_WR) }

func (d *descriptor) shutdown(how int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.released {
		return net.ErrClosed
	}
	return os.NewSyscallError("shutdown", unix.Shutdown(d.fd, how))
}

// release is called when reading and writing have ended.
func (d *descriptor) release() {
	hangUp(d)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.released = true
	if d.mu.dup != nil {
		d.mu.dup.Close() //nolint:errcheck // done with
	}
	unix.Close(d.fd) //nolint:errcheck // done with
}

// SetReadDeadline also unparks the socket.
func (d *descriptor) SetReadDeadline(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.readDeadline = t
	d.unpark()
	if d.mu.err != nil {
		return d.mu.err
	}
	return d.mu.dup.SetReadDeadline(t)
}

func (d *descriptor) SetWriteDeadline(t time.Time) error {
	d.writeDeadline = t
	return nil
}

func (d *descriptor) SetDeadline(t time.Time) error {
	return errors.Join(d.SetReadDeadline(t), d.SetWriteDeadline(t))
}

// descriptorWriter writes to a descriptor without blocking.
type descriptorWriter struct {
	*descriptor
	line *lineConn
}

// directWriterOf returns a non-blocking writer for a connection; nil if there is none.
func directWriterOf(c *lineConn) directWriter {
	if d, ok := c.Conn.(*descriptor); ok {
		return descriptorWriter{d, c}
	}
	return nil
}

func (d descriptorWriter) writeLater(data []byte) { d.line.out = append(d.line.out[:0], data...) }
