package dht

import (
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	ma "github.com/multiformats/go-multiaddr"
)

// quicAfter is how much later a node is dialled over QUIC than over TCP, if it has both. An address that is refused at
// once does not use it up: libp2p goes on with the next one.
const quicAfter = 250 * time.Millisecond

// tcpFirst ranks the addresses of a node that is to be dialled. libp2p's own ranking begins with QUIC. Between nodes
// that exchange small ordered messages all the time TCP is the better one: the kernel does its work, and a message
// waits for fewer system calls and goroutines (docs/performance-durable.md).
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
