package transport

import (
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/voxelpopuli/voxeld/dht/internal/nettest"
)

// The peers that a node may dial, and the transport, by the time since they were lost.
func TestLostAreDialledOverTCPOnly(t *testing.T) {
	tcp, quic := ma.StringCast("/ip4/127.0.0.1/tcp/4001"), ma.StringCast("/ip4/127.0.0.1/udp/4001/quic-v1")
	now := time.Now()
	for _, c := range []struct {
		what      string
		since     time.Duration // that the peer was lost; negative: never
		known     []ma.Multiaddr
		back      bool
		tcp, quic bool
	}{
		{"never lost", -1, []ma.Multiaddr{tcp, quic}, false, true, true},
		{"just lost", 0, []ma.Multiaddr{quic, tcp}, false, true, false},
		{"lost, and has no TCP", 0, []ma.Multiaddr{quic}, false, true, true},
		{"there, but who dials knows that it has just ended", 0, []ma.Multiaddr{tcp, quic}, true, true, false},
		{"lost long ago", lostTimeout + time.Second, []ma.Multiaddr{tcp, quic}, false, true, true},
	} {
		l := newRecentlyLost()
		l.addrs = func(peer.ID) []ma.Multiaddr { return c.known }
		if c.since >= 0 {
			l.markLost("it", now.Add(-c.since))
		}
		if c.back {
			l.markConnected("it")
		}
		if got := l.InterceptAddrDial("it", tcp); got != c.tcp {
			t.Errorf("%s: over TCP %v", c.what, got)
		}
		if got := l.InterceptAddrDial("it", quic); got != c.quic {
			t.Errorf("%s: over QUIC %v", c.what, got)
		}
		if !l.InterceptAddrDial("another", quic) {
			t.Errorf("%s: another is not dialled over QUIC", c.what)
		}
	}
	l := newRecentlyLost()
	l.markLost("old", now.Add(-2*lostTimeout))
	l.markLost("new", now)
	if len(l.mu.since) != 1 {
		t.Errorf("%d are remembered, want the new one only", len(l.mu.since))
	}
}

// A node that has ended delays no peer that wants to reach it: its port is closed, and dials do not wait for a reply
// over QUIC.
func TestEndedNodeIsRefusedAtOnce(t *testing.T) {
	a, b := pair(t)
	id := b.lib.ID()
	nettest.Eventually(t, "both addresses to be known", func() bool { return len(a.lib.Peerstore().Addrs(id)) >= 2 })
	if err := b.lib.Close(); err != nil {
		t.Fatal(err)
	}
	nettest.Eventually(t, "the connection to end", func() bool { return a.lib.Network().Connectedness(id) != network.Connected })
	start := time.Now()
	if err := a.lib.Connect(nettest.Context(t), peer.AddrInfo{ID: id}); err == nil {
		t.Fatal("connected with a node that has ended")
	}
	if took := time.Since(start); took > dialTimeoutLocal*3/4 {
		t.Errorf("known after %v", took)
	}
}
