package dht

import (
	"crypto/rand"
	"fmt"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/voxelpopuli/voxeld/kv"
)

var identityKey = []byte("identity")

// loadIdentity returns the node's private key, and creates one if there is none yet.
func loadIdentity(storage Storage) (crypto.PrivKey, error) {
	raw, err := storage.Get(tableNode, identityKey)
	if err != nil {
		return nil, fmt.Errorf("read identity: %w", err)
	}
	if raw != nil {
		key, err := crypto.UnmarshalPrivateKey(raw)
		if err != nil {
			return nil, fmt.Errorf("read identity: the key in the data directory is damaged: %w", err)
		}
		if key.Type() != crypto.Ed25519 {
			return nil, fmt.Errorf("read identity: the key in the data directory is of type %s, want Ed25519", key.Type())
		}
		return key, nil
	}
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make identity: %w", err)
	}
	raw, err = crypto.MarshalPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("make identity: %w", err)
	}
	if err := storage.Commit([]kv.Write{{Table: tableNode, Key: identityKey, Value: raw}}); err != nil {
		return nil, fmt.Errorf("save identity: %w", err)
	}
	return key, nil
}

// randomID returns a peer id that no node has.
func randomID() (peer.ID, error) {
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		return "", err
	}
	return peer.IDFromPrivateKey(key)
}
