package park

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Socket is a client's TCP socket, as a non-blocking file descriptor of its own. Go's netpoller wakes a thread for every event on a
// socket registered with it, even if no goroutine waits. So this one is registered only while a goroutine waits, through a
// duplicate; while the poller reads it there is no duplicate.
//
// One goroutine reads, until Release; while the socket is parked that is the poller's. Another one writes. Any goroutine may call
// Close and SetReadDeadline.
type Socket struct {
	net.Conn                // the original connection, for its addresses
	fd            int       // open until Release
	writeDeadline time.Time // the writer's deadline
	unread        []byte    // the reader's: data that was read before, other than by Read
	tls           *tls.Conn // what encrypts; nil: nothing
	ciphertext              // below it
	parking

	mu struct {
		sync.Mutex
		dup          dupFD     // the reader's; nil while the socket is parked
		err          error     // why there is none
		readDeadline time.Time // the reader's deadline
		released     bool
	}
}

// parking is the part of a socket used by the poller. Its fields are guarded by the socket's lock.
type parking struct {
	split      Splitter      // of the session; valid while the socket is parked
	handle     Handler       // nil while the socket is not parked
	unregister func()        // removes the socket from the poller; nil while it is not parked
	unparked   chan struct{} // gets a token when the socket is unparked
}

// dupFD is a duplicate file descriptor of a socket, registered with Go's netpoller.
type dupFD interface {
	Read(b []byte) (int, error)
	Write(b []byte) (int, error)
	SetReadDeadline(t time.Time) error
	SetWriteDeadline(t time.Time) error
	SyscallConn() (syscall.RawConn, error)
	Close() error
}

// Detach takes a TCP connection out of Go's netpoller, or that of a proxy (realip.Conn), of which something was read.
// The data that was read from it early is read again. It returns nil where that is not possible: then the connection is
// unchanged. The caller must Release the socket.
func Detach(c net.Conn, early []byte) *Socket {
	below := c
	secured, secure := c.(*tls.Conn)
	var base *Transport
	if secure {
		var ours bool
		if base, ours = secured.NetConn().(*Transport); !ours {
			return nil
		}
		below = base.Conn
	}
	conn, ok := below.(*net.TCPConn)
	if proxied, is := below.(interface{ TCPConn() (*net.TCPConn, bool) }); is {
		conn, ok = proxied.TCPConn()
	}
	if !ok {
		return nil
	}
	fd, err := duplicate(conn)
	if err != nil {
		return nil // no file descriptor is left
	}
	s := &Socket{Conn: c, fd: fd, unread: slices.Clone(early), tls: secured}
	s.mu.dup = conn
	if secure {
		base.socket = s
	}
	return s
}

func duplicate(socket *net.TCPConn) (fd int, err error) {
	raw, err := socket.SyscallConn()
	if err != nil {
		return -1, err
	}
	other := raw.Control(func(socket uintptr) {
		fd, err = unix.FcntlInt(socket, unix.F_DUPFD_CLOEXEC, 0)
	})
	if err := errors.Join(other, err); err != nil {
		return -1, err
	}
	if err := unix.SetNonblock(fd, true); err != nil { // as Go's are: a call that waits would stop the whole process
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// open duplicates the socket.
func (s *Socket) open() (dupFD, error) {
	fd, err := unix.FcntlInt(uintptr(s.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fd), "session"), nil
}

func (s *Socket) Read(b []byte) (int, error) {
	if len(s.unread) > 0 {
		n := copy(b, s.unread)
		s.unread = s.unread[n:]
		return n, nil
	}
	if s.tls != nil {
		return s.tls.Read(b)
	}
	return s.wait(b)
}

// wait reads from the socket itself, and waits for data.
func (s *Socket) wait(b []byte) (int, error) {
	s.mu.Lock()
	w, err := s.mu.dup, s.mu.err
	s.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return w.Read(b)
}

// Write writes all of b, and waits for the client until the write deadline.
func (s *Socket) Write(b []byte) (int, error) {
	if s.tls != nil {
		return s.writeSealed(b)
	}
	n, err := s.tryWrite(b)
	if n == len(b) || err != nil {
		return n, err
	}
	rest, err := s.write(b[n:])
	return n + rest, err
}

// write writes to the socket itself, and waits.
func (s *Socket) write(b []byte) (int, error) {
	w, err := s.openWriter()
	if err != nil {
		return 0, err
	}
	defer w.Close() //nolint:errcheck // the socket stays
	return w.Write(b)
}

// openWriter duplicates the socket for a write that waits until the write deadline.
func (s *Socket) openWriter() (dupFD, error) {
	w, err := s.open()
	if err != nil {
		return nil, err
	}
	if err := w.SetWriteDeadline(s.writeDeadline); err != nil {
		w.Close() //nolint:errcheck // the socket stays
		return nil, err
	}
	return w, nil
}

// TryWrite writes what the socket accepts without blocking, and returns the rest, which must be given to Write; nil if
// there is none. Over TLS it may be empty: what is left is encrypted already.
func (s *Socket) TryWrite(b []byte) (rest []byte, err error) {
	if s.tls != nil {
		return s.trySealed(b)
	}
	n, err := s.tryWrite(b)
	if n < len(b) {
		rest = b[n:]
	}
	return rest, err
}

// tryWrite writes to the socket itself what it accepts.
func (s *Socket) tryWrite(b []byte) (int, error) {
	n, err := transfer(unix.SYS_WRITE, s.fd, b)
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, unix.EAGAIN):
		return 0, nil
	}
	return 0, os.NewSyscallError("write", err)
}

// transfer reads or writes without waiting. The runtime is not told of the system call, which does not block: else it would wake
// its monitoring thread, sysmon, which then looks every 20 µs whether the call has ended.
func transfer(call uintptr, fd int, b []byte) (int, error) {
	for {
		n, _, err := unix.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
		switch err {
		case 0:
			return int(n), nil
		case unix.EINTR:
		default:
			return 0, err
		}
	}
}

// Close ends the connection at once, both ways. Readers and writers see an error.
func (s *Socket) Close() error { return s.shutdown(unix.SHUT_RDWR) }

// CloseWrite ends the stream towards the client.
func (s *Socket) CloseWrite() error {
	if s.tls != nil {
		s.closeSealed()
	}
	return s.shutdown(unix.SHUT_WR)
}

func (s *Socket) shutdown(how int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.released {
		return net.ErrClosed
	}
	return os.NewSyscallError("shutdown", unix.Shutdown(s.fd, how))
}

// Release frees the socket. It is called when reading and writing have ended.
func (s *Socket) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.released = true
	if s.mu.dup != nil {
		s.mu.dup.Close() //nolint:errcheck // done with
	}
	unix.Close(s.fd) //nolint:errcheck // done with
}

// SetReadDeadline also unparks the socket.
func (s *Socket) SetReadDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.readDeadline = t
	s.unpark()
	if s.mu.err != nil {
		return s.mu.err
	}
	return s.mu.dup.SetReadDeadline(t)
}

// SetWriteDeadline is called by the writer.
func (s *Socket) SetWriteDeadline(t time.Time) error {
	s.writeDeadline = t
	return nil
}

// SetDeadline sets both deadlines.
func (s *Socket) SetDeadline(t time.Time) error {
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}

// unpark returns a parked socket to its session. The lock is held.
func (s *Socket) unpark() {
	if s.handle == nil {
		return
	}
	s.unregister()
	s.handle, s.unregister = nil, nil
	if s.mu.dup, s.mu.err = s.open(); s.mu.err == nil && !s.mu.readDeadline.IsZero() {
		s.mu.err = s.mu.dup.SetReadDeadline(s.mu.readDeadline)
	}
	s.unparked <- struct{}{}
}
