package bot

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/test/testkit/legacyclient"
	"github.com/voxelpopuli/voxeld/wire/legacymsg"
)

// If a write consumes the reset, the reader only sees EOF; it must be counted as a reset all the same.
func TestResetIsNoEnd(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := dial(t.Context(), l.Addr().String(), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	other, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	other.(*net.TCPConn).SetLinger(0) //nolint:errcheck // the test would fail
	other.Close()
	for err = nil; err == nil; {
		_, err = c.Write([]byte("{}\n"))
	}
	if endOf(err) != endReset {
		t.Errorf("write: %v", err)
	}
	if _, err := legacyclient.New(c).ReadLine(); endOf(err) != endReset {
		t.Errorf("read after it: %v", err)
	}
}

func TestEndOf(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want end
	}{
		{nil, endOther},
		{fmt.Errorf("read line: %w", io.EOF), endClosed},
		{fmt.Errorf("read line: %w", io.ErrUnexpectedEOF), endClosed},
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, endReset},
		{&net.OpError{Op: "write", Err: syscall.EPIPE}, endReset},
		{&legacyclient.RefusedError{Answer: legacymsg.AnswerNo}, endOther},
		{errors.New("what?"), endOther},
	} {
		if got := endOf(tc.err); got != tc.want {
			t.Errorf("%v: %v, want %v", tc.err, got, tc.want)
		}
	}
}

// A chunk whose connection was reset is requested again at once. A player in that chunk stands still meanwhile.
func TestOriginalAsksAgain(t *testing.T) {
	for _, at := range []grid.ChunkPos{{}, {X: 1}} {
		now := time.Now()
		p, _ := idlePlayer(t, Options{})
		reset := event{chunk: at, at: now, from: p.links[at].conn, err: &net.OpError{Op: "read", Err: syscall.ECONNRESET}}
		if err := p.handle(t.Context(), reset); err != nil {
			t.Fatal(err)
		}
		l := p.links[at]
		if l.conn != nil || l.requested || l.reset != now || p.stalledSince.IsZero() == (at == p.here) {
			t.Errorf("%v: link %+v, stalled since %v", at, l, p.stalledSince)
		}
		p.want(at)
		p.want(at)
		if got := <-p.requests; got != at || len(p.requests) != 0 {
			t.Errorf("asks for %v and %d more, want %v once", got, len(p.requests), at)
		}
	}
}

// A player is lost if a server refuses a chunk or cannot be reached, and if the dht connection ends.
func TestOriginalStopsRetrying(t *testing.T) {
	for _, lost := range []error{
		&legacyclient.RefusedError{Answer: legacymsg.AnswerNo}, &failure{"dht connection ended", ""}, &net.OpError{Op: "dial"}, syscall.ECONNRESET,
	} {
		p, _ := idlePlayer(t, Options{})
		if err := p.handle(t.Context(), event{chunk: grid.ChunkPos{X: 1}, at: time.Now(), err: lost}); !errors.Is(err, lost) {
			t.Errorf("%v: %v", lost, err)
		}
	}
}
