package weborigin

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestPages(t *testing.T) {
	asked := 0
	p := New([]string{"https://a.example.org", "http://box.local:8080", "http://192.0.2.7:8080"}, func(_ context.Context, origin string) bool {
		asked++
		return origin == "https://b.example.org"
	})
	handler := p.KnownPages(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, c := range []struct {
		host, origin string
		tls          bool
		want         int
	}{
		{host: "127.0.0.1:8080", want: 200}, // no browser
		{host: "", want: 200},               // HTTP/1.0
		{host: "127.0.0.1:8080", origin: "http://127.0.0.1:8080", want: 200},
		{host: "[::1]:8080", origin: "http://[::1]:8080", want: 200},
		{host: "203.0.113.9:8080", origin: "http://203.0.113.9:8080", want: 200}, // through a NAT
		{host: "localhost:8080", origin: "http://localhost:8080", want: 200},
		{host: "node-a:8080", origin: "http://node-a:8080", want: 200},
		{host: "voxels.localhost:8080", origin: "http://voxels.localhost:8080", want: 200},
		{host: "BOX.local.:8080", origin: "http://BOX.local.:8080", want: 200},
		{host: "box.local", origin: "http://box.local", want: 200}, // at another port
		{host: "a.example.org", origin: "https://a.example.org", want: 200},
		{host: "a.example.org:443", origin: "https://A.example.org", want: 200},
		{host: "127.0.0.1:8080", origin: "https://a.example.org", want: 200}, // a proxy that does not keep the host
		{host: "a.example.org", origin: "https://b.example.org", want: 200},
		{host: "192.0.2.7:8080", origin: "http://localhost:8081", want: 200}, // a node on the player's own machine
		{host: "192.0.2.7:8080", origin: "http://127.0.0.1:8081", want: 200},
		{host: "other.example.org", tls: true, origin: "https://other.example.org", want: 200},

		{host: "evil.example", want: 421},
		{host: "evil.example:8080", origin: "http://evil.example:8080", want: 421},
		{host: "127.0.0.1.evil.example", origin: "http://127.0.0.1.evil.example", want: 421},
		{host: "evil.local", origin: "http://evil.local", want: 421},
		{host: "localhost.evil.example", want: 421},
		{host: "127.0.0.1:8080", origin: "https://evil.example", want: 403},
		{host: "127.0.0.1:8080", origin: "http://6.6.6.6", want: 403},
		{host: "127.0.0.1:8080", origin: "http://127.0.0.1.evil.example:8080", want: 403},
		{host: "127.0.0.1:8080", origin: "http://127.0.0.1:8080@evil.example", want: 403},
		{host: "127.0.0.1:8080", origin: "http://a.example.org", want: 403}, // another scheme than its own
		{host: "127.0.0.1:8080", origin: "null", want: 403},
		{host: "127.0.0.1:8080", origin: "file://", want: 403},
		{host: "127.0.0.1:8080", origin: "chrome-extension://abcdef", want: 403},
		{host: "other.example.org", tls: true, origin: "https://evil.example", want: 403},
	} {
		r := httptest.NewRequest(http.MethodGet, "/ws", nil)
		r.Host = c.host
		if c.tls {
			r.TLS = &tls.ConnectionState{}
		} else {
			r.TLS = nil
		}
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("Host %q, Origin %q: %d %s, want %d", c.host, c.origin, w.Code, w.Body, c.want)
		}
		allowed := w.Header().Get("Access-Control-Allow-Origin")
		if c.want == http.StatusOK && (allowed != c.origin || w.Header().Get("Vary") != "Origin") {
			t.Errorf("Host %q, Origin %q: pages of %q may read it", c.host, c.origin, allowed)
		}
		if c.want != http.StatusOK && (allowed != "" || !strings.Contains(w.Body.String(), Option)) {
			t.Errorf("Host %q, Origin %q: pages of %q may read %s", c.host, c.origin, allowed, w.Body)
		}
	}
	if asked == 0 {
		t.Error("no other node was asked")
	}
}
