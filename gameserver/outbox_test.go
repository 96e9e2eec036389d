package gameserver

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// sinkFunc is a sink that does not buffer.
type sinkFunc func([]byte) error

func (f sinkFunc) write(data []byte) error { return f(data) }
func (f sinkFunc) flush() error            { return nil }

// written drains an ended outbox.
func written(o *outbox) (messages []string, err error) {
	err = o.drain(sinkFunc(func(data []byte) error {
		messages = append(messages, string(data))
		return nil
	}))
	return messages, err
}

func TestOutboxComposesFrames(t *testing.T) {
	o := newOutbox(func() {})
	defer o.markClosed()
	o.piece(3, []byte(`{"a":1}`))
	o.piece(4, []byte(`{"b":2}`))
	o.put([]byte("chunk"))
	o.piece(5, []byte(`{"c":3}`))
	o.put([]byte("ack"))
	o.put([]byte("pong"))
	o.end(sessionmsg.Notice{Text: "bye"})
	o.put([]byte("too late"))
	o.end(sessionmsg.Notice{Text: "bye again"})
	got, err := written(o)
	want := []string{
		`{"type":"frame","tick":4,"chunks":[{"a":1},{"b":2}]}`, "chunk",
		`{"type":"frame","tick":5,"chunks":[{"c":3}]}`, "ack", "pong", `{"type":"notice","text":"bye"}`,
	}
	if !slices.Equal(got, want) || !errors.Is(err, errEnded) {
		t.Errorf("written %q (%v), want %q", got, err, want)
	}
}

func TestFramesAreBounded(t *testing.T) {
	o := newOutbox(func() {})
	defer o.markClosed()
	piece := []byte(`"` + strings.Repeat("x", frameLimit/3) + `"`)
	for range 7 {
		o.piece(1, piece)
	}
	o.piece(2, bytes.Repeat(piece, 5)) // a piece is never split
	o.end(nil)
	frames, _ := written(o)
	if len(frames) != 5 {
		t.Errorf("%d frames, want 5: four with two pieces or less, and the large one", len(frames))
	}
	for i, f := range frames[:4] {
		if len(f) > frameLimit+100 {
			t.Errorf("frame %d has %d bytes", i, len(f))
		}
	}
}

// What was written does not count against a client, however much it becomes.
func TestReadingClientIsNeverSlow(t *testing.T) {
	o := newOutbox(func() {})
	defer o.markClosed()
	var d writeBuffers
	for i := range 3 * outboxLimit >> 20 {
		o.put(make([]byte, 1<<20-100))
		o.piece(1, make([]byte, 100))
		if err := d.clear(o, sinkFunc(func([]byte) error { return nil })); err != nil {
			t.Fatalf("ended after %d MiB: %v", i+1, err)
		}
	}
}

func TestSlowClientGetsAReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cut := false
		o := newOutbox(func() { cut = true })
		block := make([]byte, 1<<20)
		for range outboxLimit/len(block) - 1 {
			o.put(block)
		}
		// What the writer has taken counts until it is written.
		stuck, goOn := make(chan struct{}), make(chan struct{})
		var got []string
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer o.markClosed()
			if err := o.drain(sinkFunc(func(data []byte) error {
				if len(got) == 0 {
					close(stuck)
					<-goOn
				}
				got = append(got, string(data[:min(len(data), 60)]))
				return nil
			})); !errors.Is(err, errEnded) {
				t.Error(err)
			}
		}()
		<-stuck
		o.put(block)
		o.put([]byte("one byte too many, or more"))
		o.put([]byte("after the end"))
		close(goOn)
		<-done
		if len(got) != 2 || !strings.Contains(got[1], wire.FailSlow) {
			t.Errorf("written %d messages, the last %q; want the one under way, and why", len(got), got[len(got)-1])
		}
		pass(2 * closeTimeout)
		if cut {
			t.Error("cut although it was closed in order")
		}
	})
}

func TestLastWordsAreShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		here, there := net.Pipe() // whose other end never reads
		defer here.Close()
		line := &lineConn{Conn: there, ending: "\n"}
		o := newOutbox(line.cut)
		began := time.Now()
		o.put([]byte("hello"))
		o.end(sessionmsg.Notice{Text: "bye"})
		o.runWriter(line, r.g.metrics, r.g.Logger)
		if took := time.Since(began); took != closeTimeout {
			t.Errorf("took %v, want %v", took, closeTimeout)
		}
	})
}

// Clients that do not read do not affect the others: their connections end, and nobody else misses anything.
func TestStalledClientsHurtNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		const all, stalled = 50, 10
		var players []*client
		for i := range all {
			name := fmt.Sprintf("p%d", i)
			if i%(all/stalled) == 0 { // joins, and never reads a byte
				c := newClient(t, r.dial())
				c.send(sessionmsg.Join{Version: sessionmsg.SessionVersion, Name: name, View: 1, Encoding: "json"})
				continue
			}
			players = append(players, r.join(name, 1))
		}
		if got := len(r.g.Online()); got != all {
			t.Fatalf("%d players online, want %d", got, all)
		}
		place := under(players[0])
		for i := range 40 {
			for n, c := range players {
				c.goTo(.5+float64(n)*.1, 25, .5+float64(i)*.05)
			}
			before := time.Now()
			seq := players[i%len(players)].put(place, 11+blockOf(i))
			pass(100 * time.Millisecond)
			if waited := time.Since(before); waited != 100*time.Millisecond {
				t.Fatalf("the players waited %v", waited)
			}
			if ack := players[i%len(players)].answer(seq); ack.Error != "" {
				t.Fatalf("edit is refused: %+v", ack)
			}
		}
		pass(writeTimeout)
		if got := len(r.g.Online()); got != all-stalled {
			t.Errorf("%d players online, want %d", got, all-stalled)
		}
		for n, c := range players {
			c.sees(r.lands, 1)
			if len(c.mu.avatars) != all-stalled {
				t.Errorf("player %d sees %d avatars, want %d", n, len(c.mu.avatars), all-stalled)
			}
			a := c.mu.avatars[players[0].mu.welcome.Player]
			if want := .5 + 39*.05; math.Abs(a.Z-want) > halfUnit {
				t.Errorf("player %d sees the first one at %v, want %v", n, a.Z, want)
			}
		}
	})
}
