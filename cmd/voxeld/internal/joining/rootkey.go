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
	"slices"

	"github.com/google/renameio/v2"

	"github.com/voxelpopuli/voxeld/dht/admission"
	"github.com/voxelpopuli/voxeld/trust"
)

// RootKeyFile is the name of the file with a world's root key, in the data directory in which the world was created.
const RootKeyFile = "root.key"

const (
	// nextRootKeyFile has the key that is about to replace the root key.
	nextRootKeyFile = "root.key.next"
	// formerRootKeyFile has the last one that was replaced.
	formerRootKeyFile = "root.key.old"
)

// CreateRootKey returns the root key in a data directory. It creates one if there is none yet.
func CreateRootKey(dataDir string) (trust.PrivateKey, error) {
	key, err := ReadRootKey(filepath.Join(dataDir, RootKeyFile))
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if key, err = newRootKey(); err != nil {
		return nil, err
	}
	return key, StoreRootKey(dataDir, key)
}

func newRootKey() (trust.PrivateKey, error) {
	_, fresh, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("create root key: %w", err)
	}
	return trust.PrivateKey(fresh), nil
}

// StoreRootKey stores the root key in a data directory.
func StoreRootKey(dataDir string, key trust.PrivateKey) error {
	return storeRootKey(filepath.Join(dataDir, RootKeyFile), key)
}

func storeRootKey(path string, key trust.PrivateKey) error {
	der, err := x509.MarshalPKCS8PrivateKey(ed25519.PrivateKey(key))
	if err != nil {
		return fmt.Errorf("store root key: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("create data directory: %w", err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	if err := renameio.WriteFile(path, text, 0o600, renameio.IgnoreUmask()); err != nil {
		return fmt.Errorf("store root key: %w", err)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("store root key: %w", err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil { // the file's name must be on disk before anything names the key
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
		return nil, fmt.Errorf("read root key: %s is not a PEM file", path)
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

// replaceRootKey replaces the root key in a data directory by a new one, which counts once the charter names it. The
// new key is on disk before, so that it cannot be lost. If the replacement fails, the new key stays: the charter may be
// on disk all the same.
func replaceRootKey(dataDir string, gate *admission.Gate) error {
	path := filepath.Join(dataDir, nextRootKeyFile)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is there: the root key is being replaced, or that was interrupted: restart this node", path)
	}
	if _, err := gate.Root(); err != nil {
		return fmt.Errorf("only its holder can replace the root key: %w", err)
	}
	fresh, err := newRootKey()
	if err != nil {
		return err
	}
	if err := storeRootKey(path, fresh); err != nil {
		return err
	}
	if err := gate.ReplaceRoot(fresh); err != nil {
		return fmt.Errorf("replace root key: %w; leave %s where it is, and restart this node: it then keeps the key that counts", err, path)
	}
	return finishReplacement(dataDir, gate)
}

// finishReplacement makes the new root key the root key if the charter names it, and removes it if not. The charter
// must be the stored one: after a failed commit it may differ from the one in memory until a restart.
func finishReplacement(dataDir string, gate *admission.Gate) error {
	path, next := filepath.Join(dataDir, RootKeyFile), filepath.Join(dataDir, nextRootKeyFile)
	fresh, err := ReadRootKey(next)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !slices.Contains(gate.Charter().Roots, fresh.Key()):
		return os.Remove(next)
	}
	if err := os.Rename(path, filepath.Join(dataDir, formerRootKeyFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("replace root key: %w", err)
	}
	if err := os.Rename(next, path); err != nil {
		return fmt.Errorf("replace root key: %w", err)
	}
	return nil
}
