package admission

import (
	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/voxelpopuli/voxeld/dht/transport"
	"github.com/voxelpopuli/voxeld/trust"
)

// Seen remembers the certificate that each node showed last, and this node's own. Any goroutine may use it.
type Seen struct {
	certificates *lru.Cache[peer.ID, trust.Certificate]
}

// maxSeen bounds the certificates that are remembered, at about 300 bytes each.
const maxSeen = 4096

func newSeen() *Seen {
	c, err := lru.New[peer.ID, trust.Certificate](maxSeen)
	if err != nil {
		panic(err) // only if the size is not positive
	}
	return &Seen{c}
}

// Certificate returns the certificate that a node showed last. It may have expired or been revoked since.
func (s *Seen) Certificate(id peer.ID) (c trust.Certificate, known bool) {
	return s.certificates.Get(id)
}

func (s *Seen) add(id peer.ID, c trust.Certificate) { s.certificates.Add(id, c) }

// addOwn adds this node's own certificate, if it has one.
func (s *Seen) addOwn(host *transport.Host, raw []byte) {
	if c, _, err := trust.ReadCertificate(raw); err == nil {
		s.add(host.LibP2P().ID(), c)
	}
}
