package transport

import (
	"crypto/rand"
	"fmt"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/voxelpopuli/voxeld/internal/kv"
)

// table is the table of the node itself: identityKey → the peer's private key.
const table = "node"

var identityKey = []byte("identity")

// loadIdentity returns the node's private key, and creates one if there is none yet.
func loadIdentity(storage Storage) (crypto.PrivKey, error) {
	raw, err := storage.Get(table, identityKey)
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
	if err := storage.Commit([]kv.Write{{Table: table, Key: identityKey, Value: raw}}); err != nil {
		return nil, fmt.Errorf("save identity: %w", err)
	}
	return key, nil
}

// Storage persists a node's identity.
type Storage interface {
	Get(table string, key []byte) ([]byte, error)
	Commit(writes []kv.Write) error
}

// Identity returns the peer id of the node whose storage this is, and its private key. It creates both if there are
// none yet.
func Identity(storage Storage) (string, crypto.PrivKey, error) {
	key, err := loadIdentity(storage)
	if err != nil {
		return "", nil, err
	}
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		return "", nil, fmt.Errorf("read identity: %w", err)
	}
	return id.String(), key, nil
}
