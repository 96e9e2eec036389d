package dht

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
)

// streamsOf lists the host's streams of a protocol with the other one.
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
	ctx := testContext(t)
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
		t.Fatalf("a refusal gives %v", err)
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

// recordedClose is a stream that notes that it was closed.
type recordedClose struct {
	network.Stream
	closed *bool
}

func (r recordedClose) Close() error {
	*r.closed = true
	return nil
}

func TestSpareStreamsAreClosed(t *testing.T) {
	var s spare
	now := time.Now()
	stream := func() (*Stream, *bool) {
		closed := new(bool)
		return &Stream{conn: recordedClose{closed: closed}, release: func() {}}, closed
	}
	at := askedAt{"a", "/test"}
	first, firstClosed := stream()
	s.keep(at, first, now)
	second, secondClosed := stream()
	s.keep(at, second, now)
	if !*firstClosed || *secondClosed {
		t.Errorf("of two the first is closed: %t, the second: %t", *firstClosed, *secondClosed)
	}
	if s.take(at, now) != second || s.take(at, now) != nil {
		t.Error("what was kept is not taken, once")
	}
	s.keep(at, second, now)
	if s.take(at, now.Add(spareFor+1)) != nil || !*secondClosed {
		t.Error("an old one is taken")
	}
	third, thirdClosed := stream()
	s.keep(at, third, now)
	fourth, fourthClosed := stream()
	s.keep(askedAt{"b", "/test"}, fourth, now.Add(spareFor+1))
	if !*thirdClosed || *fourthClosed {
		t.Errorf("of two to several peers the old one is closed: %t, the new one: %t", *thirdClosed, *fourthClosed)
	}
}

// A peer that takes too long is not asked once more.
func TestSilenceIsNoEnd(t *testing.T) {
	for _, err := range []error{context.DeadlineExceeded, ErrNotServed} {
		if errors.Is(ended(err), errEnded) {
			t.Errorf("%v counts as an end", err)
		}
	}
	for _, err := range []error{io.EOF, network.ErrReset} {
		if !errors.Is(ended(err), errEnded) {
			t.Errorf("%v does not count as an end", err)
		}
	}
}
