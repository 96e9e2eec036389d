package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/voxelpopuli/voxeld/dht"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/kv"
	"github.com/voxelpopuli/voxeld/store"
	"github.com/voxelpopuli/voxeld/terrain"
	"github.com/voxelpopuli/voxeld/world"
)

const (
	// worldTable holds what the data directory belongs to: "genesis" → encoded genesis.
	worldTable = "world"
	// genesisProtocol is how a newcomer asks for the genesis; it cannot know the world's prefix yet.
	genesisProtocol = "/voxeld/genesis/1"
	// joinTimeout is how long a newcomer tries to reach the world that it shall join.
	joinTimeout = 30 * time.Second
)

var (
	genesisKey = []byte("genesis") // of a world that is whole: its catalog is founded
	plannedKey = []byte("planned") // of a world that init or a first run began; its catalog may be founded already
)

// errOtherWorld says that the data directory belongs to another world than the one to be joined.
var errOtherWorld = errors.New("the data directory belongs to another world")

// storedGenesis reads the genesis that the data directory belongs to; ok is false for a new one.
func storedGenesis(db *store.DB) (g world.Genesis, ok bool, err error) {
	return readGenesis(db, genesisKey)
}

// plannedGenesis reads the genesis that init, or a first run that did not get to its end, left for this run.
func plannedGenesis(db *store.DB) (g world.Genesis, ok bool, err error) {
	return readGenesis(db, plannedKey)
}

func readGenesis(db *store.DB, key []byte) (g world.Genesis, ok bool, err error) {
	row, err := db.Get(worldTable, key)
	if err != nil || row == nil {
		return world.Genesis{}, false, err
	}
	g, err = world.DecodeGenesis(row)
	if err != nil {
		return world.Genesis{}, false, fmt.Errorf("read the world of the data directory: %w", err)
	}
	return g, true, nil
}

// keepGenesis makes the data directory belong to the world; a plan has served its purpose then.
func keepGenesis(db *store.DB, g world.Genesis) error {
	return db.Commit([]kv.Write{
		{Table: worldTable, Key: genesisKey, Value: g.Encode()},
		{Table: worldTable, Key: plannedKey},
	})
}

// keepPlan writes down the intention to make the world. Once it is kept, the data directory is for no other
// world: a crash may come between the founding of the catalog and keepGenesis.
func keepPlan(db *store.DB, g world.Genesis) error {
	return db.Commit([]kv.Write{{Table: worldTable, Key: plannedKey, Value: g.Encode()}})
}

// newGenesis makes a world. A seed of nil is drawn.
func newGenesis(name string, seed *int64, sections int, placement grid.Placement, now time.Time) (world.Genesis, error) {
	if seed == nil {
		var b [8]byte
		rand.Read(b[:])
		drawn := int64(binary.BigEndian.Uint64(b[:]) >> 16)
		seed = &drawn
	}
	if sections < 1 || sections > world.MaxSections {
		return world.Genesis{}, fmt.Errorf("make world: sections %d: want 1 to %d", sections, world.MaxSections)
	}
	generator, err := terrain.New(terrain.Params{Seed: *seed, Sections: sections, Version: terrain.Version})
	if err != nil {
		return world.Genesis{}, fmt.Errorf("make world: %w", err)
	}
	g := world.Genesis{
		Name: name, Seed: *seed, Sections: sections, Terrain: terrain.Version, Placement: placement,
		Spawn: generator.Spawn(), Origin: now.UnixMilli(),
	}
	// Original clients see the slab whose middle is the ground at the spawn.
	g.OriginalBase = min(max(g.Spawn.Y-world.OriginalHeight/2, 0), g.Height()-world.OriginalHeight)
	if err := g.Validate(); err != nil {
		return world.Genesis{}, fmt.Errorf("make world: %w", err)
	}
	return g, nil
}

// joining is what the --join values say: where to find the world, and its id if a token named it.
type joining struct {
	addrs []string
	world string // "" if only addresses were given
}

// fetchGenesis asks the nodes of the world to be joined for its genesis, until one answers.
func fetchGenesis(ctx context.Context, host *dht.Host, j joining) (world.Genesis, error) {
	trying, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	for {
		var errs []error
		for _, addr := range j.addrs {
			g, err := askGenesis(trying, host, addr)
			switch {
			case err != nil:
				errs = append(errs, err)
			case j.world != "" && g.ID() != j.world:
				return world.Genesis{}, fmt.Errorf("%s is a node of world %s, but the token is of world %s: ask for a new token", addr, g.ID()[:12], j.world[:min(12, len(j.world))])
			default:
				return g, nil
			}
		}
		select {
		case <-trying.Done():
			if ctx.Err() != nil {
				return world.Genesis{}, ctx.Err()
			}
			return world.Genesis{}, fmt.Errorf("no node of the world to be joined answered within %v; check the address and that the node runs: %w", joinTimeout, errors.Join(errs...))
		case <-time.After(time.Second):
		}
	}
}

func askGenesis(ctx context.Context, host *dht.Host, addr string) (world.Genesis, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	peer, err := host.Connect(ctx, addr)
	if err != nil {
		return world.Genesis{}, err
	}
	answer, err := host.Ask(ctx, peer, genesisProtocol, nil)
	if err != nil {
		return world.Genesis{}, fmt.Errorf("ask %s for its world: %w", addr, err)
	}
	return world.DecodeGenesis(answer)
}

// checkJoin refuses to run with a data directory of another world than the one named. A node that cannot
// be reached just now is no reason: the network may be starting.
func checkJoin(ctx context.Context, host *dht.Host, j joining, own world.Genesis) error {
	if j.world != "" && j.world != own.ID() {
		return fmt.Errorf("%w: it holds %q (%s), the token is of world %s; choose another --data-dir", errOtherWorld, own.Name, own.ID()[:12], j.world[:min(12, len(j.world))])
	}
	for _, addr := range j.addrs {
		if g, err := askGenesis(ctx, host, addr); err == nil && g.ID() != own.ID() {
			return fmt.Errorf("%w: it holds %q (%s), %s is a node of %q (%s); choose another --data-dir", errOtherWorld, own.Name, own.ID()[:12], addr, g.Name, g.ID()[:12])
		}
	}
	return nil
}
