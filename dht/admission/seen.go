package admission

import (
	"bytes"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/voxelpopuli/voxeld/dht/transport"
	"github.com/voxelpopuli/voxeld/trust"
)

// Seen remembers the certificate that each node showed last, and this node's own. Any goroutine may use it.
type Seen struct {
	certificates *lru.Cache[peer.ID, verified]
}

// verified is a certificate whose signature is its issuer's.
type verified struct {
	certificate trust.Certificate
	issuer      trust.Key
	raw         []byte
}

// maxSeen bounds the certificates that are remembered, at about 700 bytes each.
const maxSeen = 4096

func newSeen() *Seen {
	c, err := lru.New[peer.ID, verified](maxSeen)
	if err != nil {
		panic(err) // only if the size is not positive
	}
	return &Seen{c}
}

// Certificate returns the certificate that a node showed last. It may have expired or been revoked since.
func (s *Seen) Certificate(id peer.ID) (c trust.Certificate, known bool) {
	v, known := s.certificates.Get(id)
	return v.certificate, known
}

func (s *Seen) add(id peer.ID, v verified) { s.certificates.Add(id, v) }

// read returns the certificate in raw, as trust.ReadCertificate does. The signature of the one that the node showed
// last is not verified again.
func (s *Seen) read(id peer.ID, raw []byte) (v verified, err error) {
	if v, known := s.certificates.Get(id); known && bytes.Equal(v.raw, raw) {
		return v, nil
	}
	v.raw = raw
	v.certificate, v.issuer, err = trust.ReadCertificate(raw)
	return v, err
}

// addOwn adds this node's own certificate, if it has one.
func (s *Seen) addOwn(host *transport.Host, raw []byte) {
	id := host.LibP2P().ID()
	if v, err := s.read(id, raw); err == nil {
		s.add(id, v)
	}
}
