package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"github.com/voxelpopuli/voxeld/config"
	"github.com/voxelpopuli/voxeld/dht/admission"
	"github.com/voxelpopuli/voxeld/dht/transport"
	"github.com/voxelpopuli/voxeld/trust"
	"github.com/voxelpopuli/voxeld/world"
)

const (
	// rootKeyFile is the name of the file with a world's root key, in the data directory in which the world was created.
	rootKeyFile = "root.key"
	// founder is the operator of the node that creates a world, and of those that its tokens admit unless they name another one.
	founder = "founder"
)

// errNotAdmitted reports that the world admits nodes with a token only.
var errNotAdmitted = errors.New("this node is not admitted to the world")

// createRootKey returns the root key in a data directory. It creates one if there is none yet.
func createRootKey(dataDir string) (trust.PrivateKey, error) {
	key, err := readRootKey(filepath.Join(dataDir, rootKeyFile))
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	_, fresh, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("create root key: %w", err)
	}
	return trust.PrivateKey(fresh), storeRootKey(dataDir, trust.PrivateKey(fresh))
}

func storeRootKey(dataDir string, key trust.PrivateKey) error {
	der, err := x509.MarshalPKCS8PrivateKey(ed25519.PrivateKey(key))
	if err != nil {
		return fmt.Errorf("store root key: %w", err)
	}
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return fmt.Errorf("create data directory: %w", err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	if err := renameio.WriteFile(filepath.Join(dataDir, rootKeyFile), text, 0o600, renameio.IgnoreUmask()); err != nil {
		return fmt.Errorf("store root key: %w", err)
	}
	return nil
}

func readRootKey(path string) (trust.PrivateKey, error) {
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

func worldID(g world.Genesis) trust.World {
	raw, err := hex.DecodeString(g.ID())
	if err != nil {
		panic(err) // it is hex
	}
	return trust.World(raw)
}

func (n *node) gateOptions(id trust.World) admission.Options {
	return admission.Options{
		World: id, Storage: n.db, Host: n.host, Root: func() (trust.Signer, error) { return readRootKey(n.rootKeyPath()) },
		Logger: n.logger, Registerer: n.metrics,
	}
}

func (n *node) rootKeyPath() string {
	return filepath.Join(n.cfg.DataDir, rootKeyFile)
}

// enroll obtains a certificate and the genesis with the secret of a token.
func (n *node) enroll(ctx context.Context, join config.Bootstrap) (g world.Genesis, err error) {
	raw, err := hex.DecodeString(join.World)
	if err != nil || len(raw) != len(trust.World{}) {
		return g, fmt.Errorf("the token is for world %s, which is no world id: get a new token", join.World)
	}
	err = untilJoined(ctx, join.Addrs, func(ctx context.Context, addr string) error {
		peer, err := n.host.Connect(ctx, addr)
		if err != nil {
			return err
		}
		err = admission.Enroll(ctx, n.gateOptions(trust.World(raw)), peer, *join.Secret, func(genesis []byte) ([]trust.Key, error) {
			if g, err = world.DecodeGenesis(genesis); err != nil {
				return nil, err
			}
			if g.ID() != join.World {
				return nil, notTheWorld(addr, g, join.World)
			}
			return g.Roots, nil
		})
		var refused *transport.AnswerError
		if errors.As(err, &refused) {
			return &joinError{fmt.Errorf("%w: %s says: %s", errNotAdmitted, addr, refused.Text)}
		}
		return err
	})
	return g, err
}

// openGate lets only nodes with a certificate talk to this one, unless the world is open.
func (n *node) openGate(ctx context.Context, join config.Bootstrap, parts *stack) (err error) {
	if n.world.Open() {
		n.host.HandleAsk(genesisProtocol, func(context.Context, string, []byte) ([]byte, error) { return n.world.Encode(), nil })
		return nil
	}
	o := n.gateOptions(worldID(n.world))
	o.Roots, o.Genesis = n.world.Roots, n.world.Encode()
	if n.gate, err = admission.Open(o); err != nil {
		return err
	}
	if !n.gate.Founded() { // a new world, or a restored one
		root, err := readRootKey(n.rootKeyPath())
		if err != nil {
			return fmt.Errorf("%w; the first node of a world needs it: copy it from where it was put, or found another world with voxeld restore --fork", err)
		}
		if err := n.gate.Found(founder, root); err != nil {
			return err
		}
	}
	err = n.gate.Certified()
	switch {
	case join.Secret != nil && (err != nil || !n.gate.HasUsed(join.Secret.ID())): // a token that is new to this node
		if _, err := n.enroll(ctx, join); err != nil {
			return err
		}
		if err := n.gate.Reload(); err != nil {
			return err
		}
	case err != nil:
		return fmt.Errorf("%w: %w: start it with --join and a token that voxeld invite prints on another node", errNotAdmitted, err)
	}
	n.host.HandleAsk(admission.Protocol, n.gate.Answer)
	n.host.SetGate(n.gate)
	parts.start("admission", n.gate.Run)
	return nil
}
