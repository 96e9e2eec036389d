package gameserver

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/test/testkit/sessionclient"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// walkingClient is a CBOR client over a real socket, which reads when the test says so.
type walkingClient struct {
	t       *testing.T
	r       *harness
	conn    *sessionclient.Conn
	carrier sessionclient.Carrier
	seq     uint64
}

// way is how clients reach the gateway.
type way string

const (
	overTCP       way = "TCP"
	overWebSocket way = "WebSocket"
	overTLS       way = "WebSocket over TLS"
	behindProxy   way = "WebSocket behind a trusted proxy"
)

// overEach runs a test of sessions that reach the gateway in each way.
func overEach(t *testing.T, test func(t *testing.T, over way)) {
	t.Helper()
	for _, over := range []way{overTCP, overWebSocket, overTLS, behindProxy} {
		t.Run(string(over), func(t *testing.T) { test(t, over) })
	}
}

// serveWalkingClients starts a gateway on real sockets that parks players who have only walked for the given time.
func serveWalkingClients(t *testing.T, over way, long time.Duration) (r *harness, join func(name string) *walkingClient) {
	t.Helper()
	game, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	http, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r = prepareHarness(t, func(o *Options) { o.actedFor = long })
	listeners := Listeners{Game: game, HTTP: http}
	target, carrier := sessionclient.Page(http.Addr().String()), sessionclient.Carrier(sessionclient.WebSocket{})
	connect := func() (net.Conn, error) { return sessionclient.Connect(t.Context(), target) }
	switch over {
	case overTCP:
		target, carrier = game.Addr().String(), sessionclient.Prefixed{}
	case overTLS:
		certified := httptest.NewTLSServer(nil)
		t.Cleanup(certified.Close)
		listeners.TLS = &tls.Config{Certificates: certified.TLS.Certificates}
		trusted := x509.NewCertPool()
		trusted.AddCert(certified.Certificate())
		connect = func() (net.Conn, error) { return tls.Dial("tcp", http.Addr().String(), &tls.Config{RootCAs: trusted}) }
	case behindProxy:
		listeners.Proxies = loopback
	case overWebSocket: // as it is
	}
	r.start(listeners)
	return r, func(name string) *walkingClient {
		t.Helper()
		socket, err := connect()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { socket.Close() })
		conn, err := sessionclient.Open(socket, target)
		if err == nil {
			_, err = conn.Join(sessionmsg.Join{Name: name, View: 1, Encoding: sessionmsg.EncodingCBOR})
		}
		if err != nil {
			t.Fatal(err)
		}
		w := &walkingClient{t: t, r: r, conn: conn, carrier: carrier}
		w.seq = await[sessionmsg.Welcome](w).NextSeq
		for range 9 {
			await[sessionmsg.ChunkData](w)
		}
		return w
	}
}

func (w *walkingClient) write(data []byte) {
	w.t.Helper()
	if _, err := w.conn.Write(data); err != nil {
		w.t.Fatal(err)
	}
}

func (w *walkingClient) send(m sessionmsg.FromClient) {
	w.t.Helper()
	data, err := sessionmsg.EncodeClientCBOR(m)
	if err != nil {
		w.t.Fatal(err)
	}
	w.write(w.carrier.Append(nil, data))
}

func (w *walkingClient) goTo(x float64) {
	w.send(sessionmsg.Move{Pose: motion.Pose{X: x, Y: 25, Z: .5}})
}

// await reads until a message of one type arrives.
func await[M sessionmsg.FromServer](w *walkingClient) M {
	w.t.Helper()
	if err := w.conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		w.t.Fatal(err)
	}
	for {
		m, err := w.conn.Read()
		if err != nil {
			w.t.Fatalf("no %T: %v", *new(M), err)
		}
		if wanted, ok := m.FromServer.(M); ok {
			return wanted
		}
	}
}

// eventually polls a condition that real sockets will bring about.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	late := time.After(time.Minute)
	for !holds() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("gave up waiting: %s", what)
		}
	}
}

func (w *walkingClient) expectParked(n int) {
	w.t.Helper()
	eventually(w.t, fmt.Sprint(n, " sockets are parked"), func() bool { return w.r.g.poller.Parked() == n })
}

func (w *walkingClient) at(x float64) {
	w.t.Helper()
	eventually(w.t, fmt.Sprint("bob is at ", x), func() bool { return w.r.g.Online()[0].Pose.X == x })
}

// Players who walk are parked; those who edit, or enter another chunk, are not, and get their answers as usual.
func TestWalkersAreParked(t *testing.T) { overEach(t, testWalkersAreParked) }

func testWalkersAreParked(t *testing.T, over way) {
	r, join := serveWalkingClients(t, over, 1)
	ann := join("ann")
	ann.goTo(4.5)
	ann.expectParked(1)
	for range 3 {
		ann.goTo(3.5)
		eventually(t, "the region receives the step", func() bool {
			inside := r.lands.bodies(grid.ChunkPos{})
			return len(inside) == 1 && inside[0].Pose.X == 3.5
		})
		ann.goTo(4.5)
		ann.at(4.5)
		if r.g.poller.Parked() != 1 {
			t.Fatal("a step has ended the lodging")
		}
		ann.seq++
		ann.send(sessionmsg.Edit{Seq: ann.seq, X: 3, Y: 25, Z: 3, Block: uint16(chunk.Brick)})
		if ack := await[sessionmsg.Ack](ann); ack.Seq != ann.seq || ack.Error != "" {
			t.Errorf("answered %+v", ack)
		}
		if r.g.poller.Parked() != 0 {
			t.Error("the player who has edited is still parked")
		}
		ann.goTo(4.5)
		ann.expectParked(1)
	}
	ann.goTo(500) // back to where they were, and parked again
	if back := await[sessionmsg.Correction](ann); back.Pose.X != 4.5 {
		t.Errorf("corrected to %v", back.Pose.X)
	}
	ann.expectParked(1)
	ann.goTo(3.5)
	ann.at(3.5)
	ann.goTo(2.5)
	ann.at(2.5)
	if r.g.poller.Parked() != 1 {
		t.Error("three steps before the border the player is not parked any more")
	}
	ann.goTo(1.5)
	ann.expectParked(0)
	ann.goTo(-.5)
	for range 3 {
		await[sessionmsg.ChunkData](ann)
	}
	ann.goTo(-1.5)
	ann.expectParked(1)
}

// A player who has just done anything but walk is not parked.
func TestActingPlayerIsNotParked(t *testing.T) {
	r, join := serveWalkingClients(t, overWebSocket, time.Hour)
	ann := join("ann")
	for range 3 {
		ann.goTo(4.5)
		ann.goTo(3.5)
		ann.seq++
		ann.send(sessionmsg.Edit{Seq: ann.seq, X: 3, Y: 25, Z: 3, Block: uint16(chunk.Brick)})
		await[sessionmsg.Ack](ann)
		if n := r.g.poller.Parked(); n != 0 {
			t.Errorf("%d sockets are parked", n)
		}
	}
}

// A page pings every two seconds, whatever its player does. Who walks is parked all the same.
func TestPingingPlayerIsParked(t *testing.T) {
	const pingEvery = 150 * time.Millisecond // more than ten a second are refused
	r, join := serveWalkingClients(t, overWebSocket, 3*pingEvery)
	ann := join("ann")
	ann.goTo(4.5)
	pings := time.NewTicker(pingEvery)
	defer pings.Stop()
	for range 100 {
		<-pings.C
		if r.g.poller.Parked() == 1 {
			return
		}
		ann.send(sessionmsg.Ping{Nonce: 7})
		await[sessionmsg.Pong](ann)
	}
	t.Error("a player who walks and pings is never parked")
}

// Parked sessions end as others do: by their clients, by too many messages, by invalid ones, by another login. Others walk on
// meanwhile.
func TestParkedSessionsEnd(t *testing.T) { overEach(t, testParkedSessionsEnd) }

func testParkedSessionsEnd(t *testing.T, over way) {
	tooLong, noMessage, failure := []byte{0xff, 0xff, 0xff, 0x7f}, []byte{0}, wire.FailTooLong
	if over != overTCP {
		tooLong, noMessage, failure = []byte{0x82, 0xff, 0, 0, 0, 0, 0, 2, 0, 0, 1, 2, 3, 4}, []byte{0x82, 0x80, 1, 2, 3, 4}, wire.FailBadCBOR
	}
	pose := sessionmsg.AppendMove(nil, motion.Pose{X: 4.5, Y: 25, Z: .5})
	for name, c := range map[string]struct {
		does func(w *walkingClient)
		code string
	}{
		"closed": {func(w *walkingClient) { w.conn.Close() }, ""},
		"reset": {func(w *walkingClient) {
			socket := w.conn.Conn
			if secure, ok := socket.(*tls.Conn); ok {
				socket = secure.NetConn()
			}
			if err := socket.(*net.TCPConn).SetLinger(0); err != nil {
				w.t.Error(err)
			}
			w.conn.Close()
		}, ""},
		"half a message": {func(w *walkingClient) {
			w.write(w.carrier.Append(nil, pose)[:20])
			w.conn.Close()
		}, ""},
		"too much": {func(w *walkingClient) {
			for range movesAtOnce + 50 {
				w.write(w.carrier.Append(nil, pose))
			}
		}, wire.FailRate},
		"nonsense":   {func(w *walkingClient) { w.write(w.carrier.Append(nil, []byte{sessionmsg.ClientMove, 1, 2})) }, wire.FailBadValue},
		"too long":   {func(w *walkingClient) { w.write(tooLong) }, wire.FailTooLong},
		"no message": {func(w *walkingClient) { w.write(noMessage) }, failure},
	} {
		t.Run(name, func(t *testing.T) {
			r, join := serveWalkingClients(t, over, 1)
			bob, ann := join("bob"), join("ann")
			bob.goTo(4.5)
			bob.expectParked(1)
			ann.goTo(4.5)
			ann.expectParked(2)
			c.does(ann)
			if c.code != "" {
				if failure := await[sessionmsg.Failure](ann); failure.Code != c.code {
					t.Errorf("ended with %+v, want %s", failure, c.code)
				}
				ann.conn.Close()
			}
			eventually(t, "she is gone", func() bool { return len(r.g.Online()) == 1 })
			bob.goTo(5.5)
			bob.at(5.5)
			bob.expectParked(1)
		})
	}
}

// A client that sends half a message and stops, and one that reads nothing, hold up nobody.
func TestStalledClientsHoldUpNobody(t *testing.T) { overEach(t, testStalledClientsHoldUpNobody) }

func testStalledClientsHoldUpNobody(t *testing.T, over way) {
	_, join := serveWalkingClients(t, over, 1)
	bob, half := join("bob"), join("half")
	bob.goTo(4.5)
	bob.expectParked(1)
	half.goTo(4.5)
	half.expectParked(2)
	move := half.carrier.Append(nil, sessionmsg.AppendMove(nil, motion.Pose{X: 5.5, Y: 25, Z: .5}))
	half.write(move[:10])
	half.expectParked(1)
	for range 3 {
		for _, x := range []float64{5.5, 4.5} {
			bob.goTo(x)
			eventually(t, "bob walks on", func() bool {
				for _, p := range bob.r.g.Online() {
					if p.Name == "bob" && p.Pose.X == x {
						return true
					}
				}
				return false
			})
		}
	}
	half.write(move[10:]) // the rest arrives after all
	half.expectParked(2)
}

// A gateway that shuts down redirects parked clients, and leaves no file and no goroutine behind.
func TestGatewayStopsWithParkedSessions(t *testing.T) {
	overEach(t, testGatewayStopsWithParkedSessions)
}

func testGatewayStopsWithParkedSessions(t *testing.T, over way) {
	files, goroutines := openFiles(t), runtime.NumGoroutine()
	t.Run("gateway", func(t *testing.T) {
		r, join := serveWalkingClients(t, over, 1)
		var all []*walkingClient
		for i := range 20 {
			w := join(fmt.Sprint("walker", i))
			w.goTo(4.5)
			w.expectParked(i + 1)
			all = append(all, w)
		}
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			r.stop()
		}()
		for _, w := range all {
			await[sessionmsg.Reconnect](w)
			if failure := await[sessionmsg.Failure](w); failure.Code != wire.FailShuttingDown {
				t.Errorf("ended with %+v", failure)
			}
			if _, err := w.conn.Read(); !errors.Is(err, io.EOF) {
				t.Errorf("then %v, want the connection closed in order", err)
			}
			w.conn.Close()
		}
		<-stopped
		if n := r.g.poller.Parked(); n != 0 {
			t.Errorf("%d are still parked", n)
		}
		for i := range all {
			if saved, known := saved(r.disk, guestID(fmt.Sprint("walker", i))); !known || saved.Pose.X != 4.5 {
				t.Errorf("walker %d is saved as %+v (%v)", i, saved, known)
			}
		}
	})
	eventually(t, "as many files are open as before", func() bool { return openFiles(t) <= files })
	eventually(t, "as many goroutines run as before", func() bool { return runtime.NumGoroutine() <= goroutines })
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
