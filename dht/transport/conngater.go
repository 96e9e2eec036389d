package transport

import (
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
)

// connGater decides which connections libp2p makes.
type connGater struct {
	*recentlyLost
	strangers *strangers
}

// InterceptAccept reports whether a connection is accepted, before its peer is known.
func (g connGater) InterceptAccept(c network.ConnMultiaddrs) bool {
	return !g.strangers.refuses(sourceOf(c.RemoteMultiaddr(), ""), time.Now())
}

// InterceptSecured is InterceptAccept once the peer is known, which is what counts on loopback.
func (g connGater) InterceptSecured(to network.Direction, id peer.ID, c network.ConnMultiaddrs) bool {
	return to == network.DirOutbound || !g.strangers.refuses(sourceOf(c.RemoteMultiaddr(), id), time.Now())
}
