package admission

import (
	"errors"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/voxelpopuli/voxeld/trust"
)

// Attester signs for a node of a closed world, and checks what others have signed. Any goroutine may use it.
type Attester struct{ Gate *Gate }

// Attest signs for this node. It returns its certificate, too.
func (a Attester) Attest(t trust.Attestation) (node trust.Key, signature, certificate []byte, err error) {
	a.Gate.mu.Lock()
	certificate = a.Gate.mu.own
	a.Gate.mu.Unlock()
	if certificate == nil {
		return trust.Key{}, nil, nil, errNoOwn
	}
	t.World = a.Gate.World
	signature, err = t.Sign(a.Gate.self)
	return a.Gate.self.Key(), signature, certificate, err
}

// Check returns an error unless the peer has signed, and the certificate admits it.
func (a Attester) Check(peerID string, t trust.Attestation, signature, certificate []byte) error {
	id, err := peer.Decode(peerID)
	if err != nil {
		return err
	}
	key, err := KeyOf(id)
	if err != nil {
		return err
	}
	a.Gate.mu.Lock()
	_, err = a.Gate.mu.authority.Check(certificate, key, a.Gate.now())
	a.Gate.mu.Unlock()
	if t.World = a.Gate.World; err == nil && !t.Verify(key, signature) {
		err = errors.New("its signature is wrong")
	}
	return err
}

// Charters returns the sealed charters since the genesis, in order.
func (a Attester) Charters() [][]byte {
	a.Gate.mu.Lock()
	defer a.Gate.mu.Unlock()
	return a.Gate.mu.authority.Chain(0)
}
