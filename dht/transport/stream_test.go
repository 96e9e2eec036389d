package transport

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/voxelpopuli/voxeld/dht/internal/nettest"
)

// scope counts what is reserved, up to a limit.
type scope struct {
	network.ResourceScope
	limit, held int
}

func (s *scope) ReserveMemory(n int, _ uint8) error {
	if s.held+n > s.limit {
		return errors.New("too much")
	}
	s.held += n
	return nil
}

func (s *scope) ReleaseMemory(n int) { s.held -= n }

// What is missing of a frame counts as the peer's memory until it is there, and the stream is reset if that takes too
// long.
func TestGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, resets := &scope{limit: 100}, 0
		s := &Stream{memory: memory, reset: func() { resets++ }, release: func() {}, checkConnection: func() {}}
		done, err := s.Guard(60)
		if err != nil || memory.held != 60 {
			t.Fatalf("held %d, %v", memory.held, err)
		}
		if _, err := s.Guard(60); err == nil || memory.held != 60 {
			t.Errorf("more than the limit is held: %d, %v", memory.held, err)
		}
		time.Sleep(frameTime - time.Second)
		done()
		time.Sleep(time.Minute)
		synctest.Wait()
		if memory.held != 0 || resets != 0 {
			t.Errorf("after a frame in time: held %d, %d resets", memory.held, resets)
		}
		if done, err = s.Guard(60); err != nil {
			t.Fatal(err)
		}
		time.Sleep(frameTime + time.Second)
		synctest.Wait()
		if resets != 1 {
			t.Errorf("a late frame: %d resets", resets)
		}
		if done(); memory.held != 0 {
			t.Errorf("after a late frame: held %d", memory.held)
		}
	})
}

// A panic in the handler of a stream ends that stream only, whoever opened it.
func TestPanicEndsOneStream(t *testing.T) {
	a, b := pair(t)
	answer := make(chan struct{})
	b.Handle("/test/1", func(_ context.Context, _ string, stream io.ReadWriteCloser) {
		var bad [1]byte
		if _, err := io.ReadFull(stream, bad[:]); err != nil || bad[0] == 'b' {
			panic("a mistake of ours")
		}
		<-answer
		stream.Write(bad[:]) //nolint:errcheck // the reader sees it
	})
	open := func(from *Host, first string) io.ReadWriteCloser {
		t.Helper()
		s, err := from.Open(nettest.Context(t), b.PeerID(), "/test/1")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(s, first); err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, from := range []*Host{a, b} {
		good := open(from, "g")
		if got, err := io.ReadAll(open(from, "b")); len(got) > 0 {
			t.Errorf("the stream ends with %q, %v", got, err)
		}
		answer <- struct{}{}
		if got, err := io.ReadAll(good); err != nil || string(got) != "g" {
			t.Errorf("the other one is answered %q, %v", got, err)
		}
	}
}

// A question whose time was over before it was sent leaves a stream of which the peer knows nothing. To close it takes
// no time.
func TestCloseDoesNotWait(t *testing.T) {
	a, b := pair(t)
	const proto = "/test/echo"
	b.HandleAsk(proto, func(_ context.Context, _ string, q []byte) ([]byte, error) { return q, nil })
	ctx := nettest.Context(t)
	if _, err := a.Ask(ctx, b.PeerID(), proto, nil); err != nil { // from now on the protocol is not negotiated before a stream is used
		t.Fatal(err)
	}
	began := time.Now()
	var wg sync.WaitGroup
	for range 50 { // libp2p may notice in time that it need not wait
		wg.Go(func() {
			s, err := a.open(ctx, b.PeerID(), proto)
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.SetDeadline(began); err != nil {
				t.Error(err)
			}
			if _, err := s.Write([]byte("late")); !isTimeout(err) {
				t.Errorf("a write after the deadline returns %v", err)
			}
			s.closeQuietly()
		})
	}
	wg.Wait()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("to close the streams took %v", took)
	}
}
