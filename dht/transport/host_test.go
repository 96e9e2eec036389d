package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/voxelpopuli/voxeld/dht/internal/nettest"
	"github.com/voxelpopuli/voxeld/internal/kv"
)

func startHost(t *testing.T, x int, storage Storage) *Host {
	t.Helper()
	h, err := NewHost(Options{Storage: storage, Listen: []string{fmt.Sprintf("/ip4/127.%d.0.1/tcp/0", x)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// pair returns two hosts that are connected.
func pair(t *testing.T) (a, b *Host) {
	a, b = startHost(t, 1, nettest.NewMemory()), startHost(t, 2, nettest.NewMemory())
	if _, err := a.Connect(nettest.Context(t), b.Addrs()[0]); err != nil {
		t.Fatal(err)
	}
	return a, b
}

func TestHostListensOnTCPAndQUIC(t *testing.T) {
	a, b := startHost(t, 1, nettest.NewMemory()), startHost(t, 2, nettest.NewMemory())
	var kinds []string
	for _, addr := range b.Addrs() {
		if !strings.HasSuffix(addr, "/p2p/"+b.PeerID()) {
			t.Errorf("address %s lacks the peer id", addr)
		}
		kinds = append(kinds, strings.Split(addr, "/")[3])
		got, err := a.Connect(nettest.Context(t), addr)
		if err != nil || got != b.PeerID() {
			t.Errorf("connect to %s: %s, %v", addr, got, err)
		}
		if err := a.lib.Network().ClosePeer(b.lib.ID()); err != nil {
			t.Fatal(err)
		}
	}
	if fmt.Sprint(kinds) != "[tcp udp]" {
		t.Errorf("transports %v, want TCP and QUIC", kinds)
	}
}

func TestIdentityStays(t *testing.T) {
	storage := nettest.NewMemory()
	first := startHost(t, 1, storage)
	id := first.PeerID()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if again := startHost(t, 1, storage); again.PeerID() != id {
		t.Errorf("peer id %s after a restart, was %s", again.PeerID(), id)
	}
	if err := storage.Commit([]kv.Write{{Table: table, Key: identityKey, Value: []byte("rubbish")}}); err != nil {
		t.Fatal(err)
	}
	_, err := NewHost(Options{Storage: storage, Listen: []string{"/ip4/127.1.0.1/tcp/0"}})
	if err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("a damaged key returns %v", err)
	}
}

func TestTakenPort(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	daemon := startHost(t, 1, nettest.NewMemory()).Addrs()[0]
	daemon, _, _ = strings.Cut(daemon, "/p2p/")
	for _, test := range []struct{ name, listen, port string }{
		{"another program's TCP port", fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", tcp.Addr().(*net.TCPAddr).Port), "tcp port"},
		{"another program's UDP port", fmt.Sprintf("/ip4/127.0.0.1/udp/%d/quic-v1", udp.LocalAddr().(*net.UDPAddr).Port), "udp port"},
		{"another daemon's port", daemon, "tcp port"},
	} {
		h, err := NewHost(Options{Storage: nettest.NewMemory(), Listen: []string{test.listen}})
		if err == nil {
			h.Close()
			t.Errorf("%s: two listen on it", test.name)
			continue
		}
		number := strings.Split(test.listen, "/")[4]
		for _, want := range []string{test.port + " " + number, "--listen", "taken"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %q does not contain %q", test.name, err, want)
			}
		}
	}
}

// Error messages do not contain the made-up id of discoverID.
func TestUnreachableAddressIsReported(t *testing.T) {
	h := startHost(t, 9, nettest.NewMemory())
	_, err := h.Connect(t.Context(), "/ip4/127.0.0.1/tcp/1")
	if err == nil || strings.Contains(err.Error(), "12D3Koo") || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("an address without a listener: %v", err)
	}
}

func TestConnectLearnsTheID(t *testing.T) {
	a, b := startHost(t, 1, nettest.NewMemory()), startHost(t, 2, nettest.NewMemory())
	for _, full := range b.Addrs() {
		addr, _, _ := strings.Cut(full, "/p2p/")
		got, err := a.Connect(nettest.Context(t), addr)
		if err != nil || got != b.PeerID() {
			t.Errorf("connect to %s: %q, %v; want %s", addr, got, err, b.PeerID())
		}
		if err := a.lib.Network().ClosePeer(b.lib.ID()); err != nil {
			t.Fatal(err)
		}
	}
	self, _, _ := strings.Cut(a.Addrs()[0], "/p2p/")
	if _, err := a.Connect(nettest.Context(t), self); !errors.Is(err, ErrSelf) {
		t.Errorf("connect to oneself returns %v", err)
	}
	// The wrong id is refused: an address with an id is not trusted blindly.
	addr, _, _ := strings.Cut(b.Addrs()[0], "/p2p/")
	stranger, err := randomID()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Connect(nettest.Context(t), addr+"/p2p/"+stranger.String()); err == nil {
		t.Error("a peer with another id than named was accepted")
	}
}

func TestPeers(t *testing.T) {
	a, b := pair(t)
	for _, test := range []struct {
		host, other *Host
		inbound     bool
	}{{a, b, false}, {b, a, true}} {
		nettest.Eventually(t, "the peer", func() bool { return len(test.host.Peers()) == 1 })
		p := test.host.Peers()[0]
		if p.ID != test.other.PeerID() || !p.Connected || p.Inbound != test.inbound || p.Since.IsZero() {
			t.Errorf("peers of %s: %+v", test.host.PeerID(), p)
		}
	}
}

func TestAsk(t *testing.T) {
	a, b := pair(t)
	for _, h := range []*Host{a, b} {
		h.HandleAsk("/test/echo", func(_ context.Context, peer string, q []byte) ([]byte, error) {
			if string(q) == "fail" {
				return nil, errors.New("no such thing")
			}
			return append([]byte(peer+" "), q...), nil
		})
		h.HandleAsk("/test/long", func(context.Context, string, []byte) ([]byte, error) { return make([]byte, MaxAsk+1), nil })
		h.HandleAsk("/test/size", func(_ context.Context, _ string, q []byte) ([]byte, error) { return q, nil })
	}
	ctx := nettest.Context(t)
	for _, to := range []*Host{b, a} { // another node, and the node itself
		got, err := a.Ask(ctx, to.PeerID(), "/test/echo", []byte("hello"))
		if err != nil || string(got) != a.PeerID()+" hello" {
			t.Errorf("answer %q, %v", got, err)
		}
		var refused *AnswerError
		if _, err := a.Ask(ctx, to.PeerID(), "/test/echo", []byte("fail")); !errors.As(err, &refused) || refused.Text != "no such thing" {
			t.Errorf("a refusal returns %v", err)
		}
		if _, err := a.Ask(ctx, to.PeerID(), "/test/none", nil); !errors.Is(err, ErrNotServed) {
			t.Errorf("an unknown protocol returns %v", err)
		}
		if got, err := a.Ask(ctx, to.PeerID(), "/test/size", make([]byte, MaxAsk)); err != nil || len(got) != MaxAsk {
			t.Errorf("64 KiB return %d bytes, %v", len(got), err)
		}
		if _, err := a.Ask(ctx, to.PeerID(), "/test/size", make([]byte, MaxAsk+1)); err == nil {
			t.Error("a question of more than 64 KiB was asked")
		}
		if _, err := a.Ask(ctx, to.PeerID(), "/test/long", nil); err == nil {
			t.Error("an answer of more than 64 KiB was given")
		}
	}
}

func TestAskIsBounded(t *testing.T) {
	a, b := pair(t)
	served := make(chan error, 1)
	b.Handle("/test/greedy", func(_ context.Context, _ string, s io.ReadWriteCloser) {
		_, err := s.Write([]byte{answerOK, 0xff, 0xff, 0xff, 0xff}) // announces 4 GiB
		served <- err
	})
	if _, err := a.Ask(nettest.Context(t), b.PeerID(), "/test/greedy", nil); !errors.Is(err, errTooLong) {
		t.Errorf("4 GiB announced: %v", err)
	}
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	b.Handle("/test/silent", func(ctx context.Context, _ string, _ io.ReadWriteCloser) { <-ctx.Done() })
	ctx, cancel := context.WithTimeout(nettest.Context(t), 100*time.Millisecond)
	defer cancel()
	if _, err := a.Ask(ctx, b.PeerID(), "/test/silent", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("silence returns %v", err)
	}
}

func TestStreams(t *testing.T) {
	a, b := pair(t)
	for _, h := range []*Host{a, b} {
		h.Handle("/test/upper", func(_ context.Context, peer string, s io.ReadWriteCloser) {
			buf := make([]byte, 5)
			if _, err := io.ReadFull(s, buf); err != nil || peer != a.PeerID() {
				t.Errorf("served %q from %s: %v", buf, peer, err)
			}
			if _, err := s.Write(bytes.ToUpper(buf)); err != nil {
				t.Error(err)
			}
		})
	}
	for _, to := range []*Host{b, a} {
		s, err := a.Open(nettest.Context(t), to.PeerID(), "/test/upper")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(s)
		if err != nil || string(got) != "HELLO" {
			t.Errorf("read %q, %v", got, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := a.Open(nettest.Context(t), to.PeerID(), "/test/none"); !errors.Is(err, ErrNotServed) {
			t.Errorf("an unknown protocol returns %v", err)
		}
	}
}

func TestCloseAwaitsHandlers(t *testing.T) {
	a, b := pair(t)
	began, ended := make(chan struct{}), make(chan struct{})
	b.Handle("/test/held", func(ctx context.Context, _ string, s io.ReadWriteCloser) {
		defer close(ended)
		if _, err := io.ReadFull(s, make([]byte, 1)); err != nil {
			t.Error(err)
		}
		close(began)
		<-ctx.Done()
	})
	s, err := a.Open(nettest.Context(t), b.PeerID(), "/test/held")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	<-began
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	default:
		t.Error("Close returned before the handler did")
	}
	io.ReadAll(s) //nolint:errcheck // it ends, with an error or without
}

func TestManyConnectionsFromOneAddress(t *testing.T) {
	// More than libp2p's 8 per address: this package's limit applies. Loopback is exempt from both, so query the
	// manager itself.
	manager, err := newResourceManager()
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	limit := 0
	for ; limit < maxConnsPerIP+1; limit++ {
		scope, err := manager.OpenConnection(1, true, ma.StringCast(fmt.Sprintf("/ip4/192.0.2.1/tcp/%d", 1024+limit)))
		if err != nil {
			break
		}
		if limit%2 == 0 { // half of them identified, as after a handshake: the other half stays transient
			id, err := randomID()
			if err != nil {
				t.Fatal(err)
			}
			if err := scope.SetPeer(id); err != nil {
				t.Fatal(err)
			}
		}
	}
	if limit != maxConnsPerIP {
		t.Errorf("%d connections from one address, want %d", limit, maxConnsPerIP)
	}
}

func FuzzReadBounded(f *testing.F) {
	f.Add(frame([]byte("question")))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, raw []byte) {
		body, err := readBounded(bytes.NewReader(raw))
		if err == nil && !bytes.HasPrefix(raw, frame(body)) {
			t.Fatalf("%x returns %x", raw, body)
		}
	})
}

// Nodes connect over TCP and QUIC, and over nothing else that libp2p has.
func TestTransports(t *testing.T) {
	h := startHost(t, 1, nettest.NewMemory())
	sw := h.lib.Network().(*swarm.Swarm)
	for text, want := range map[string]bool{
		"/ip4/127.0.0.1/tcp/4001":                                             true,
		"/ip6/::1/tcp/4001":                                                   true,
		"/ip4/127.0.0.1/udp/4001/quic-v1":                                     true,
		"/ip4/127.0.0.1/tcp/4001/ws":                                          false,
		"/ip4/127.0.0.1/udp/4001/quic-v1/webtransport":                        false,
		"/ip4/127.0.0.1/udp/4001/webrtc-direct":                               false,
		"/ip4/127.0.0.1/tcp/4001/p2p/" + h.lib.ID().String() + "/p2p-circuit": false,
	} {
		addr := ma.StringCast(text)
		if dials, listens := sw.TransportForDialing(addr) != nil, sw.TransportForListening(addr) != nil; dials != want || listens != want {
			t.Errorf("%s: dials %v, listens %v, want %v", text, dials, listens, want)
		}
	}
}
