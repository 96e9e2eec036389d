package transport

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/dht/internal/nettest"
)

// streamsOf returns the host's streams of a protocol with the other host.
func streamsOf(t *testing.T, h, other *Host, proto string) (found []network.Stream) {
	t.Helper()
	id, err := peer.Decode(other.PeerID())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range h.lib.Network().ConnsToPeer(id) {
		for _, s := range c.GetStreams() {
			if string(s.Protocol()) == proto {
				found = append(found, s)
			}
		}
	}
	return found
}

func TestQuestionsShareAStream(t *testing.T) {
	const proto = "/test/echo"
	a, b := pair(t)
	b.HandleAsk(proto, func(_ context.Context, _ string, q []byte) ([]byte, error) {
		if len(q) == 0 {
			return nil, errors.New("nothing was asked")
		}
		return q, nil
	})
	ctx := nettest.Context(t)
	ask := func() {
		t.Helper()
		if got, err := a.Ask(ctx, b.PeerID(), proto, []byte("hello")); err != nil || string(got) != "hello" {
			t.Fatalf("answer %q, %v", got, err)
		}
	}
	ask()
	first := streamsOf(t, a, b, proto)
	if len(first) != 1 {
		t.Fatalf("%d streams after a question", len(first))
	}
	var refused *AnswerError
	if _, err := a.Ask(ctx, b.PeerID(), proto, nil); !errors.As(err, &refused) {
		t.Fatalf("a refusal returns %v", err)
	}
	ask()
	if now := streamsOf(t, a, b, proto); len(now) != 1 || now[0].ID() != first[0].ID() {
		t.Errorf("%d streams after three questions, or another one", len(now))
	}
	for _, end := range []func(network.Stream) error{network.Stream.Close, network.Stream.Reset} {
		for _, s := range streamsOf(t, b, a, proto) {
			if err := end(s); err != nil {
				t.Fatal(err)
			}
		}
		ask() // on a new one
	}
	if len(streamsOf(t, a, b, proto)) != 1 {
		t.Error("the stream that followed was not kept")
	}
}

// recordedClose is a stream that records that it was closed.
type recordedClose struct {
	network.Stream
	closed *bool
}

func (r recordedClose) Close() error {
	*r.closed = true
	return nil
}

func TestSpareStreamsAreClosed(t *testing.T) {
	var s idleStreams
	now := time.Now()
	stream := func() (*Stream, *bool) {
		closed := new(bool)
		return &Stream{conn: recordedClose{closed: closed}, release: func() {}}, closed
	}
	at := streamKey{"a", "/test"}
	first, firstClosed := stream()
	s.put(at, first, now)
	second, secondClosed := stream()
	s.put(at, second, now)
	if !*firstClosed || *secondClosed {
		t.Errorf("of two the first is closed: %t, the second: %t", *firstClosed, *secondClosed)
	}
	if s.pop(at, now) != second || s.pop(at, now) != nil {
		t.Error("what was kept is not taken, once")
	}
	s.put(at, second, now)
	if s.pop(at, now.Add(idleFor+1)) != nil || !*secondClosed {
		t.Error("an old one is taken")
	}
	third, thirdClosed := stream()
	s.put(at, third, now)
	fourth, fourthClosed := stream()
	s.put(streamKey{"b", "/test"}, fourth, now.Add(idleFor+1))
	s.sweep(now.Add(idleFor + 1))
	if !*thirdClosed || *fourthClosed {
		t.Errorf("of two to several peers the old one is closed: %t, the new one: %t", *thirdClosed, *fourthClosed)
	}
}

// hurried is a context whose deadline, which streams use, passes before the context ends.
type hurried struct {
	context.Context //nolint:containedctx // it is one
	until           time.Time
}

func (h hurried) Deadline() (time.Time, bool) { return h.until, true }

// A late answer is not taken for the answer to the next question, whether the stream or the context notices the timeout
// first.
func TestALateAnswerIsNoOthers(t *testing.T) {
	const proto = "/test/late"
	for name, hurry := range map[string]bool{"the stream": true, "the context": false} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t)
			ctx, cancel := context.WithCancel(nettest.Context(t))
			defer cancel()
			late := make(chan struct{})
			b.HandleAsk(proto, func(_ context.Context, _ string, q []byte) ([]byte, error) {
				if string(q) == "A" {
					if !hurry {
						cancel()
					}
					<-late
				}
				return q, nil
			})
			if got, err := a.Ask(nettest.Context(t), b.PeerID(), proto, []byte("first")); err != nil || string(got) != "first" {
				t.Fatalf("answer %q, %v", got, err)
			}
			if hurry {
				ctx = hurried{ctx, time.Now().Add(50 * time.Millisecond)}
			}
			got, err := a.Ask(ctx, b.PeerID(), proto, []byte("A"))
			close(late)
			if err == nil {
				t.Fatalf("answer %q in time", got)
			}
			if left := len(a.idle.mu.streams); left != 0 {
				t.Errorf("%d streams are kept", left)
			}
			if got, err := a.Ask(nettest.Context(t), b.PeerID(), proto, []byte("B")); err != nil || string(got) != "B" {
				t.Errorf("B is answered by %q, %v", got, err)
			}
		})
	}
}

// A peer that was restarted is asked over a new connection.
func TestQuestionsOutliveTheConnection(t *testing.T) {
	const proto = "/test/echo"
	storage := nettest.NewMemory()
	echo := func(_ context.Context, _ string, q []byte) ([]byte, error) { return q, nil }
	a, b := startHost(t, 1, nettest.NewMemory()), startHost(t, 2, storage)
	addr := b.Addrs()[0]
	if _, err := a.Connect(nettest.Context(t), addr); err != nil {
		t.Fatal(err)
	}
	b.HandleAsk(proto, echo)
	ask := func() {
		t.Helper()
		if got, err := a.Ask(nettest.Context(t), b.PeerID(), proto, []byte("hello")); err != nil || string(got) != "hello" {
			t.Fatalf("answer %q, %v", got, err)
		}
	}
	ask()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	listen, _, _ := strings.Cut(addr, "/p2p/")
	b, err := NewHost(Options{Storage: storage, Listen: []string{listen}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	b.HandleAsk(proto, echo)
	ask()
}

// The bytes of all questions and answers are counted, including those that share a stream.
func TestSharedStreamsAreCounted(t *testing.T) {
	const proto = "/test/echo"
	a, b := pair(t)
	b.HandleAsk(proto, func(_ context.Context, _ string, q []byte) ([]byte, error) { return q, nil })
	for range 3 {
		if _, err := a.Ask(nettest.Context(t), b.PeerID(), proto, []byte("hello")); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		counter prometheus.Counter
		want    float64
	}{
		"asked, out":   {a.metrics.streamOut, 3 * (4 + 5)},
		"asked, in":    {a.metrics.streamIn, 3 * (1 + 4 + 5)},
		"answered, in": {b.metrics.streamIn, 3 * (4 + 5)},
	} {
		read := prometheus.NewRegistry()
		read.MustRegister(c.counter)
		families, err := read.Gather()
		if err != nil {
			t.Fatal(err)
		}
		if got := families[0].GetMetric()[0].GetCounter().GetValue(); got != c.want {
			t.Errorf("%s: %v bytes, want %v", name, got, c.want)
		}
	}
}

// A peer that takes too long is not asked again.
func TestSilenceIsNoEnd(t *testing.T) {
	for _, err := range []error{context.DeadlineExceeded, ErrNotServed} {
		if errors.Is(wrapStreamEnded(err), errStreamEnded) {
			t.Errorf("%v counts as an end", err)
		}
	}
	for _, err := range []error{io.EOF, network.ErrReset} {
		if !errors.Is(wrapStreamEnded(err), errStreamEnded) {
			t.Errorf("%v does not count as an end", err)
		}
	}
}
