package realip

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"
)

var trusted = Proxies{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("127.0.0.1/32")}

func TestClientIsTheLastStranger(t *testing.T) {
	for _, c := range []struct {
		peer      string
		forwarded []string
		want      string
	}{
		{"192.0.2.1:5", nil, "192.0.2.1:5"},
		{"192.0.2.1:5", []string{"198.51.100.1"}, "192.0.2.1:5"}, // a stranger's word
		{"10.0.0.1:5", nil, "10.0.0.1:5"},
		{"10.0.0.1:5", []string{""}, "10.0.0.1:5"},
		{"10.0.0.1:5", []string{"198.51.100.1"}, "198.51.100.1:0"},
		{"10.0.0.1:5", []string{"198.51.100.1:4711"}, "198.51.100.1:0"},
		{"10.0.0.1:5", []string{"[2001:db9::7]:4711"}, "[2001:db9::7]:0"},
		{"10.0.0.1:5", []string{"127.0.0.1, 198.51.100.1"}, "198.51.100.1:0"}, // the first one is invented
		{"10.0.0.1:5", []string{"203.0.113.1,198.51.100.1", "10.0.0.2"}, "198.51.100.1:0"},
		{"10.0.0.1:5", []string{"10.0.0.3", "10.0.0.2"}, "10.0.0.3:0"},
		{"10.0.0.1:5", []string{"198.51.100.1, nonsense"}, "10.0.0.1:5"},
		{"10.0.0.1:5", []string{"nonsense, 198.51.100.1"}, "198.51.100.1:0"},
		{"[::ffff:10.0.0.1]:5", []string{"2001:db9::7"}, "[2001:db9::7]:0"},
		{"[2001:db8::1]:5", []string{"198.51.100.1"}, "198.51.100.1:0"},
	} {
		if got := trusted.client(netip.MustParseAddrPort(c.peer), c.forwarded).String(); got != c.want {
			t.Errorf("%s with %q: %s, want %s", c.peer, c.forwarded, got, c.want)
		}
	}
	if got := (Proxies)(nil).client(netip.MustParseAddrPort("127.0.0.1:5"), []string{"198.51.100.1"}); got.String() != "127.0.0.1:5" {
		t.Errorf("without trusted proxies: %s", got)
	}
}

func TestHandlerNamesTheClient(t *testing.T) {
	var log strings.Builder
	var got string
	handler := trusted.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.RemoteAddr }),
		slog.New(slog.NewTextHandler(&log, nil)))
	for _, c := range []struct {
		peer, want string
		warnings   int
	}{
		{"10.1.2.3:4", "198.51.100.1:0", 0},
		{"203.0.113.1:4", "203.0.113.1:4", 0},
		{"192.168.1.1:4", "192.168.1.1:4", 1}, // a proxy that is not trusted?
		{"127.0.0.2:4", "127.0.0.2:4", 1},     // once is enough
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = c.peer
		r.Header.Set("X-Forwarded-For", "198.51.100.1")
		handler.ServeHTTP(nil, r)
		if warnings := strings.Count(log.String(), "--trusted-proxy"); got != c.want || warnings != c.warnings {
			t.Errorf("from %s: the request is from %s, and there are %d warnings; want %s and %d", c.peer, got, warnings, c.want, c.warnings)
		}
	}
}

// Only a trusted proxy says that a request came over https.
func TestHandlerRemovesWhatStrangersSay(t *testing.T) {
	for peer, want := range map[string]string{"10.1.2.3:4": "https", "203.0.113.1:4": "", "nonsense": ""} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = peer
		r.Header.Set("X-Forwarded-Proto", "https")
		got := "not called"
		handler := trusted.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("X-Forwarded-Proto") }), slog.New(slog.DiscardHandler))
		if handler.ServeHTTP(nil, r); got != want {
			t.Errorf("from %s: %q, want %q", peer, got, want)
		}
	}
}

// exchange sends text to a listener behind proxies, and returns what the server's side of the connection shows.
func exchange(t *testing.T, proxies Proxies, text string) (remote, received string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := io.WriteString(client, text); err != nil {
		t.Fatal(err)
	}
	server, err := proxies.Listener(l, 10*time.Second).Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	remote = server.RemoteAddr().String()
	received, err = bufio.NewReader(server).ReadString('\n')
	if err != nil {
		received = "error"
	}
	if remote == client.LocalAddr().String() {
		remote = "the proxy"
	}
	if server.(interface{ CloseWrite() error }).CloseWrite() != nil {
		t.Error("the stream is not ended")
	}
	if _, err := client.Read(make([]byte, 1)); err != io.EOF && received != "error" {
		t.Errorf("the client sees %v, want the end of the stream", err)
	}
	return remote, received
}

func header(t *testing.T, version byte, from string) string {
	t.Helper()
	source, target := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(from)), &net.TCPAddr{IP: net.IPv4(192, 0, 2, 9), Port: 4002}
	if source.IP.To4() == nil {
		target.IP = net.ParseIP("2001:db8::9")
	}
	text, err := proxyproto.HeaderProxyFromAddrs(version, source, target).Format()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestListener(t *testing.T) {
	two := header(t, 2, "198.51.100.1:77")
	for name, c := range map[string]struct {
		proxies          Proxies
		text             string
		remote, received string
	}{
		"version 2":         {trusted, two + "hello\n", "198.51.100.1:77", "hello\n"},
		"IPv6":              {trusted, header(t, 2, "[2001:db9::1]:77") + "hello\n", "[2001:db9::1]:77", "hello\n"},
		"version 1":         {trusted, header(t, 1, "198.51.100.1:77") + "hello\n", "198.51.100.1:77", "hello\n"},
		"no header":         {trusted, "hello\n", "the proxy", "hello\n"},
		"health check":      {trusted, "\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00hello\n", "the proxy", "hello\n"},
		"damaged header":    {trusted, two[:12] + "\x31" + two[13:] + "hello\n", "the proxy", "error"},
		"nobody trusted":    {nil, two + "hello\n", "the proxy", "\r\n"},
		"others trusted":    {trusted[:2], two + "hello\n", "the proxy", "\r\n"},
		"others, no header": {trusted[:2], "hello\n", "the proxy", "hello\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if remote, received := exchange(t, c.proxies, c.text); remote != c.remote || received != c.received {
				t.Errorf("from %s: %q; want from %s: %q", remote, received, c.remote, c.received)
			}
		})
	}
}

func FuzzClient(f *testing.F) {
	f.Add("10.0.0.1", "198.51.100.1, 10.0.0.2")
	f.Add("192.0.2.1", "127.0.0.1")
	f.Add("10.0.0.1", "fe80::1%eth0,,::ffff:10.0.0.2")
	f.Fuzz(func(t *testing.T, peer, forwarded string) {
		a, err := netip.ParseAddr(peer)
		if err != nil {
			return
		}
		from := netip.AddrPortFrom(a, 5)
		got := trusted.client(from, []string{forwarded})
		if !trusted.trusts(a) && got != from {
			t.Errorf("%s is a stranger, and yet its word counts: %s", peer, got)
		}
		if invented := trusted.client(from, []string{"203.0.113.9", forwarded}); !trusted.trusts(got.Addr()) && invented != got {
			t.Errorf("%s, but %s with another entry in front", got, invented)
		}
	})
}
