package joining

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"github.com/voxelpopuli/voxeld/trust"
)

// RootKeyFile is the name of the file with a world's root key, in the data directory in which the world was created.
const RootKeyFile = "root.key"

// CreateRootKey returns the root key in a data directory. It creates one if there is none yet.
func CreateRootKey(dataDir string) (trust.PrivateKey, error) {
	key, err := ReadRootKey(filepath.Join(dataDir, RootKeyFile))
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	_, fresh, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("create root key: %w", err)
	}
	return trust.PrivateKey(fresh), StoreRootKey(dataDir, trust.PrivateKey(fresh))
}

// StoreRootKey stores the root key in a data directory.
func StoreRootKey(dataDir string, key trust.PrivateKey) error {
	der, err := x509.MarshalPKCS8PrivateKey(ed25519.PrivateKey(key))
	if err != nil {
		return fmt.Errorf("store root key: %w", err)
	}
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return fmt.Errorf("create data directory: %w", err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	if err := renameio.WriteFile(filepath.Join(dataDir, RootKeyFile), text, 0o600, renameio.IgnoreUmask()); err != nil {
		return fmt.Errorf("store root key: %w", err)
	}
	return nil
}

// ReadRootKey reads a root key from a PEM file.
func ReadRootKey(path string) (trust.PrivateKey, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read root key: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("read root key: %s is no PEM file", path)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read root key: %s: %w", path, err)
	}
	private, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("read root key: %s: the key is not an Ed25519 key", path)
	}
	return trust.PrivateKey(private), nil
}
