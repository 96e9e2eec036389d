package transport

import (
	"net/netip"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
)

// What peers that are not admitted may use.
const (
	maxStrangerStreams    = 8   // of one stranger at the same time, of all protocols together
	maxSourceStreams      = 32  // of all strangers of one source
	maxAllStrangerStreams = 256 // of all strangers
	maxSourceConns        = 16  // inbound connections from one source; loopback is not limited
	maxAllStrangerConns   = 256 // inbound connections from all addresses: those that are left are for nodes

	// Streams a second of all strangers of one address. Whoever opens more is not let in for refusedTime, and for twice as long each time
	// that they do so again within longestRefused.
	strangerStreams, strangerStreamsAtOnce = 50, 256
	// Inbound connections a second from one address that end before their peer is admitted; likewise. Most of what a stranger costs is
	// the handshake.
	strangerConns, strangerConnsAtOnce = 2, 64
	refusedTime, longestRefused        = 30 * time.Second, 8 * time.Minute
	// maxSources bounds the addresses that are remembered, at about 200 bytes each.
	maxSources = 4096
)

// strangers counts what peers that are not admitted use. Its methods may be called from any goroutine.
type strangers struct {
	refused *prometheus.CounterVec // by what they had too many of

	mu struct {
		sync.Mutex
		streams map[peer.ID]int
		all     int // streams
		unshown int // inbound connections
		sources *lru.Cache[source, *usage]
	}
}

// source is where a stranger comes from: an address, of IPv6 a /56. On loopback, which all have in common, it is the peer.
type source struct {
	network netip.Prefix
	peer    peer.ID
}

// usage is what the strangers of a source have done.
type usage struct {
	streams                *rate.Limiter
	conns                  *rate.Limiter // that ended before their peer was admitted
	openStreams, openConns int           // at the moment; of connections the inbound ones
	refused                time.Time     // until when they are not let in
	pause                  time.Duration // for how long that is, or was
}

func sourceOf(remote ma.Multiaddr, id peer.ID) source {
	addr, ok := ipOf(remote)
	if !ok || addr.IsLoopback() {
		return source{peer: id}
	}
	bits := 32
	if addr.Is6() {
		bits = 56
	}
	return source{network: netip.PrefixFrom(addr, bits).Masked()}
}

func newStrangers() *strangers {
	s := &strangers{refused: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "voxeld_strangers_refused_total",
		Help: "Streams and connections of peers without a certificate that were refused, by reason (streams, connections: too many at once; rate: their address opened too many).",
	}, []string{"reason"})}
	for _, reason := range []string{"streams", "connections", "rate"} {
		s.refused.WithLabelValues(reason)
	}
	s.mu.streams = make(map[peer.ID]int)
	sources, err := lru.New[source, *usage](maxSources)
	if err != nil {
		panic(err) // only if the size is not positive
	}
	s.mu.sources = sources
	return s
}

// refuses reports whether strangers of the source have done so much that nobody is let in from there now.
func (s *strangers) refuses(from source, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, known := s.mu.sources.Peek(from)
	refuses := known && now.Before(u.refused)
	if refuses {
		s.refused.WithLabelValues("rate").Inc()
	}
	return refuses
}

// usageOf returns the usage of a source. The lock is held.
func (s *strangers) usageOf(from source) *usage {
	u, known := s.mu.sources.Get(from)
	if !known {
		u = &usage{
			streams: rate.NewLimiter(strangerStreams, strangerStreamsAtOnce),
			conns:   rate.NewLimiter(strangerConns, strangerConnsAtOnce),
		}
		s.mu.sources.Add(from, u)
	}
	return u
}

// allow counts a stream or a connection of a source with one of its limiters, and reports whether it may have one more. The lock of
// strangers is held.
func (u *usage) allow(limiter *rate.Limiter, now time.Time) bool {
	if now.Before(u.refused) {
		return false
	}
	if !limiter.AllowN(now, 1) {
		if now.Sub(u.refused) > longestRefused {
			u.pause = 0
		}
		u.pause = min(max(2*u.pause, refusedTime), longestRefused)
		u.refused = now.Add(u.pause)
		return false
	}
	return true
}

// beginStream counts a stream until end is called. It returns nil if the stranger, or all of them, have too many.
func (s *strangers) beginStream(c network.Conn) (end func()) {
	id := c.RemotePeer()
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.usageOf(sourceOf(c.RemoteMultiaddr(), id))
	switch {
	case !u.allow(u.streams, time.Now()):
		s.refused.WithLabelValues("rate").Inc()
		return nil
	case s.mu.streams[id] >= maxStrangerStreams, u.openStreams >= maxSourceStreams, s.mu.all >= maxAllStrangerStreams:
		s.refused.WithLabelValues("streams").Inc()
		return nil
	}
	s.mu.streams[id]++
	u.openStreams++
	s.mu.all++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.mu.all--
		u.openStreams--
		if s.mu.streams[id]--; s.mu.streams[id] == 0 {
			delete(s.mu.streams, id)
		}
	}
}

// noteUnadmitted counts a connection that ended before its peer was admitted.
func (s *strangers) noteUnadmitted(c network.Conn) {
	if c.Stat().Direction != network.DirInbound {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.usageOf(sourceOf(c.RemoteMultiaddr(), c.RemotePeer()))
	u.allow(u.conns, time.Now())
}

// beginConn counts an inbound connection until end is called. It returns nil if there are too many, from the source or in all.
func (s *strangers) beginConn(c network.Conn) (end func()) {
	if c.Stat().Direction != network.DirInbound {
		return func() {}
	}
	from := sourceOf(c.RemoteMultiaddr(), c.RemotePeer())
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.usageOf(from)
	if s.mu.unshown >= maxAllStrangerConns || from.peer == "" && u.openConns >= maxSourceConns {
		s.refused.WithLabelValues("connections").Inc()
		return nil
	}
	s.mu.unshown++
	u.openConns++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.mu.unshown--
		u.openConns--
	}
}

// The limits of libp2p for a peer, before and after it is admitted. A stream reserves a window of 256 KiB.
var (
	strangerLimit = peerLimit(2*maxStrangerStreams, 2*maxStrangerStreams*256<<10)
	memberLimit   = peerLimit(maxStreamsPeer, maxMemoryPerPeer)
)

func peerLimit(streams int, memory int64) *rcmgr.BaseLimit {
	return &rcmgr.BaseLimit{
		Streams: streams, StreamsInbound: streams, StreamsOutbound: streams,
		Conns: maxConnsPerPeer, ConnsInbound: maxConnsPerPeer, ConnsOutbound: maxConnsPerPeer, FD: maxConnsPerPeer, Memory: memory,
	}
}

func limit(n network.Network, id peer.ID, l rcmgr.Limit) {
	n.ResourceManager().ViewPeer(id, func(s network.PeerScope) error { //nolint:errcheck // the function returns none
		if limiter, ok := s.(rcmgr.ResourceScopeLimiter); ok {
			limiter.SetLimit(l)
		}
		return nil
	})
}

// Admit lets a peer use what members may use. A Gate calls it before Admitted reports the peer.
func Admit(h *Host, id peer.ID) { limit(h.lib.Network(), id, memberLimit) }

func ipOf(remote ma.Multiaddr) (netip.Addr, bool) {
	ip, err := manet.ToIP(remote)
	if err != nil {
		return netip.Addr{}, false
	}
	addr, ok := netip.AddrFromSlice(ip)
	return addr.Unmap(), ok
}
