package transport

import (
	"fmt"
	"math"
	"net/netip"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/p2p/net/connmgr"
	"github.com/libp2p/go-libp2p/x/rate"
)

// The limits of one daemon. libp2p's defaults allow 8 connections and 0.2 new ones a second per IPv4 address; a docker
// host or a NAT with twenty daemons behind it has a single address and would starve.
const (
	maxConns         = 1024 // connections, both directions
	maxConnsPerIP    = 256  // connections from one IPv4 address or IPv6 /56
	newConnsPerIP    = 32   // new connections a second from one of these, in the long run
	newConnsBurst    = 256  // new connections at once from one of these
	maxConnsPerPeer  = 8    // both ends may dial at once, over TCP and QUIC
	maxStreams       = 16384
	maxStreamsPeer   = 2048 // streams with one peer
	maxStreamsKind   = 8192 // streams of one protocol
	maxStreamsBoth   = 1024 // streams of one protocol with one peer: one per followed region
	maxMemory        = 512 << 20
	maxMemoryPerPeer = 64 << 20
	maxMemoryKind    = 256 << 20 // of all streams of one protocol
	maxMemoryBoth    = 16 << 20  // of those with one peer

	lowConns   = 384 // above highConns connections, idle ones are closed until this many remain
	highConns  = 512
	graceConns = time.Minute // connections younger than this are kept

	dialTimeout      = 8 * time.Second // of one address
	dialTimeoutLocal = 2 * time.Second // of one address in a private network
)

func newResourceManager() (network.ResourceManager, error) {
	streams := func(n int) rcmgr.ResourceLimits {
		return rcmgr.ResourceLimits{
			Streams:         rcmgr.LimitVal(n),
			StreamsInbound:  rcmgr.LimitVal(n),
			StreamsOutbound: rcmgr.LimitVal(n),
		}
	}
	memory := func(l rcmgr.ResourceLimits, bytes int64) rcmgr.ResourceLimits {
		l.Memory = rcmgr.LimitVal64(bytes)
		return l
	}
	conns := func(l rcmgr.ResourceLimits, n int, bytes int64) rcmgr.ResourceLimits {
		l.Conns, l.ConnsInbound, l.ConnsOutbound = rcmgr.LimitVal(n), rcmgr.LimitVal(n), rcmgr.LimitVal(n)
		l.FD = rcmgr.LimitVal(n)
		return memory(l, bytes)
	}
	limits := rcmgr.PartialLimitConfig{
		System:              conns(streams(maxStreams), maxConns, maxMemory),
		Transient:           conns(streams(1024), 256, 128<<20),
		PeerDefault:         conns(streams(maxStreamsPeer), maxConnsPerPeer, maxMemoryPerPeer),
		ProtocolDefault:     memory(streams(maxStreamsKind), maxMemoryKind),
		ProtocolPeerDefault: memory(streams(maxStreamsBoth), maxMemoryBoth),
	}.Build(rcmgr.DefaultLimits.AutoScale())

	free := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	limiter := &rate.Limiter{
		NetworkPrefixLimits: []rate.PrefixLimit{{Prefix: free[0]}, {Prefix: free[1]}},
		SubnetRateLimiter: rate.SubnetLimiter{
			IPv4SubnetLimits: []rate.SubnetLimit{{PrefixLength: 32, Limit: rate.Limit{RPS: newConnsPerIP, Burst: newConnsBurst}}},
			IPv6SubnetLimits: []rate.SubnetLimit{{PrefixLength: 56, Limit: rate.Limit{RPS: newConnsPerIP, Burst: newConnsBurst}}},
			GracePeriod:      time.Minute,
		},
	}
	manager, err := rcmgr.NewResourceManager(rcmgr.NewFixedLimiter(limits),
		rcmgr.WithMetricsDisabled(),
		rcmgr.WithConnRateLimiters(limiter),
		rcmgr.WithLimitPerSubnet(
			[]rcmgr.ConnLimitPerSubnet{{ConnCount: maxConnsPerIP, PrefixLength: 32}},
			[]rcmgr.ConnLimitPerSubnet{{ConnCount: maxConnsPerIP, PrefixLength: 56}},
		),
		rcmgr.WithNetworkPrefixLimit(
			[]rcmgr.NetworkPrefixLimit{{Network: free[0], ConnCount: math.MaxInt}},
			[]rcmgr.NetworkPrefixLimit{{Network: free[1], ConnCount: math.MaxInt}},
		),
	)
	if err != nil {
		return nil, fmt.Errorf("make resource manager: %w", err)
	}
	return manager, nil
}

func newConnManager() (*connmgr.BasicConnMgr, error) {
	manager, err := connmgr.NewConnManager(lowConns, highConns, connmgr.WithGracePeriod(graceConns))
	if err != nil {
		return nil, fmt.Errorf("make connection manager: %w", err)
	}
	return manager, nil
}
