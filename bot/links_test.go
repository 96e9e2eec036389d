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
)

// If a write consumes the reset, the reader only sees EOF; it must be counted as a reset all the same.
func TestResetIsNoEnd(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := (&runState{Options: Options{Timeout: 10 * time.Second}, meter: newMeter()}).dial(t.Context(), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	other, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	other.(*net.TCPConn).SetLinger(0) //nolint:errcheck // the test would fail
	other.Close()
	for err = nil; err == nil; {
		err = c.send("move", []byte("{}\n"))
	}
	if endOf(err) != endReset {
		t.Errorf("write: %v", err)
	}
	if _, err := c.readLine(); endOf(err) != endReset {
		t.Errorf("read after it: %v", err)
	}
}

func TestEndOf(t *testing.T) {
	dial := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for _, tc := range []struct {
		err  error
		want end
	}{
		{nil, endOther},
		{fmt.Errorf("read line: %w", io.EOF), endClosed},
		{fmt.Errorf("read line: %w", io.ErrUnexpectedEOF), endClosed},
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, endReset},
		{&net.OpError{Op: "write", Err: syscall.EPIPE}, endReset},
		{fmt.Errorf("dial 127.0.0.1:1: %w", dial), endUnreachable},
		{&net.OpError{Op: "dial", Err: syscall.ECONNRESET}, endUnreachable},
		{&failure{codeRefused, "connect 0,0"}, endRefused},
		{&failure{"refused: hm", "connect 0,0"}, endOther},
		{errors.New("what?"), endOther},
	} {
		if got := endOf(tc.err); got != tc.want {
			t.Errorf("%v: %v, want %v", tc.err, got, tc.want)
		}
	}
}

// A lost chunk is requested again: at once after a reset, later if a server refused it or is unreachable. Those cases
// are counted. A player in that chunk stands still meanwhile.
func TestOriginalAsksAgain(t *testing.T) {
	now := time.Now()
	here, beside := grid.ChunkPos{}, grid.ChunkPos{X: 1}
	reset := &net.OpError{Op: "read", Err: syscall.ECONNRESET}
	for _, tc := range []struct {
		name   string
		chunk  grid.ChunkPos
		after  error // of the search, after the reset; nil: none
		astray bool
		again  time.Duration
		want   Chunks
	}{
		{name: "reset", chunk: beside},
		{name: "reset underfoot", chunk: here, astray: true},
		{name: "refused", chunk: beside, after: &failure{codeRefused, ""}, again: retryAfter, want: Chunks{Refused: 1}},
		{name: "dead", chunk: here, after: &net.OpError{Op: "dial"}, astray: true, again: retryAfter, want: Chunks{Unreachable: 1}},
		{name: "dht reset", chunk: beside, after: reset, again: retryAfter},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, _ := standing(t, Options{})
			if err := p.handle(t.Context(), event{chunk: tc.chunk, at: now, from: p.links[tc.chunk].conn, err: reset}); err != nil {
				t.Fatal(err)
			}
			if tc.after != nil {
				if err := p.handle(t.Context(), event{chunk: tc.chunk, at: now, err: tc.after}); err != nil {
					t.Fatal(err)
				}
			}
			l := p.links[tc.chunk]
			if l.conn != nil || l.requested || l.retryAt != now.Add(tc.again) || l.reset != now || p.stalledSince.IsZero() == tc.astray {
				t.Errorf("link %+v, astray since %v", l, p.stalledSince)
			}
			if got := p.meter.report(p.Options, nil).Chunks; got != tc.want {
				t.Errorf("counted %+v, want %+v", got, tc.want)
			}
			p.want(tc.chunk, now.Add(tc.again-1))
			p.want(tc.chunk, now.Add(tc.again))
			if got := <-p.requests; got != tc.chunk || len(p.requests) != 0 {
				t.Errorf("asks for %v and %d more, want %v once", got, len(p.requests), tc.chunk)
			}
		})
	}
}

// A player is lost if they cannot enter the world, or if the chunk under them is missing for too long.
func TestOriginalGivesUp(t *testing.T) {
	refused := &failure{codeRefused, ""}
	p, _ := standing(t, Options{})
	p.drop(p.here)
	p.since = time.Time{}
	if err := p.handle(t.Context(), event{chunk: p.here, at: time.Now(), err: refused}); !errors.Is(err, refused) {
		t.Errorf("refused at the entrance: %v", err)
	}
	p, _ = standing(t, Options{})
	now := time.Now()
	reset := event{chunk: p.here, at: now, from: p.links[p.here].conn, err: syscall.ECONNRESET}
	if err := p.handle(t.Context(), reset); err != nil {
		t.Fatal(err)
	}
	if err := p.handle(t.Context(), event{chunk: p.here, at: now.Add(p.Timeout), err: refused}); err != nil {
		t.Errorf("lost too early: %v", err)
	}
	if err := p.handle(t.Context(), event{chunk: p.here, at: now.Add(p.Timeout + 1), err: refused}); !errors.Is(err, refused) {
		t.Errorf("not lost: %v", err)
	}
}
