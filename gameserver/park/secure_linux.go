package park

import (
	"cmp"
	"errors"
	"io"
	"net"
	"sync"

	"golang.org/x/sys/unix"
)

// This file is TLS over a socket: crypto/tls encrypts, and what it has encrypted is written when the socket accepts it;
// it decrypts, and finds nothing to read where the poller must not wait.

// Transport is a connection below TLS. Detach replaces it by a socket.
type Transport struct {
	net.Conn
	socket *Socket // nil before; of the goroutines that use the socket
}

// NetConn returns the connection that was accepted.
func (b *Transport) NetConn() net.Conn { return b.Conn }

func (b *Transport) Read(p []byte) (int, error) {
	if b.socket != nil {
		return b.socket.readSealed(p)
	}
	return b.Conn.Read(p)
}

func (b *Transport) Write(p []byte) (int, error) {
	if b.socket != nil {
		return b.socket.seal(p)
	}
	return b.Conn.Write(p)
}

// TransportListener returns a listener for tls.NewListener whose connections can be detached.
func TransportListener(l net.Listener) net.Listener { return listener{l} }

type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &Transport{Conn: c}, nil
}

// ciphertext is the state of a socket below TLS.
type ciphertext struct {
	polled  bool // the reader's: reads must not wait
	empty   bool // and the last one has found less than there was room for
	arrived int  // bytes read since the last poll began

	sealed struct {
		sync.Mutex        // held for no wait: the reader takes it, too, which may answer for TLS
		data       []byte // encrypted, and not written yet
	}
}

const (
	// sealedAtOnce is how much is encrypted before it is written, and keepSealed how large a buffer is kept. MaxSealed is
	// how much may wait: a client can make TLS answer, and read nothing.
	sealedAtOnce = 64 << 10
	keepSealed   = 16 << 10
	maxSealed    = 4 * sealedAtOnce
	// maxPolled is about how many bytes are read at once: there may be many records in them that say nothing.
	maxPolled = 16 << 10
)

var errSealed = errors.New("too much waits to be written")

// wouldBlock is returned to TLS while nothing has arrived. It reads on after an error that is temporary.
type wouldBlock struct{}

func (wouldBlock) Error() string   { return "nothing to read" }
func (wouldBlock) Timeout() bool   { return true }
func (wouldBlock) Temporary() bool { return true }

// readSealed reads for TLS.
func (s *Socket) readSealed(b []byte) (int, error) {
	switch {
	case !s.polled:
		return s.wait(b)
	case s.empty, s.arrived >= maxPolled:
		return 0, wouldBlock{}
	}
	n, err := transfer(unix.SYS_READ, s.fd, b)
	s.arrived += max(n, 0)
	if errors.Is(err, unix.EAGAIN) {
		return 0, wouldBlock{}
	}
	s.empty = n < len(b)
	if n == 0 && err == nil {
		return 0, io.EOF
	}
	return max(n, 0), err
}

// poll reads what has arrived, decrypted; EAGAIN if that is nothing. Whoever reads the socket calls it.
func (s *Socket) poll(b []byte) (n int, err error) {
	if s.tls == nil {
		return transfer(unix.SYS_READ, s.fd, b)
	}
	s.polled, s.empty, s.arrived = true, false, 0
	defer func() { s.polled = false }()
	for n < len(b) && err == nil {
		var more int
		more, err = s.tls.Read(b[n:])
		n += more
	}
	if errors.Is(err, wouldBlock{}) {
		if err = nil; n == 0 {
			err = unix.EAGAIN
		}
	}
	return n, err
}

// more reports whether the last poll has left data in the socket.
func (s *Socket) more() bool { return s.arrived >= maxPolled && !s.empty }

// readAhead reports whether the reader has something to read: TLS may hold what has arrived, and the poller would wait
// for more.
func (s *Socket) readAhead() bool {
	var b [512]byte
	n, err := s.poll(b[:])
	s.unread = append(s.unread, b[:n]...)
	return n > 0 || s.more() || !errors.Is(err, unix.EAGAIN)
}

// seal takes what TLS has encrypted.
func (s *Socket) seal(b []byte) (int, error) {
	s.sealed.Lock()
	defer s.sealed.Unlock()
	if len(s.sealed.data) > maxSealed {
		return 0, errSealed
	}
	s.sealed.data = append(s.sealed.data, b...)
	return len(b), nil
}

// flush writes what the socket accepts. It reports whether that is all.
func (s *Socket) flush() (all bool, err error) {
	s.sealed.Lock()
	defer s.sealed.Unlock()
	if len(s.sealed.data) == 0 {
		return true, nil
	}
	n, err := s.tryWrite(s.sealed.data)
	if rest := len(s.sealed.data) - n; rest > 0 {
		s.sealed.data = s.sealed.data[:copy(s.sealed.data, s.sealed.data[n:])]
		return false, err
	}
	s.resetSealed()
	return true, err
}

// resetSealed empties the buffer, whose lock is held.
func (s *Socket) resetSealed() {
	if s.sealed.data = s.sealed.data[:0]; cap(s.sealed.data) > keepSealed {
		s.sealed.data = nil
	}
}

// trySealed is TryWrite over TLS. Of a large b no more is encrypted than the socket may take soon.
func (s *Socket) trySealed(b []byte) (rest []byte, err error) {
	for {
		if all, err := s.flush(); !all || err != nil {
			return b, err
		}
		if len(b) == 0 {
			return nil, nil
		}
		n := min(len(b), sealedAtOnce)
		if _, err := s.tls.Write(b[:n]); err != nil {
			return b, err
		}
		b = b[n:]
	}
}

// writeSealed is Write over TLS.
func (s *Socket) writeSealed(b []byte) (int, error) {
	rest, err := s.trySealed(b)
	if rest == nil || err != nil {
		return len(b) - len(rest), err
	}
	w, err := s.openWriter()
	if err != nil {
		return 0, err
	}
	defer w.Close() //nolint:errcheck // the socket stays
	raw, err := w.SyscallConn()
	if err != nil {
		return 0, err
	}
	waiting := raw.Write(func(uintptr) bool { // again and again, when the socket has room
		rest, err = s.trySealed(rest)
		return rest == nil || err != nil
	})
	return len(b) - len(rest), cmp.Or(err, waiting)
}

// closeSealed sends the client the notice of TLS that the stream ends, as far as the socket accepts it.
func (s *Socket) closeSealed() {
	if s.tls.CloseWrite() == nil {
		s.flush() //nolint:errcheck // the connection is being closed
	}
}
