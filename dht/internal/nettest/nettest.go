// Package nettest is what the tests of package dht and its subpackages share: a storage in memory, and a relay that can
// be cut like a cable.
package nettest

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Relay forwards TCP connections to an address until it is cut. From then on bytes vanish without an error, as between
// two machines whose cable is pulled.
type Relay struct {
	net.Listener
	Cut atomic.Bool
	wg  sync.WaitGroup
}

// StartRelay starts a relay that listens on an address. It is closed when the test ends.
func StartRelay(t testing.TB, listen, to string) *Relay {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		t.Fatal(err)
	}
	r := &Relay{Listener: l}
	var mu sync.Mutex
	var conns []net.Conn
	keep := func(c net.Conn) {
		mu.Lock()
		defer mu.Unlock()
		conns = append(conns, c)
	}
	r.wg.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			keep(in)
			out, err := net.Dial("tcp", to)
			if err != nil {
				continue
			}
			keep(out)
			r.wg.Go(func() { r.pass(out, in) })
			r.wg.Go(func() { r.pass(in, out) })
		}
	})
	t.Cleanup(func() {
		l.Close() //nolint:errcheck // the test has ended
		mu.Lock()
		for _, c := range conns {
			c.Close() //nolint:errcheck // the test has ended
		}
		mu.Unlock()
		r.wg.Wait()
	})
	return r
}

func (r *Relay) pass(to io.Writer, from io.Reader) {
	buf := make([]byte, 4096)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if r.Cut.Load() {
			continue
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// Multiaddr returns the relay's address in libp2p's form.
func (r *Relay) Multiaddr(t testing.TB) string {
	ip, port, err := net.SplitHostPort(r.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return "/ip4/" + ip + "/tcp/" + port
}

// Eventually polls a condition that depends on real sockets.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(15 * time.Second)
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("gave up waiting for %s", what)
		}
	}
}

// Context returns a context that ends after 20 s, or with the test.
func Context(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}
