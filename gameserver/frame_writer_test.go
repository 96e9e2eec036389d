//go:build unix

package gameserver

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/gameserver/codec"
	"github.com/voxelpopuli/voxeld/gameserver/outbox"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// socketPair returns the two ends of a TCP connection.
func socketPair(t testing.TB) (here, there *net.TCPConn) {
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

// straight returns an outbox that is written directly to a socket, and its writer.
func straight(t testing.TB) (o *outbox.Outbox, there *net.TCPConn) {
	t.Helper()
	here, there := socketPair(t)
	line := &streamConn{Conn: here, in: bufio.NewReader(here), framing: prefixed{}}
	release := line.detach()
	o = outbox.New(line.cut)
	o.SetCodec(codec.CBOR)
	if line.detached() == nil {
		t.Fatal("there is no short way to a TCP socket")
	}
	o.Direct = line
	var writer sync.WaitGroup
	writer.Go(func() {
		defer o.MarkClosed()
		if err := o.Drain(line); !errors.Is(err, outbox.ErrEnded) {
			t.Error(err)
		}
		release()
	})
	t.Cleanup(func() {
		there.Close()
		line.cut()
		o.End(nil)
		writer.Wait()
	})
	return o, there
}

// Frames are written directly to the socket; a message among them keeps its place.
func TestFrameLoopWritesToSocket(t *testing.T) {
	o, there := straight(t)
	in := bufio.NewReader(there)
	var p outbox.FrameWriter
	receive := func() []byte {
		t.Helper()
		if err := there.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		data, err := sessionmsg.ReadMessage(in, nil, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for tick := uint64(1); tick <= 100; tick++ {
		piece, motion := []byte{0xee, byte(tick)}, bytes.Repeat([]byte{byte(tick)}, 500)
		want := append(append(sessionmsg.AppendTick(nil, tick), piece...), motion...)
		if tick%10 == 0 {
			o.Put([]byte("first"))
		}
		o.Piece(tick, piece)
		o.PutMotion(tick, func(dst []byte, _ bool) []byte { return append(dst, motion...) })
		p.Deliver(o)
		if tick%10 == 0 {
			if got := receive(); string(got) != "first" {
				t.Fatalf("tick %d: %q, want the message that came before", tick, got)
			}
		}
		got := receive()
		// The writer was still awake, and took the piece before the frame.
		if head := len(sessionmsg.AppendTick(nil, tick)); len(got) == head+len(piece) {
			motion := receive()
			got = append(append(motion[:head:head], got[head:]...), motion[head:]...)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("tick %d: %d bytes %x..., want %d", tick, len(got), got[:min(8, len(got))], len(want))
		}
	}
	if messages, _ := p.Counts(); messages < 10 { // the writer has those while it is awake for a message
		t.Errorf("the frame loop wrote %d of 100 frames itself", messages)
	}
	if n := o.Backlog(); n != 0 {
		t.Errorf("%d bytes wait when all is written", n)
	}
}

// A client that reads late gets whole frames in order, and the frame loop never waits for it.
func TestFullSocketTearsNoFrame(t *testing.T) {
	o, there := straight(t)
	var p outbox.FrameWriter
	var longest time.Duration
	skipped := 0
	const ticks = 2000
	for tick := uint64(1); tick <= ticks; tick++ {
		if o.PutMotion(tick, func(dst []byte, _ bool) []byte { return append(dst, bytes.Repeat([]byte{byte(tick)}, 5000)...) }) {
			skipped++
		}
		began := time.Now()
		p.Deliver(o)
		longest = max(longest, time.Since(began))
	}
	if skipped == 0 {
		t.Fatal("the socket took everything: it was never full")
	}
	if longest > time.Second {
		t.Errorf("the frame loop waited %v for the client", longest)
	}
	o.End(sessionmsg.Notice{Text: "bye"})
	last, in := uint64(0), bufio.NewReader(there)
	if err := there.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	for {
		data, err := sessionmsg.ReadMessage(in, nil, 1<<20)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if data[0] != sessionmsg.TickFrame {
			continue
		}
		tick := uint64(data[1]) | uint64(data[2])<<8
		if tick <= last || data[3] != byte(tick) || (len(data)-3)%5000 > 3*outbox.LateTicks {
			t.Fatalf("a frame of tick %d, %d bytes, after %d", tick, len(data), last)
		}
		last = tick
	}
	if last == 0 {
		t.Error("no frame came")
	}
}

// Ticks follow the clock whether or not there are frames, and never run ahead of it.
func TestTicksFollowTheClock(t *testing.T) {
	var c tickClock
	total := uint64(0)
	for i, b := range []struct {
		at, wait time.Duration // ms, as numbers
		ticks    uint64
	}{
		{50, 0, 1}, {100, 0, 1}, {110, 0, 1}, {120, 5, 0}, {125, 0, 1}, {160, 15, 0}, {200, 0, 1}, {300, 0, 1}, {600, 0, 6}, {1000, 0, 8},
	} {
		ticks, wait := c.count(b.at * time.Millisecond)
		if total += ticks; ticks != b.ticks || wait != b.wait*time.Millisecond {
			t.Errorf("frame %d, at %d ms: %d ticks, wait %v; want %d and %d ms", i, b.at, ticks, wait, b.ticks, b.wait)
		}
	}
	if total != c.ticks || total < 20 || total > 21 {
		t.Errorf("%d ticks in a second of %v each", total, region.TickEvery)
	}
}

// BenchmarkDeliver measures writing a frame from the frame loop into a real TCP socket.
func BenchmarkDeliver(b *testing.B) {
	o, there := straight(b)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		io.Copy(io.Discard, there) //nolint:errcheck // until the other side closes
	}()
	var p outbox.FrameWriter
	motion := make([]byte, 900)
	b.ReportAllocs()
	for tick := uint64(1); b.Loop(); tick++ {
		o.PutMotion(tick, func(dst []byte, _ bool) []byte { return append(dst, motion...) })
		p.Deliver(o)
	}
	there.Close()
	<-drained
}
