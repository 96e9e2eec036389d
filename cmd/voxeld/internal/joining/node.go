package joining

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/dht/admission"
	"github.com/voxelpopuli/voxeld/dht/transport"
	"github.com/voxelpopuli/voxeld/trust"
	"github.com/voxelpopuli/voxeld/world"
)

// founder is the operator of the node that creates a world, and of those that its tokens admit unless they name another
// one.
const founder = "founder"

// Node is what a node has before it is in a world.
type Node struct {
	Host       *transport.Host
	Storage    admission.Storage
	DataDir    string
	Now        func() time.Time // the time of the world
	Settled    func() bool      // what is too old by it may be forgotten
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

func (n *Node) options(id trust.World) admission.Options {
	return admission.Options{
		World: id, Storage: n.Storage, Host: n.Host, Root: func() (trust.Signer, error) { return n.rootKey() },
		Logger: n.Logger, Registerer: n.Registerer, Now: n.Now, Settled: n.Settled,
	}
}

func (n *Node) rootKey() (trust.PrivateKey, error) {
	key, err := ReadRootKey(filepath.Join(n.DataDir, RootKeyFile))
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("run this on the node that has %s, or put a copy of it into this node's data directory first: %w", RootKeyFile, err)
	}
	return key, err
}

// roots returns the root keys of a world, as far as this node knows them; none if the world is open.
func (n *Node) roots(g world.Genesis) ([]trust.Key, error) {
	if !g.Open() {
		return g.Roots, nil
	}
	return admission.LoadRoots(n.Storage)
}

func worldID(g world.Genesis) trust.World {
	raw, err := hex.DecodeString(g.ID())
	if err != nil {
		panic(err) // it is hex
	}
	return trust.World(raw)
}
