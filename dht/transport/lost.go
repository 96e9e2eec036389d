package transport

import (
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/control"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

// lostTimeout is how long a peer whose last connection has ended is dialled over TCP only, if it has a TCP address.
// After a process has ended, TCP is refused at once, but QUIC gets no reply. A walk through the keyspace would wait for
// dialTimeoutLocal, and so would the lookup of a player.
const lostTimeout = 3 * time.Second

// recentlyLost tracks the peers whose last connection ended recently. As part of libp2p's gater it keeps dials to them
// from hanging. Any goroutine may use it.
type recentlyLost struct {
	addrs func(peer.ID) []ma.Multiaddr

	mu struct {
		sync.Mutex
		// When the last connection ended; zero while connected, as far as libp2p has reported. A dial to such a peer
		// means that the caller has already noticed the end.
		since map[peer.ID]time.Time
	}
}

func newRecentlyLost() *recentlyLost {
	l := new(recentlyLost)
	l.mu.since = make(map[peer.ID]time.Time)
	return l
}

// watch records which peers are lost and which have reconnected.
func (l *recentlyLost) watch(n network.Network) {
	l.addrs = n.Peerstore().Addrs
	n.Notify(&network.NotifyBundle{
		ConnectedF: func(_ network.Network, c network.Conn) { l.markConnected(c.RemotePeer()) },
		DisconnectedF: func(n network.Network, c network.Conn) {
			if id := c.RemotePeer(); n.Connectedness(id) != network.Connected {
				l.markLost(id, time.Now())
			}
		},
	})
}

func (l *recentlyLost) markLost(id peer.ID, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for other, since := range l.mu.since {
		if !since.IsZero() && now.Sub(since) > lostTimeout {
			delete(l.mu.since, other)
		}
	}
	l.mu.since[id] = now
}

func (l *recentlyLost) markConnected(id peer.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.since[id] = time.Time{}
}

// contains reports whether the peer was lost within lostTimeout.
func (l *recentlyLost) contains(id peer.ID, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	since, there := l.mu.since[id]
	return there && (since.IsZero() || now.Sub(since) <= lostTimeout)
}

// InterceptAddrDial restricts dials to a recently lost peer to TCP.
func (l *recentlyLost) InterceptAddrDial(id peer.ID, addr ma.Multiaddr) bool {
	return overTCP(addr) || !l.contains(id, time.Now()) || !anyTCP(l.addrs(id))
}

// InterceptPeerDial allows every peer.
func (l *recentlyLost) InterceptPeerDial(peer.ID) bool { return true }

// InterceptUpgraded allows every connection.
func (l *recentlyLost) InterceptUpgraded(network.Conn) (bool, control.DisconnectReason) {
	return true, 0
}

func overTCP(addr ma.Multiaddr) bool {
	_, err := addr.ValueForProtocol(ma.P_TCP)
	return err == nil
}

func anyTCP(addrs []ma.Multiaddr) bool { return slices.ContainsFunc(addrs, overTCP) }
