package transport

import (
	"net/netip"
	"sync"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	manet "github.com/multiformats/go-multiaddr/net"
)

// What peers that are not admitted may use.
const (
	maxStrangerStreams     = 32   // of one stranger at the same time, of all protocols together
	maxAllStrangerStreams  = 1024 // of all strangers
	maxStrangerConnsFromIP = 16   // inbound connections from one address; loopback is not limited
)

// strangers counts what peers that are not admitted use. Its methods may be called from any goroutine.
type strangers struct {
	mu struct {
		sync.Mutex
		streams map[peer.ID]int
		all     int // streams
		conns   map[netip.Addr]int
	}
}

func newStrangers() *strangers {
	s := new(strangers)
	s.mu.streams, s.mu.conns = make(map[peer.ID]int), make(map[netip.Addr]int)
	return s
}

// beginStream counts a stream until end is called. It returns nil if the stranger, or all of them, have too many.
func (s *strangers) beginStream(id peer.ID) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.streams[id] >= maxStrangerStreams || s.mu.all >= maxAllStrangerStreams {
		return nil
	}
	s.mu.streams[id]++
	s.mu.all++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.mu.all--
		if s.mu.streams[id]--; s.mu.streams[id] == 0 {
			delete(s.mu.streams, id)
		}
	}
}

// beginConn counts an inbound connection until end is called. It returns nil if there are too many from the address.
func (s *strangers) beginConn(c network.Conn) (end func()) {
	addr, ok := remoteIP(c)
	if !ok || addr.IsLoopback() || c.Stat().Direction != network.DirInbound {
		return func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.conns[addr] >= maxStrangerConnsFromIP {
		return nil
	}
	s.mu.conns[addr]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.mu.conns[addr]--; s.mu.conns[addr] == 0 {
			delete(s.mu.conns, addr)
		}
	}
}

// The limits of libp2p for a peer, before and after it is admitted. A stream reserves a window of 256 KiB.
var (
	strangerLimit = peerLimit(2*maxStrangerStreams, 16<<20)
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

func remoteIP(c network.Conn) (netip.Addr, bool) {
	ip, err := manet.ToIP(c.RemoteMultiaddr())
	if err != nil {
		return netip.Addr{}, false
	}
	addr, ok := netip.AddrFromSlice(ip)
	return addr.Unmap(), ok
}
