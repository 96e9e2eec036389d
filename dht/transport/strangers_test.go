package transport

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/voxelpopuli/voxeld/dht/internal/nettest"
)

// Strangers of one address who open streams without end are not let in for a while. Others are.
func TestStrangersAreRefusedForAWhile(t *testing.T) {
	s := newStrangers()
	now := time.Now()
	from := func(addr string) source { return sourceOf(ma.StringCast(addr), "it") }
	flood, neighbour := from("/ip4/192.0.2.1/tcp/4001"), from("/ip4/192.0.2.2/tcp/4001")
	allow := func(of source, at time.Time) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		u := s.usageOf(of)
		return u.allow(u.streams, at)
	}
	for i := range strangerStreamsAtOnce {
		if !allow(flood, now) {
			t.Fatalf("refused after %d streams", i)
		}
	}
	if s.refuses(flood, now) || allow(flood, now) || !s.refuses(flood, now) {
		t.Error("the stream after those does not have the address refused")
	}
	if s.refuses(neighbour, now) || !allow(neighbour, now) {
		t.Error("another address is refused")
	}
	later := now.Add(refusedTime - time.Second)
	if !s.refuses(flood, later) || allow(flood, later) {
		t.Error("the address is let in again too early")
	}
	later = now.Add(refusedTime)
	if s.refuses(flood, later) || !allow(flood, later) {
		t.Error("the address is not let in again")
	}
	flooded := func() (refused time.Duration) {
		for allow(flood, later) {
		}
		until := later
		for s.refuses(flood, until) {
			until = until.Add(time.Second)
		}
		refused = until.Sub(later)
		later = until
		return refused
	}
	for _, want := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, longestRefused, longestRefused} {
		if got := flooded(); got != want {
			t.Errorf("who floods again is refused for %v, want %v", got, want)
		}
	}
	later = later.Add(longestRefused + time.Second)
	if got := flooded(); got != refusedTime {
		t.Errorf("who floods again after a long time is refused for %v", got)
	}
}

func TestSourceOf(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"/ip4/192.0.2.1/tcp/4001", "/ip4/192.0.2.1/udp/9/quic-v1", true},
		{"/ip4/192.0.2.1/tcp/4001", "/ip4/192.0.2.2/tcp/4001", false},
		{"/ip6/2001:db8:0:1::1/tcp/4001", "/ip6/2001:db8:0:ff::2/tcp/4001", true},
		{"/ip6/2001:db8:0:1::1/tcp/4001", "/ip6/2001:db8:0:100::1/tcp/4001", false},
		{"/ip4/127.0.0.1/tcp/4001", "/ip4/127.0.0.1/tcp/4001", false}, // of two peers
	} {
		if got := sourceOf(ma.StringCast(c.a), "one") == sourceOf(ma.StringCast(c.b), "two"); got != c.same {
			t.Errorf("%s and %s are one source: %v", c.a, c.b, got)
		}
	}
}

// inboundFrom is a connection from an address.
type inboundFrom struct {
	network.Conn
	addr ma.Multiaddr
	peer peer.ID
}

func (c inboundFrom) RemoteMultiaddr() ma.Multiaddr { return c.addr }
func (c inboundFrom) RemotePeer() peer.ID           { return c.peer }
func (inboundFrom) Stat() network.ConnStats {
	return network.ConnStats{Stats: network.Stats{Direction: network.DirInbound}}
}

// Strangers with many addresses have a bounded number of connections together.
func TestConnectionsOfAllStrangersAreBounded(t *testing.T) {
	s := newStrangers()
	begin := func(i int) func() {
		return s.beginConn(inboundFrom{addr: ma.StringCast(fmt.Sprintf("/ip4/198.51.%d.%d/tcp/4001", i/256, i%256))})
	}
	var ends []func()
	for i := range maxAllStrangerConns {
		address := i / maxSourceConns
		end := begin(address)
		if end == nil {
			t.Fatalf("connection %d is refused", i)
		}
		if full := i%maxSourceConns == maxSourceConns-1; full && begin(address) != nil {
			t.Fatal("an address has one connection too many")
		}
		ends = append(ends, end)
	}
	if begin(1000) != nil {
		t.Error("there is one connection too many")
	}
	for _, end := range ends {
		end()
	}
	if begin(1000) == nil {
		t.Error("a connection is refused when the others have ended")
	}
}

// Strangers of one source leave streams to those of others.
func TestStreamsOfASourceAreBounded(t *testing.T) {
	s := newStrangers()
	begin := func(address string, i int) func() {
		return s.beginStream(inboundFrom{addr: ma.StringCast("/ip4/" + address + "/tcp/4001"), peer: peer.ID(fmt.Sprint(address, i))})
	}
	for i := range maxSourceStreams {
		if begin("192.0.2.1", i) == nil {
			t.Fatalf("stream %d is refused", i)
		}
	}
	if begin("192.0.2.1", maxSourceStreams) != nil {
		t.Error("a source has one stream too many")
	}
	if begin("192.0.2.2", 0) == nil {
		t.Error("a stream of another source is refused")
	}
}

// memberGate admits one peer.
type memberGate struct{ member peer.ID }

func (g memberGate) Protocol() string                         { return "/admission" }
func (g memberGate) Admitted(id peer.ID) bool                 { return id == g.member }
func (memberGate) Refused(peer.ID) bool                       { return false }
func (memberGate) Await(ctx context.Context, _ peer.ID) error { <-ctx.Done(); return ctx.Err() }
func (memberGate) Forget(peer.ID)                             {}

// A stranger who connects again and again is refused, without having opened a stream. A node that is admitted is not.
func TestConnectionsOfStrangersAreCounted(t *testing.T) {
	victim, stranger, member := startHost(t, 1, nettest.NewMemory()), startHost(t, 2, nettest.NewMemory()), startHost(t, 3, nettest.NewMemory())
	victim.SetGate(memberGate{member.lib.ID()})
	refuses := func(h *Host) bool { return victim.lib.strangers.refuses(source{peer: h.lib.ID()}, time.Now()) }
	ctx := nettest.Context(t)
	connect := func(h *Host) {
		h.Connect(ctx, victim.Addrs()[0]) //nolint:errcheck // it may be refused
		if err := h.lib.Network().ClosePeer(victim.lib.ID()); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 * strangerConnsAtOnce {
		connect(member)
	}
	for !refuses(stranger) {
		if connect(stranger); ctx.Err() != nil {
			t.Fatal("the stranger is not refused")
		}
	}
	if refuses(member) {
		t.Error("the member is refused")
	}
}

// briefGate admits a peer once it is waited for, until its connection ends.
type briefGate struct {
	memberGate
	admitted  *atomic.Bool
	waitedFor chan struct{}
	forgotten chan struct{}
}

func (g briefGate) Admitted(peer.ID) bool { return g.admitted.Load() }
func (g briefGate) Refused(peer.ID) bool {
	if !g.admitted.Swap(true) {
		g.waitedFor <- struct{}{}
	}
	return false
}

func (g briefGate) Forget(peer.ID) {
	g.admitted.Store(false)
	g.forgotten <- struct{}{}
}

// A node whose connections end soon after it was admitted is no stranger.
func TestBriefConnectionsOfNodesAreNotCounted(t *testing.T) {
	victim, member := startHost(t, 1, nettest.NewMemory()), startHost(t, 2, nettest.NewMemory())
	gate := briefGate{admitted: new(atomic.Bool), waitedFor: make(chan struct{}), forgotten: make(chan struct{})}
	victim.SetGate(gate)
	for range 2 * strangerConnsAtOnce {
		if _, err := member.Connect(nettest.Context(t), victim.Addrs()[0]); err != nil {
			t.Fatal(err)
		}
		<-gate.waitedFor
		if err := member.lib.Network().ClosePeer(victim.lib.ID()); err != nil {
			t.Fatal(err)
		}
		<-gate.forgotten
	}
	if err := victim.Close(); err != nil { // it waits for what looks after the connections
		t.Fatal(err)
	}
	if victim.lib.strangers.refuses(source{peer: member.lib.ID()}, time.Now()) {
		t.Error("the node is refused")
	}
}
