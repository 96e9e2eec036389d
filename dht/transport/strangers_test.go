package transport

import (
	"context"
	"fmt"
	"slices"
	"strconv"
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
	id   string
	addr ma.Multiaddr
	peer peer.ID
}

// fromAddress returns a connection from an address, which is a number.
func fromAddress(address int, id string) inboundFrom {
	return inboundFrom{id: id, addr: ma.StringCast(fmt.Sprintf("/ip4/198.51.%d.%d/tcp/4001", address/256, address%256)), peer: peer.ID(id)}
}

func (c inboundFrom) ID() string                    { return c.id }
func (c inboundFrom) RemoteMultiaddr() ma.Multiaddr { return c.addr }
func (c inboundFrom) RemotePeer() peer.ID           { return c.peer }
func (inboundFrom) Stat() network.ConnStats {
	return network.ConnStats{Stats: network.Stats{Direction: network.DirInbound}}
}

// flood is strangers of many addresses.
type flood struct {
	*strangers
	conns []inboundFrom
	shed  []string // connections, in the order in which they were shed
}

// open opens a connection, and reports whether it was let in. It ends if it was not, and so do those that are shed for
// it.
func (f *flood) open(address int) (c inboundFrom, open bool) {
	c = fromAddress(address, fmt.Sprint(len(f.conns)))
	f.conns = append(f.conns, c)
	before := len(f.shed)
	end := f.beginConn(c, func() { f.shed = append(f.shed, c.id) })
	if end == nil {
		f.endConn(c, false)
	}
	for _, id := range f.shed[before:] {
		i, err := strconv.Atoi(id)
		if err != nil {
			panic(err)
		}
		f.endConn(f.conns[i], false)
	}
	return c, end != nil
}

// Strangers with many addresses have a bounded number of connections together. If there are more, the oldest one of the
// addresses that have most is closed.
func TestConnectionsOfAllStrangersAreBounded(t *testing.T) {
	f := &flood{strangers: newStrangers()}
	joiner, _ := f.open(9999)
	for i := range maxAllStrangerConns - 1 {
		address := i / maxSourceConns
		if _, open := f.open(address); !open {
			t.Fatalf("connection %d is refused", i)
		}
		if full := i%maxSourceConns == maxSourceConns-1; full {
			if _, open := f.open(address); open {
				t.Fatal("an address has one connection too many")
			}
		}
	}
	if len(f.shed) > 0 {
		t.Fatalf("%v were shed before there were too many", f.shed)
	}
	for address := 1000; address < 1100; address++ {
		if _, open := f.open(address); !open {
			t.Fatal("a newcomer is refused")
		}
	}
	if len(f.shed) != 100 || slices.Contains(f.shed, joiner.id) || f.mu.unshown != maxAllStrangerConns {
		t.Errorf("%d connections, and these were shed: %v", f.mu.unshown, f.shed)
	}
}

// While strangers of thousands of addresses connect again and again, whoever wants to become a node stays connected
// until all who were there have been shed, and that they were shed does not count against them.
func TestFloodFromManyAddresses(t *testing.T) {
	f := &flood{strangers: newStrangers()}
	for address := range maxAllStrangerConns {
		f.open(address)
	}
	joiner, open := f.open(9999)
	if !open {
		t.Fatal("the joiner is refused")
	}
	left := func() float64 { return f.usageOf(sourceOf(joiner.addr, joiner.peer)).conns.Tokens() }
	before := left()
	f.shed = nil
	for address := 20000; !slices.Contains(f.shed, joiner.id); address++ {
		f.open(address)
	}
	if len(f.shed) < maxAllStrangerConns {
		t.Errorf("the joiner was shed after %d others", len(f.shed))
	}
	if left() < before {
		t.Errorf("the joiner could connect %.1f times, and when it had been shed %.1f times", before, left())
	}
}

// A flood whose connections shed one another does not go on: that counts against its addresses.
func TestShedderPays(t *testing.T) {
	f := &flood{strangers: newStrangers()}
	const addresses = 2 * maxAllStrangerConns / maxSourceConns
	for range 3 * strangerConnsAtOnce {
		for address := range addresses {
			f.open(address)
		}
	}
	for address := range addresses {
		if !f.refuses(sourceOf(fromAddress(address, "").addr, ""), time.Now()) {
			t.Errorf("address %d is not refused", address)
		}
	}
	if most := addresses*strangerConnsAtOnce + maxAllStrangerConns; len(f.shed) > most {
		t.Errorf("%d connections were shed, at most %d can be", len(f.shed), most)
	}
}

// Strangers of one source leave streams to those of others.
func TestStreamsOfASourceAreBounded(t *testing.T) {
	s := newStrangers()
	begin := func(address, i int) func() { return s.beginStream(fromAddress(address, fmt.Sprint(address, i))) }
	for i := range maxSourceStreams {
		if begin(1, i) == nil {
			t.Fatalf("stream %d is refused", i)
		}
	}
	if begin(1, maxSourceStreams) != nil {
		t.Error("a source has one stream too many")
	}
	if begin(2, 0) == nil {
		t.Error("a stream of another source is refused")
	}
}

// Strangers of many sources have a bounded number of streams together. If there are more, a connection of a source that
// has many is closed.
func TestStreamsOfAllStrangersAreBounded(t *testing.T) {
	f := &flood{strangers: newStrangers()}
	joiner, _ := f.open(9999)
	end := f.beginStream(joiner)
	flooders := make(map[string]bool)
	var ends []func()
	for address := 0; len(ends) < maxAllStrangerStreams-1; address++ {
		c, _ := f.open(address)
		flooders[c.id] = true
		for range min(maxStrangerStreams, maxAllStrangerStreams-1-len(ends)) {
			ends = append(ends, f.beginStream(c))
		}
	}
	second, _ := f.open(9998)
	if f.beginStream(second) == nil || f.mu.all > maxAllStrangerStreams {
		t.Errorf("a newcomer has no stream; there are %d", f.mu.all)
	}
	if len(f.shed) != 1 || !flooders[f.shed[0]] {
		t.Errorf("shed: %v", f.shed)
	}
	if end == nil {
		t.Fatal("the joiner has no stream")
	}
	end()
	for _, end := range ends {
		end() // of those that were shed, too
	}
	if f.mu.all != 1 || len(f.mu.streams) != 1 {
		t.Errorf("%d streams are left, of %v", f.mu.all, f.mu.streams)
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

// While there are too many strangers, one who connects is let in, and the oldest is disconnected. A node is not.
func TestNewcomerIsLetIn(t *testing.T) {
	victim, member := startHost(t, 1, nettest.NewMemory()), startHost(t, 2, nettest.NewMemory())
	oldest, newcomer := startHost(t, 3, nettest.NewMemory()), startHost(t, 4, nettest.NewMemory())
	victim.SetGate(memberGate{member.lib.ID()})
	connect := func(h *Host) {
		t.Helper()
		if _, err := h.Connect(nettest.Context(t), victim.Addrs()[0]); err != nil {
			t.Fatal(err)
		}
	}
	connected := func(h *Host) bool { return victim.lib.Network().Connectedness(h.lib.ID()) == network.Connected }
	counted := func(n int) func() bool {
		return func() bool {
			victim.lib.strangers.mu.Lock()
			defer victim.lib.strangers.mu.Unlock()
			return victim.lib.strangers.mu.unshown == n
		}
	}
	connect(member)
	connect(oldest)
	nettest.Eventually(t, "the oldest counts, and the node does not", counted(1))
	f := &flood{strangers: victim.lib.strangers}
	for address := range maxAllStrangerConns - 1 {
		f.open(address)
	}
	connect(newcomer)
	nettest.Eventually(t, "the oldest is disconnected", func() bool { return !connected(oldest) })
	nettest.Eventually(t, "as many count as may", counted(maxAllStrangerConns))
	if !connected(newcomer) || !connected(member) || len(f.shed) > 0 {
		t.Errorf("the newcomer is connected: %v; the node: %v; shed: %v", connected(newcomer), connected(member), f.shed)
	}
}
