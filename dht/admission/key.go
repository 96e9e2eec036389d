package admission

import (
	"crypto/ed25519"
	"fmt"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/voxelpopuli/voxeld/dht/transport"
	"github.com/voxelpopuli/voxeld/trust"
)

// self is this node's key as a trust.Signer.
type self struct{ private crypto.PrivKey }

func selfOf(h *transport.Host) self {
	lib := h.LibP2P()
	return self{lib.Peerstore().PrivKey(lib.ID())}
}

func (s self) Key() trust.Key {
	raw, err := s.private.GetPublic().Raw()
	if err != nil {
		panic("admission: " + err.Error()) // an Ed25519 key in memory has its bytes
	}
	return trust.Key(raw)
}

func (s self) Sign(text []byte) ([]byte, error) { return s.private.Sign(text) }

// KeyOf returns the key in a peer id.
func KeyOf(id peer.ID) (trust.Key, error) {
	public, err := id.ExtractPublicKey()
	if err != nil {
		return trust.Key{}, fmt.Errorf("key of %s: %w", id, err)
	}
	raw, err := public.Raw()
	if err != nil || public.Type() != crypto.Ed25519 || len(raw) != ed25519.PublicKeySize {
		return trust.Key{}, fmt.Errorf("key of %s: not Ed25519", id)
	}
	return trust.Key(raw), nil
}

// PeerOf returns the peer id of a node's key.
func PeerOf(k trust.Key) (peer.ID, error) {
	public, err := crypto.UnmarshalEd25519PublicKey(k[:])
	if err != nil {
		return "", err
	}
	return peer.IDFromPublicKey(public)
}

// KeyOfNode returns the key in a node's name, as voxeld peers prints it.
func KeyOfNode(name string) (trust.Key, error) {
	id, err := peer.Decode(name)
	if err != nil {
		return trust.Key{}, fmt.Errorf("%q is no id of a node: voxeld peers lists them", name)
	}
	return KeyOf(id)
}
