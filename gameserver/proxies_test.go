package gameserver

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/voxelpopuli/voxeld/gameserver/realip"
)

// serveBehind starts a gateway that admits one player for each address, and returns the addresses of its game and HTTP
// ports.
func serveBehind(t *testing.T, proxies realip.Proxies) (game, http string) {
	t.Helper()
	var l [2]net.Listener
	for i := range l {
		var err error
		if l[i], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	r := prepareHarness(t, func(o *Options) { o.Admission.PerAddress = 1 })
	r.start(Listeners{Game: l[0], HTTP: l[1], Proxies: proxies})
	return l[0].Addr().String(), l[1].Addr().String()
}

var loopback = realip.Proxies{netip.MustParsePrefix("127.0.0.0/8")}

// Behind a trusted proxy the limits apply to the players' own addresses. What others say about addresses has no effect:
// loopback is not limited.
func TestLimitsOfSocketsBehindProxies(t *testing.T) {
	for name, c := range map[string]struct {
		proxies realip.Proxies
		want    []string
	}{
		"trusted":     {loopback, []string{"welcome", "full", "welcome"}},
		"not trusted": {nil, []string{"welcome", "welcome", "welcome"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, address := serveBehind(t, c.proxies)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			for i, from := range []string{"198.51.100.1", "127.0.0.1, 198.51.100.1", "198.51.100.2"} {
				ws, _, err := websocket.Dial(ctx, "ws://"+address+"/ws", &websocket.DialOptions{ //nolint:bodyclose // the library closes it
					HTTPHeader: http.Header{"X-Forwarded-For": {from}},
				})
				if err != nil {
					t.Fatal(err)
				}
				defer ws.CloseNow()
				ws.Write(ctx, websocket.MessageText, //nolint:errcheck // the answer shows it
					[]byte(`{"type":"join","version":1,"name":"`+string(rune('a'+i))+`nn","view":1,"encoding":"json"}`))
				if _, answer, err := ws.Read(ctx); err != nil || !strings.Contains(string(answer), `"`+c.want[i]+`"`) {
					t.Errorf("%s: %.80q (%v), want %s", from, answer, err, c.want[i])
				}
				if _, _, err := ws.Read(ctx); c.want[i] == "full" && websocket.CloseStatus(err) != websocket.StatusNormalClosure {
					t.Errorf("%s: the refusal ends with %v", from, err)
				}
			}
		})
	}
}

func TestLimitsOfTheGamePortBehindProxies(t *testing.T) {
	for name, c := range map[string]struct {
		proxies realip.Proxies
		want    []string
	}{
		"trusted":     {loopback, []string{`{"type":"welcome"`, "no", `{"type":"welcome"`}},
		"not trusted": {nil, []string{"no", "no", "no"}}, // the header is no handshake
	} {
		t.Run(name, func(t *testing.T) {
			address, _ := serveBehind(t, c.proxies)
			for i, from := range []string{"198.51.100.1", "198.51.100.1", "198.51.100.2"} {
				conn, err := net.Dial("tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				io.WriteString(conn, "PROXY TCP4 "+from+" 192.0.2.1 77 4002\r\n"+ //nolint:errcheck // the answer shows it
					`{"type":"join","version":1,"name":"`+string(rune('a'+i))+`nn","view":1,"encoding":"json"}`+"\n")
				conn.SetReadDeadline(time.Now().Add(10 * time.Second)) //nolint:errcheck // as above
				line, err := bufio.NewReader(conn).ReadString('\n')
				if !strings.HasPrefix(line, c.want[i]) {
					t.Errorf("from %s: %.80q (%v), want %q", from, line, err, c.want[i])
				}
			}
		})
	}
}
