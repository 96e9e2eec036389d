package transport

import (
	"cmp"
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

	"github.com/voxelpopuli/voxeld/internal/metric"
)

// What peers that are not admitted may use.
const (
	maxStrangerStreams    = 8   // of one stranger at the same time, of all protocols together
	maxSourceStreams      = 32  // of all strangers of one source
	maxAllStrangerStreams = 256 // of all strangers; if there are more, another connection is shed
	maxSourceConns        = 16  // inbound connections from one source; loopback is not limited
	maxAllStrangerConns   = 256 // inbound connections from all addresses; if there are more, another one is shed

	// Streams a second of all strangers of one address. Whoever opens more is not let in for refusedTime, and for twice
	// as long each time that they do so again within longestRefused.
	strangerStreams, strangerStreamsAtOnce = 50, 256
	// Inbound connections a second from one address that end before their peer is admitted; whoever has more is not let
	// in for the same times. Most of what a stranger costs is the handshake.
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
		all     int                 // streams
		unshown int                 // inbound connections that count
		inbound map[string]*inbound // by the connection's id, until it is closed
		sources *lru.Cache[source, *usage]
	}
}

// inbound is an inbound connection.
type inbound struct {
	usage     *usage // of its source
	began     time.Time
	streams   int  // that count
	counts    bool // its peer is not admitted yet, and it was not shed
	blameless bool // it is closed because of others: that it ends does not count against its source
	shed      func()
}

// source is where a stranger comes from: an address, of IPv6 a /56. On loopback, which all have in common, it is the
// peer.
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
	s := &strangers{refused: metric.NewCounterVec(prometheus.CounterOpts{
		Name: "voxeld_strangers_refused_total",
		Help: "Streams and connections of peers without a certificate refused: streams, connections (too many at once), rate (too many of an address), shed (closed for another).",
	}, metric.Values("reason", "streams", "connections", "rate", "shed"))}
	s.mu.streams = make(map[peer.ID]int)
	s.mu.inbound = make(map[string]*inbound)
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

// allow counts a stream or a connection of a source with one of its limiters, and reports whether it may have one more.
// The lock of strangers is held.
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

// beginStream counts a stream until end is called. It returns nil if the stranger has too many, or all have and none
// can be shed.
func (s *strangers) beginStream(c network.Conn) (end func()) {
	id := c.RemotePeer()
	s.mu.Lock()
	defer s.mu.Unlock()
	u, in := s.usageOf(sourceOf(c.RemoteMultiaddr(), id)), s.mu.inbound[c.ID()]
	if in == nil {
		in = &inbound{} // an outbound one
	} else if in.usage != nil {
		u = in.usage // the sources may have forgotten it
	}
	switch {
	case !u.allow(u.streams, time.Now()):
		s.refused.WithLabelValues("rate").Inc()
		return nil
	case s.mu.streams[id] >= maxStrangerStreams, u.openStreams >= maxSourceStreams:
		s.refused.WithLabelValues("streams").Inc()
		return nil
	case s.mu.all >= maxAllStrangerStreams && !s.shed(in, func(i *inbound) int { return min(i.streams, 1) * i.usage.openStreams }):
		s.refused.WithLabelValues("streams").Inc()
		in.blameless = true
		return nil
	}
	s.mu.streams[id]++
	u.openStreams++
	s.mu.all++
	in.streams++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.mu.streams[id]--; s.mu.streams[id] == 0 {
			delete(s.mu.streams, id)
		}
		if in.streams > 0 { // it was not shed
			in.streams--
			s.mu.all--
			u.openStreams--
		}
	}
}

// shed closes one of the connections that count, other than the one for which there is no room: of the sources that use
// most, the oldest. It reports whether there was one that uses anything. The lock is held.
//
// Whoever wants to become a node needs a second. So with a flood from many addresses connections are short, and those
// of addresses that have more of them are shorter.
func (s *strangers) shed(newcomer *inbound, use func(*inbound) int) bool {
	var worst *inbound
	for _, in := range s.mu.inbound {
		if in.counts && in != newcomer && (worst == nil || cmp.Or(cmp.Compare(use(in), use(worst)), worst.began.Compare(in.began)) > 0) {
			worst = in
		}
	}
	if worst == nil || use(worst) == 0 {
		return false
	}
	s.refused.WithLabelValues("shed").Inc()
	s.mu.all -= worst.streams
	worst.usage.openStreams -= worst.streams
	worst.streams, worst.blameless = 0, true
	s.uncount(worst)
	worst.shed()
	return true
}

// uncount ends the time for which a connection counts. The lock is held.
func (s *strangers) uncount(in *inbound) {
	if in.counts {
		in.counts = false
		s.mu.unshown--
		in.usage.openConns--
	}
}

// endConn forgets a connection that has ended. It counts against its source if its peer was not admitted, unless it
// ended because of others.
func (s *strangers) endConn(c network.Conn, admitted bool) {
	if c.Stat().Direction != network.DirInbound {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	in := s.mu.inbound[c.ID()]
	delete(s.mu.inbound, c.ID())
	if admitted || in != nil && in.blameless {
		return
	}
	u := s.usageOf(sourceOf(c.RemoteMultiaddr(), c.RemotePeer()))
	u.allow(u.conns, time.Now())
}

// beginConn counts an inbound connection until end is called, or until it is shed for another one: then the function
// shed is called, which must not wait. It returns nil if the source has too many. If all have, one is shed; that counts
// against the newcomer's source, so that a flood of connections that shed one another ends.
func (s *strangers) beginConn(c network.Conn, shed func()) (end func()) {
	if c.Stat().Direction != network.DirInbound {
		return func() {}
	}
	from := sourceOf(c.RemoteMultiaddr(), c.RemotePeer())
	s.mu.Lock()
	defer s.mu.Unlock()
	in := &inbound{usage: s.usageOf(from), began: time.Now(), shed: shed}
	if from.peer == "" && in.usage.openConns >= maxSourceConns {
		s.refused.WithLabelValues("connections").Inc()
		return nil
	}
	if s.mu.unshown >= maxAllStrangerConns {
		if !in.usage.allow(in.usage.conns, in.began) {
			s.refused.WithLabelValues("rate").Inc()
			return nil
		}
		s.shed(in, func(i *inbound) int { return i.usage.openConns })
	}
	s.mu.inbound[c.ID()] = in
	in.counts = true
	s.mu.unshown++
	in.usage.openConns++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.uncount(in)
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
