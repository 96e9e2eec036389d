package park

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// parkedSocket is a socket that a test parks.
type parkedSocket struct {
	*Socket
	in    *bufio.Reader
	there *net.TCPConn
	left  chan struct{}
	last  chan struct{} // closed when the last message has arrived

	mu struct {
		sync.Mutex
		handled []string
	}
}

const lastWord = "bye"

// startPoller returns a poller whose rounds the test makes.
func startPoller(t *testing.T) *Poller {
	t.Helper()
	p := NewPoller(slog.New(slog.DiscardHandler), false)
	if err := p.open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	return p
}

// parkNew parks one end of a new connection. It does not handle messages that begin with '!', and unparks after those that begin
// with '.'.
func parkNew(t *testing.T, p *Poller) *parkedSocket {
	t.Helper()
	here, there := socketPair(t)
	l := &parkedSocket{Socket: Detach(here, nil), there: there, last: make(chan struct{})}
	l.in = bufio.NewReader(l.Socket)
	t.Cleanup(func() {
		there.Close()
		l.Release()
	})
	l.parkAgain(t, p)
	return l
}

// socketPair returns the two ends of a TCP connection.
func socketPair(t *testing.T) (here, there *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dialled, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dialled.Close(); accepted.Close() })
	return accepted.(*net.TCPConn), dialled.(*net.TCPConn)
}

// parkAgain does what Poller.Park does, without waiting.
func (l *parkedSocket) parkAgain(t *testing.T, p *Poller) {
	t.Helper()
	if !p.park(l.Socket, splitPrefixed, l.handleMessage) {
		t.Fatal("not parked")
	}
	l.left = l.unparked
}

// splitPrefixed is the Splitter of messages after their length.
func splitPrefixed(received []byte) (message []byte, size int) {
	n, head := binary.Uvarint(received)
	if head <= 0 || n == 0 || n > uint64(len(received)-head) {
		return nil, 0
	}
	return received[head : head+int(n)], head + int(n)
}

// read reads a message that the poller has left.
func (l *parkedSocket) read() ([]byte, error) { return sessionmsg.ReadMessage(l.in, nil, wire.MaxLine) }

func (l *parkedSocket) handleMessage(data []byte) (taken, stay bool) {
	if data[0] == '!' {
		return false, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.handled = append(l.mu.handled, string(data))
	if string(data) == lastWord {
		close(l.last)
	}
	return true, data[0] != '.'
}

func (l *parkedSocket) handled() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.mu.handled)
}

// write sends bytes, and returns when they have arrived.
func (l *parkedSocket) write(t *testing.T, data []byte) {
	t.Helper()
	if _, err := l.there.Write(data); err != nil {
		t.Fatal(err)
	}
	l.arrives(t)
}

func (l *parkedSocket) arrives(t *testing.T) {
	t.Helper()
	ready := []unix.PollFd{{Fd: int32(l.fd), Events: unix.POLLIN}}
	for n := 0; n == 0; {
		var err error
		if n, err = unix.Poll(ready, 10_000); n == 0 || err != nil && !errors.Is(err, unix.EINTR) {
			t.Fatal("nothing arrives", err)
		}
	}
}

func said(text ...string) (data []byte) {
	for _, w := range text {
		data = sessionmsg.AppendMessage(data, []byte(w))
	}
	return data
}

// The session itself reads what the poller does not handle, from its first byte on.
func TestPollerTakesStepsOnly(t *testing.T) {
	long := strings.Repeat("x", pollBytes)
	for _, c := range []struct {
		name     string
		sent     []byte
		close    bool
		received []string // in the round
		next     string   // then read
		err      error    // or this
	}{
		{"steps only", said("a", "b", "c"), false, []string{"a", "b", "c"}, "", nil},
		{"something else", said("a", "!b", "c"), false, []string{"a"}, "!b", nil},
		{"something else first", said("!b"), false, nil, "!b", nil},
		{"a last step", said("a", ".b", "c"), false, []string{"a", ".b"}, "c", nil},
		{"half a message", said("a", "bcdef")[:5], true, []string{"a"}, "", io.ErrUnexpectedEOF},
		{"half a length", append(said("a"), 0x80), true, []string{"a"}, "", io.ErrUnexpectedEOF},
		{"no message", append(said("a"), 0), false, []string{"a"}, "", &wire.Error{}},
		{"garbage", append(said("a"), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), false, []string{"a"}, "", &wire.Error{}},
		{"more than a round takes", said("a", long), false, []string{"a"}, long, nil},
		{"the end", nil, true, nil, "", io.EOF},
		{"steps and the end", said("a", "b"), true, []string{"a", "b"}, "", io.EOF},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := startPoller(t)
			l := parkNew(t, p)
			if len(c.sent) > 0 {
				l.write(t, c.sent)
			}
			if c.close {
				if err := l.there.CloseWrite(); err != nil {
					t.Fatal(err)
				}
				for l.closing(t) {
				}
			}
			p.round()
			if got := l.handled(); !slices.Equal(got, c.received) {
				t.Errorf("received %q, want %q", got, c.received)
			}
			if c.next == "" && c.err == nil {
				if n := p.Parked(); n != 1 || len(l.left) != 0 {
					t.Errorf("%d sockets are parked, want this one", n)
				}
				return
			}
			if <-l.left; p.Parked() != 0 {
				t.Fatal("the socket is still parked")
			}
			data, err := l.read()
			var refused *wire.Error
			if wants := errors.As(c.err, &refused); string(data) != c.next || wants != errors.As(err, &refused) || !wants && !errors.Is(err, c.err) {
				t.Errorf("read %.20q and %v, want %.20q and %v", data, err, c.next, c.err)
			}
		})
	}
}

// closing reports whether the end of the client's stream is still in transit.
func (l *parkedSocket) closing(t *testing.T) bool {
	t.Helper()
	ready := []unix.PollFd{{Fd: int32(l.fd), Events: unix.POLLRDHUP}}
	_, err := unix.Poll(ready, 10_000)
	if err != nil && !errors.Is(err, unix.EINTR) {
		t.Fatal(err)
	}
	return ready[0].Revents&unix.POLLRDHUP == 0
}

// A socket may be parked again, and nothing that arrived meanwhile is lost.
func TestPollerParksAgain(t *testing.T) {
	p := startPoller(t)
	l := parkNew(t, p)
	for turn := range 20 {
		step, other := fmt.Sprint("step", turn), fmt.Sprint("!other", turn)
		l.write(t, said(step))
		p.round()
		l.write(t, said(other))
		p.round()
		<-l.left
		if data, err := l.read(); err != nil || string(data) != other {
			t.Fatalf("read %q (%v), want %q", data, err, other)
		}
		between := said(fmt.Sprint("between", turn))
		if turn%2 == 0 {
			l.write(t, between) // it is there when the socket is parked, and raises no event any more
		}
		l.parkAgain(t, p)
		if turn%2 == 1 {
			l.write(t, between)
		}
		p.round()
		if got := l.handled(); len(got) != 2*turn+2 || got[2*turn] != step || got[2*turn+1] != fmt.Sprint("between", turn) {
			t.Fatalf("received %q", got)
		}
	}
}

// Many sockets, of which some are ended by their clients, some by the gateway, and some unparked, during rounds. Each is unparked
// exactly once, what others send arrives, and nothing is left over.
func TestPollerUnderway(t *testing.T) {
	const sockets, words = 3 * pollEvents / 2, 20
	files := openFiles(t)
	t.Run("sockets", func(t *testing.T) {
		p := startPoller(t)
		all := make([]*parkedSocket, sockets)
		for i := range all {
			all[i] = parkNew(t, p)
		}
		var clients, rounds sync.WaitGroup
		ctx, stop := context.WithCancel(t.Context())
		rounds.Go(func() {
			for ctx.Err() == nil {
				p.round()
			}
		})
		for i, l := range all {
			clients.Go(func() {
				ends := rand.IntN(words)
				for w := range words {
					l.there.Write(said(fmt.Sprint(w))) //nolint:errcheck // it may be ended
					switch {
					case w < ends:
					case i%4 == 1:
						l.there.Close()
					case i%4 == 2:
						l.SetReadDeadline(time.Now()) //nolint:errcheck // as close does
					case i%4 == 3:
						l.Close()
					}
				}
				if i%4 == 0 {
					l.there.Write(said(lastWord)) //nolint:errcheck // checked below
					<-l.last
					return
				}
				<-l.left
			})
		}
		clients.Wait()
		stop()
		rounds.Wait()
		if n := p.Parked(); n != (sockets+3)/4 {
			t.Errorf("%d are parked, want those who stay", n)
		}
		for i, l := range all {
			if i%4 != 0 {
				continue
			}
			if got := l.handled(); len(got) != words+1 {
				t.Errorf("received %q", got)
			}
			l.SetReadDeadline(time.Now()) //nolint:errcheck // as close does
			<-l.left
			if _, err := l.read(); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("read reports %v", err)
			}
		}
	})
	if now := openFiles(t); now > files {
		t.Errorf("%d file descriptors are open, before %d", now, files)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// A writer waits for a client that does not read while the socket is parked, until the deadline.
func TestWriterWaitsWhileParked(t *testing.T) {
	p := startPoller(t)
	l := parkNew(t, p)
	if err := l.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	sent := bytes.Repeat([]byte("land"), 4<<20)
	wrote := make(chan error, 1)
	go func() {
		_, err := l.Write(sent)
		wrote <- err
	}()
	l.write(t, said("a")) // others are read meanwhile, and so is this one
	p.round()
	if got := l.handled(); len(got) != 1 {
		t.Errorf("received %q", got)
	}
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(l.there, got); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("what arrived is not what was sent (%v)", err)
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}
	if err := l.SetWriteDeadline(time.Now().Add(time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Write(sent); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("to a client who does not read any more: %v", err)
	}
}
