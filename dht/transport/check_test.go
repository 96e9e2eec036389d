package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/voxelpopuli/voxeld/dht/internal/nettest"
)

// socketOf returns the address on which the host accepts TCP connections.
func socketOf(t *testing.T, h *Host) (ip, port string) {
	addr := ma.StringCast(h.Addrs()[0])
	ip, err := addr.ValueForProtocol(ma.P_IP4)
	if err != nil {
		t.Fatal(err)
	}
	port, err = addr.ValueForProtocol(ma.P_TCP)
	if err != nil {
		t.Fatal(err)
	}
	return ip, port
}

// A connection whose other end is silent is closed soon after a caller has waited on it for too long, and the peer is
// reached over another one. TCP's retransmission would come late after a long cut.
func TestSilentConnectionIsReplaced(t *testing.T) {
	for _, how := range []string{"ask", "read", "reset"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			n := map[string]int{"ask": 61, "read": 63, "reset": 65}[how]
			a, b := startHost(t, n, nettest.NewMemory()), startHost(t, n+1, nettest.NewMemory())
			b.HandleAsk("/echo", func(_ context.Context, _ string, q []byte) ([]byte, error) { return q, nil })
			b.Handle("/mute", func(ctx context.Context, _ string, _ io.ReadWriteCloser) { <-ctx.Done() })
			ip, port := socketOf(t, b)
			r := nettest.StartRelay(t, net.JoinHostPort(ip, "0"), net.JoinHostPort(ip, port))
			if _, err := a.Connect(nettest.Context(t), r.Multiaddr(t)); err != nil {
				t.Fatal(err)
			}
			ask := func(patience time.Duration) error {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				_, err := a.Ask(ctx, b.PeerID(), "/echo", []byte("hello"))
				return err
			}
			if err := ask(5 * time.Second); err != nil {
				t.Fatal(err)
			}
			stream, err := a.Open(nettest.Context(t), b.PeerID(), "/mute")
			if err != nil {
				t.Fatal(err)
			}
			r.Cut.Store(true)
			cut := time.Now()
			switch how {
			case "ask":
				if err := ask(200 * time.Millisecond); err == nil {
					t.Fatal("an answer came through the cut")
				}
			case "read":
				if err := stream.(*Stream).SetReadDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
					t.Fatal(err)
				}
				if _, err := stream.Read(make([]byte, 1)); err == nil {
					t.Fatal("a byte came through the cut")
				}
			case "reset":
				stream.(*Stream).Reset()
			}
			nettest.Eventually(t, "the silent connection to be closed", func() bool {
				return a.lib.Network().Connectedness(b.lib.ID()) != network.Connected
			})
			if took := time.Since(cut); took > 2*silentTime+3*time.Second { // twice if this machine is overloaded
				t.Errorf("noticed after %v", took)
			}
			if err := ask(5 * time.Second); err != nil {
				t.Errorf("asked again: %v", err)
			}
		})
	}
}

// A peer that answers late keeps its connection.
func TestSlowPeerStaysConnected(t *testing.T) {
	a, b := pair(t)
	slow := make(chan struct{})
	b.HandleAsk("/slow", func(ctx context.Context, _ string, q []byte) ([]byte, error) {
		select {
		case <-slow:
		case <-ctx.Done():
		}
		return q, nil
	})
	defer close(slow)
	conn := a.lib.Network().ConnsToPeer(b.lib.ID())[0]
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := a.Ask(ctx, b.PeerID(), "/slow", []byte("hello")); err == nil {
		t.Fatal("it answered")
	}
	nettest.Eventually(t, "the check to end", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(a.mu.checking) == 0
	})
	if conn.IsClosed() {
		t.Error("the connection was closed")
	}
}

// A peer that was unreachable for a while can be dialled soon after it is back.
func TestPeerIsDialledAgainSoon(t *testing.T) {
	a, b := startHost(t, 67, nettest.NewMemory()), startHost(t, 68, nettest.NewMemory())
	b.HandleAsk("/echo", func(_ context.Context, _ string, q []byte) ([]byte, error) { return q, nil })
	ip, port := socketOf(t, b)
	// libp2p's backoff grows for an address without a listener.
	gone := nettest.StartRelay(t, net.JoinHostPort(ip, "0"), net.JoinHostPort(ip, port))
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	a.lib.Peerstore().AddAddr(b.lib.ID(), ma.StringCast(gone.Multiaddr(t)), time.Hour)
	ask := func() error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := a.Ask(ctx, b.PeerID(), "/echo", []byte("hello"))
		return err
	}
	for range 5 {
		if ask() == nil {
			t.Fatal("no answer")
		}
	}
	nettest.StartRelay(t, gone.Addr().String(), net.JoinHostPort(ip, port))
	start := time.Now()
	nettest.Eventually(t, "an answer", func() bool { return ask() == nil })
	if took := time.Since(start); took > dialEvery+2*time.Second {
		t.Errorf("reached after %v", took)
	}
}

// A machine that notices the end of a wait late is overloaded, and extends the wait, but only once. Others do not, and
// a failed connection is not extended at all.
func TestBreathlessMachineIsPatient(t *testing.T) {
	for name, c := range map[string]struct {
		lag  time.Duration // delay in noticing the end of the time
		err  error
		want time.Duration // of all waits together
	}{
		"in breath":        {overloadDelay / 2, context.DeadlineExceeded, time.Second},
		"out of breath":    {2 * overloadDelay, context.DeadlineExceeded, 2 * time.Second},
		"the conn is dead": {2 * overloadDelay, io.EOF, time.Second},
		"it answers":       {2 * overloadDelay, nil, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var all time.Duration
				err := probeWithRetry(time.Second, func(patience time.Duration) error {
					all += patience
					<-time.After(patience + c.lag)
					return c.err
				})
				if !errors.Is(err, c.err) || all != c.want {
					t.Errorf("waited for %v, and then %v; want %v, %v", all, err, c.want, c.err)
				}
			})
		})
	}
}
