package dht

import (
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/control"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

// lostFor is how long a peer whose last connection has ended is dialled over TCP only, if it has such an address. Where a
// process has just ended, TCP is refused at once; over QUIC nobody answers, and a walk through the keyspace would wait
// for that until dialTimeoutLocal is over: the player who is being looked up meanwhile does, too.
const lostFor = 3 * time.Second

// lost are the peers that were connected until lately. As libp2p's gater it keeps dials to them from hanging. Any
// goroutine may use it.
type lost struct {
	addrs func(peer.ID) []ma.Multiaddr

	mu struct {
		sync.Mutex
		// since when; zero while a connection is there, as far as was told: who dials then knows already that it has ended.
		since map[peer.ID]time.Time
	}
}

func newLost() *lost {
	l := new(lost)
	l.mu.since = make(map[peer.ID]time.Time)
	return l
}

// watch notes who is lost and who is there again.
func (l *lost) watch(n network.Network) {
	l.addrs = n.Peerstore().Addrs
	n.Notify(&network.NotifyBundle{
		ConnectedF: func(_ network.Network, c network.Conn) { l.back(c.RemotePeer()) },
		DisconnectedF: func(n network.Network, c network.Conn) {
			if id := c.RemotePeer(); n.Connectedness(id) != network.Connected {
				l.gone(id, time.Now())
			}
		},
	})
}

func (l *lost) gone(id peer.ID, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for other, since := range l.mu.since {
		if !since.IsZero() && now.Sub(since) > lostFor {
			delete(l.mu.since, other)
		}
	}
	l.mu.since[id] = now
}

func (l *lost) back(id peer.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.since[id] = time.Time{}
}

// lately tells whether the peer was lost a moment ago.
func (l *lost) lately(id peer.ID, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	since, there := l.mu.since[id]
	return there && (since.IsZero() || now.Sub(since) <= lostFor)
}

// InterceptAddrDial lets a peer that was lost a moment ago be dialled over TCP only.
func (l *lost) InterceptAddrDial(id peer.ID, addr ma.Multiaddr) bool {
	return overTCP(addr) || !l.lately(id, time.Now()) || !anyTCP(l.addrs(id))
}

// InterceptPeerDial lets everybody be dialled.
func (l *lost) InterceptPeerDial(peer.ID) bool { return true }

// InterceptAccept takes in everybody.
func (l *lost) InterceptAccept(network.ConnMultiaddrs) bool { return true }

// InterceptSecured takes in everybody.
func (l *lost) InterceptSecured(network.Direction, peer.ID, network.ConnMultiaddrs) bool { return true }

// InterceptUpgraded takes in everybody.
func (l *lost) InterceptUpgraded(network.Conn) (bool, control.DisconnectReason) { return true, 0 }

func overTCP(addr ma.Multiaddr) bool {
	_, err := addr.ValueForProtocol(ma.P_TCP)
	return err == nil
}

func anyTCP(addrs []ma.Multiaddr) bool { return slices.ContainsFunc(addrs, overTCP) }
