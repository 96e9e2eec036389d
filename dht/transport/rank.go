package transport

import (
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	ma "github.com/multiformats/go-multiaddr"
)

// quicAfter is the delay of a QUIC dial behind a TCP dial to a node that has both. If the TCP address is refused at
// once, libp2p goes on to the next one without the delay.
const quicAfter = 250 * time.Millisecond

// tcpFirst ranks the addresses of a node to be dialled. libp2p's own ranking begins with QUIC. TCP is better between
// nodes that constantly exchange small ordered messages: the kernel does the work, and a message waits for fewer system
// calls and goroutines (docs/performance-durable.md).
func tcpFirst(addrs []ma.Multiaddr) []network.AddrDelay {
	ranked := make([]network.AddrDelay, 0, len(addrs))
	later := time.Duration(0)
	for _, a := range addrs {
		if overTCP(a) {
			ranked = append(ranked, network.AddrDelay{Addr: a})
			later = quicAfter
		}
	}
	for _, a := range addrs {
		if !overTCP(a) {
			ranked = append(ranked, network.AddrDelay{Addr: a, Delay: later})
		}
	}
	return ranked
}
