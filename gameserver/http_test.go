package gameserver

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/voxelpopuli/voxeld/gameserver/admission"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// serveReal starts a gateway on real sockets, and returns its address.
func serveReal(t *testing.T, change ...func(*Options)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := prepareHarness(t, change...)
	r.start(Listeners{Game: r.game, HTTP: l})
	return l.Addr().String()
}

func TestHTTP(t *testing.T) {
	unready := errors.New("alone")
	address := serveReal(t, func(o *Options) {
		o.Ready = func() error { return unready }
		o.World.Name = "voxels"
		o.Admission.Map, o.Admission.PublicMap = true, true
		o.Ranges = func(context.Context, region.RangeQuery) (region.RangeResult, error) { return region.RangeResult{}, nil }
	})
	for _, c := range []struct {
		path   string
		status int
		cache  string
		body   string
	}{
		{"/", 200, "no-cache", "<p>client</p>"},
		{"/assets/a-1.js", 200, "public, max-age=31536000, immutable", "1"},
		{"/assets/gone.js", 404, "", ""}, // and not cached for a year
		{"/assets/", 404, "", ""},
		{"/healthz", 200, "", `"ok"`},
		{"/readyz", 503, "", "alone"},
		{"/ws", 426, "", ""},
		{"/map", 200, "no-cache", "<p>map</p>"},
		{"/map.html", 404, "", ""},
		{"/map/world", 200, "public, max-age=60", `{"world":"voxels","node":"`},
	} {
		response, err := http.Get("http://" + address + c.path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != c.status || response.Header.Get("Cache-Control") != c.cache || !strings.Contains(string(body), c.body) {
			t.Errorf("%s: %d, cache %q, %.80q (%v)", c.path, response.StatusCode, response.Header.Get("Cache-Control"), body, err)
		}
	}
}

// A node whose operator wants no public map, or no map at all, has none.
func TestPublicMapIsOptional(t *testing.T) {
	for _, p := range []admission.Settings{{Map: true}, {PublicMap: true}} {
		address := serveReal(t, func(o *Options) { o.Admission.Map, o.Admission.PublicMap = p.Map, p.PublicMap })
		for _, path := range []string{"/map", "/map/world"} {
			response, err := http.Get("http://" + address + path)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode != http.StatusNotFound {
				t.Errorf("%s with %+v: %d", path, p, response.StatusCode)
			}
		}
	}
}

// drainingNode is a connected node whose players open it under a URL.
type drainingNode string

func (drainingNode) Connected() []string { return []string{"b"} }

func (url drainingNode) Ask(context.Context, string, string, []byte) ([]byte, error) {
	return nodemsg.EncodeHandoffOffer(nodemsg.HandoffOffer{HTTP: string(url), Game: "b.example:4002", Draining: true})
}

// Pages of this node and of others may open sessions and read surface tiles, as a redirected player is still on the
// page that they came from. Other pages, and pages whose name was made to lead here, may not.
func TestOnlyKnownPagesReachTheNode(t *testing.T) {
	address := serveReal(t, func(o *Options) {
		o.Nodes = drainingNode("https://b.example/world/")
		o.Admission.Map = true
		o.Ranges = func(context.Context, region.RangeQuery) (region.RangeResult, error) { return region.RangeResult{}, nil }
	})
	for name, c := range map[string]struct {
		host, origin string
		status       int
	}{
		"no browser":             {"", "", 0},
		"own page":               {"", "http://" + address, 0},
		"own page, behind proxy": {"", "http://192.0.2.7:8080", 0},
		"page of another node":   {"", "https://b.example", 0},
		"page of a stranger":     {"", "https://evil.example", http.StatusForbidden},
		"rebound name":           {"evil.example", "http://evil.example", http.StatusMisdirectedRequest},
	} {
		t.Run(name, func(t *testing.T) {
			header := http.Header{}
			if c.origin != "" {
				header.Set("Origin", c.origin)
			}
			ws, response, err := websocket.Dial(t.Context(), "ws://"+address+"/ws", &websocket.DialOptions{HTTPHeader: header, Host: c.host}) //nolint:bodyclose // the library closes it
			if err == nil {
				ws.CloseNow()
			}
			if want := cmp.Or(c.status, http.StatusSwitchingProtocols); response == nil || response.StatusCode != want {
				t.Errorf("a session: %v (%v), want %d", response, err, want)
			}
			for _, path := range []string{"/surface?tiles=", "/map", "/", "/healthz"} {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				r.Host, r.Header = c.host, header
				response, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				response.Body.Close()
				refused := response.StatusCode == http.StatusForbidden || response.StatusCode == http.StatusMisdirectedRequest
				public := path == "/healthz" || c.host == "" && path != "/surface?tiles="
				if want := c.status != 0 && !public; refused != want {
					t.Errorf("%s: %d", path, response.StatusCode)
				}
				if got := response.Header.Get("Access-Control-Allow-Origin"); got != "" && (c.status != 0 || got != c.origin) {
					t.Errorf("%s: pages of %q may read it", path, got)
				}
			}
		})
	}
}

func TestSocketSession(t *testing.T) {
	address := serveReal(t)
	for name, c := range map[string]struct {
		text []string
		kind websocket.MessageType
		want string
	}{
		"plays":          {[]string{`{"type":"join","version":1,"name":"ann","view":1,"encoding":"json"}`}, websocket.MessageText, `{"type":"welcome"`},
		"other version":  {[]string{`{"type":"join","version":9,"name":"ann","view":1,"encoding":"json"}`}, websocket.MessageText, wire.FailWrongVersion},
		"no join":        {[]string{`{"type":"ping","nonce":1}`}, websocket.MessageText, wire.FailUnexpected},
		"rubbish":        {[]string{`rubbish`}, websocket.MessageText, wire.FailBadJSON},
		"binary":         {[]string{`{"type":"ping","nonce":1}`}, websocket.MessageBinary, wire.FailBadType},
		"too long":       {[]string{strings.Repeat("x", wire.MaxLine+1)}, websocket.MessageText, wire.FailTooLong},
		"very long name": {[]string{`{"type":"join","version":1,"name":"` + strings.Repeat("a", 60000) + `","view":1,"encoding":"json"}`}, websocket.MessageText, wire.FailBadName},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			ws, _, err := websocket.Dial(ctx, "ws://"+address+"/ws", nil) //nolint:bodyclose // the library closes it
			if err != nil {
				t.Fatal(err)
			}
			defer ws.CloseNow()
			for _, text := range c.text {
				if err := ws.Write(ctx, c.kind, []byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			_, received, err := ws.Read(ctx)
			if err != nil || !strings.Contains(string(received), c.want) {
				t.Errorf("received %.200q (%v), want %q", received, err, c.want)
			}
			if name == "plays" {
				return
			}
			if _, _, err := ws.Read(ctx); websocket.CloseStatus(err) != websocket.StatusNormalClosure {
				t.Errorf("then %v, want the connection closed in order", err)
			}
		})
	}
}

// The last message arrives although the client is still sending when it is refused.
func TestLastMessageReachesASendingClient(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := prepareHarness(t)
	r.start(Listeners{Game: l, HTTP: r.http})
	for range 5 {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, `{"type":"join","version":1,"name":"ann","view":1,"encoding":"json"}`+"\n"+strings.Repeat("x", 2<<20)); err != nil {
			t.Fatalf("the server reset the connection: %v", err)
		}
		received, err := io.ReadAll(conn)
		if err != nil || !strings.Contains(string(received), `{"type":"failure","code":"too_long"`) {
			t.Errorf("received %d bytes, the last %.100q (%v)", len(received), received[max(0, len(received)-100):], err)
		}
		conn.Close()
	}
}
