package httpd

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/gameserver/realip"
)

// perAddress admits two connections of each host.
type perAddress struct {
	sync.Mutex
	held map[string]int
}

func (p *perAddress) admit(remote net.Addr) (release func(), ok bool) {
	host, _, err := net.SplitHostPort(remote.String())
	if err != nil {
		panic(err)
	}
	p.Lock()
	defer p.Unlock()
	if p.held[host] >= 2 {
		return nil, false
	}
	p.held[host]++
	return func() {
		p.Lock()
		defer p.Unlock()
		p.held[host]--
	}, true
}

// server serves until the test ends, and returns its address and its limits. Its WebSocket endpoint hijacks the
// connection.
func server(t *testing.T, proxies realip.Proxies) (string, *perAddress) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	limits := &perAddress{held: make(map[string]int)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- Serve(ctx, l, Options{
			Files: client, Surface: http.NotFoundHandler(), Proxies: proxies, Admit: limits.admit, Logger: slog.New(slog.DiscardHandler),
			Requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "requests_total", Help: "Requests."}, []string{"code"}),
			Session: func(_ context.Context, w http.ResponseWriter, r *http.Request) {
				c, _, err := w.(http.Hijacker).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				io.WriteString(c, "hijacked "+r.RemoteAddr+"\n") //nolint:errcheck // the test reads it
				io.Copy(io.Discard, c)                           //nolint:errcheck // until the test ends it
				c.Close()
			},
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String(), limits
}

// request opens a connection, sends a text, and returns the first bytes of the answer, "" if the connection was closed.
// The connection stays open.
func request(t *testing.T, address, text string) string {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	io.WriteString(c, text) //nolint:errcheck // the answer shows it
	answer := make([]byte, 64)
	n, _ := c.Read(answer)
	return string(answer[:n])
}

const (
	getPage   = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
	getSocket = "GET /ws HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 198.51.100.1\r\n\r\n"
	ok        = "HTTP/1.1 200"
)

func TestConnectionsOfAnAddressAreLimited(t *testing.T) {
	address, _ := server(t, nil)
	for i, want := range []bool{true, true, false, false} {
		if got := strings.HasPrefix(request(t, address, getPage), ok); got != want {
			t.Errorf("connection %d: served %t, want %t", i, got, want)
		}
	}
}

// A WebSocket counts as a player, not as a connection.
func TestSocketsAreNotCountedHere(t *testing.T) {
	address, limits := server(t, nil)
	for range 3 {
		if got := request(t, address, getSocket); !strings.HasPrefix(got, "hijacked 127.0.0.1:") {
			t.Fatalf("%q", got)
		}
	}
	limits.Lock()
	defer limits.Unlock()
	if limits.held["127.0.0.1"] != 0 {
		t.Errorf("%d connections are counted", limits.held["127.0.0.1"])
	}
}

// A proxy may have any number of connections. Those for which it names a client by the PROXY protocol are counted for
// that client.
func TestConnectionsOfProxies(t *testing.T) {
	address, _ := server(t, realip.Proxies{netip.MustParsePrefix("127.0.0.0/8")})
	for range 4 {
		if got := request(t, address, getPage); !strings.HasPrefix(got, ok) {
			t.Fatalf("%q", got)
		}
	}
	for client, want := range map[string][]bool{"198.51.100.1": {true, true, false}, "198.51.100.2": {true, true, false}} {
		for i, want := range want {
			header := "PROXY TCP4 " + client + " 192.0.2.1 77 80\r\n"
			if got := strings.HasPrefix(request(t, address, header+getPage), ok); got != want {
				t.Errorf("connection %d of %s: served %t, want %t", i, client, got, want)
			}
		}
	}
	if got := request(t, address, getSocket); got != "hijacked 198.51.100.1:0\n" {
		t.Errorf("%q", got)
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	c := newConnections(nil, func(net.Addr) (func(), bool) { return func() {}, true })
	var all []net.Conn
	for range maxConnections + 1 {
		one, other := net.Pipe()
		defer other.Close()
		c.track(one, http.StateNew)
		all = append(all, one)
	}
	if _, err := all[maxConnections].Write(nil); err != io.ErrClosedPipe {
		t.Errorf("one connection too many: %v", err)
	}
	for _, one := range all {
		c.track(one, http.StateClosed)
	}
	if len(c.mu.releases) != 0 {
		t.Errorf("%d connections are left", len(c.mu.releases))
	}
}
