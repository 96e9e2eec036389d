package main

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/joining"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/config"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/replica/raftlog"
	"github.com/voxelpopuli/voxeld/store"
	"github.com/voxelpopuli/voxeld/terrain"
	"github.com/voxelpopuli/voxeld/trust"
	"github.com/voxelpopuli/voxeld/world"
)

// worldTable holds the world of the data directory: a key below → encoded genesis.
const worldTable = world.GenesisTable

var (
	genesisKey = []byte(world.GenesisKey) // of a complete world: its catalog is founded
	plannedKey = []byte("planned")        // of a world that init or a first run started to create; its catalog may already be founded
)

// storedGenesis reads the genesis of the data directory; ok is false for a new directory.
func storedGenesis(db *store.DB) (g world.Genesis, ok bool, err error) {
	return readGenesis(db, genesisKey)
}

// plannedGenesis reads the genesis that init, or an interrupted first run, stored for this run. The data directory must
// not have a genesis. If it has replicas all the same, the row of the genesis has been lost: in a large file store.Open
// does not find a damaged key.
func plannedGenesis(db *store.DB) (g world.Genesis, ok bool, err error) {
	g, ok, err = readGenesis(db, plannedKey)
	if err != nil || ok {
		return g, ok, err
	}
	groups, err := raftlog.Groups(db)
	if err == nil && len(groups) > 0 {
		err = fmt.Errorf("%w: there are %d replicas, but the row that names their world is missing; keep a copy of the data directory, and "+
			"start with an empty one and --join, or restore a backup into it with voxeld restore", kv.ErrDamaged, len(groups))
	}
	return world.Genesis{}, false, err
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

// storeGenesis binds the data directory to the world, and deletes the plan.
func storeGenesis(db *store.DB, g world.Genesis) error {
	return db.Commit([]kv.Write{
		{Table: worldTable, Key: genesisKey, Value: g.Encode()},
		{Table: worldTable, Key: plannedKey},
	})
}

// newGenesis returns the genesis of a new world, without root keys. If seed is nil, it is random.
func newGenesis(cfg config.World, name string, seed *int64, sections int, day time.Duration, now time.Time) (world.Genesis, error) {
	if seed == nil {
		var b [8]byte
		rand.Read(b[:])
		random := int64(binary.BigEndian.Uint64(b[:]) >> 16)
		seed = &random
	}
	if sections < 1 || sections > world.MaxSections {
		return world.Genesis{}, fmt.Errorf("create world: sections %d: want 1 to %d", sections, world.MaxSections)
	}
	generator, err := terrain.New(terrain.Params{Seed: *seed, Sections: sections, Version: terrain.Version})
	if err != nil {
		return world.Genesis{}, fmt.Errorf("create world: %w", err)
	}
	g := world.Genesis{
		Name: name, Seed: *seed, Sections: sections, Terrain: terrain.Version, Placement: grid.Placement(cfg.Placement),
		Spawn: generator.Spawn(), Origin: now.UnixMilli(),
	}
	if day != defaultDay { // otherwise older nodes may join, too
		g.DayMS = day.Milliseconds()
	}
	// Original clients see the slab whose middle is the ground at the spawn.
	g.OriginalBase = min(max(g.Spawn.Y-world.OriginalHeight/2, 0), g.Height()-world.OriginalHeight)
	if err := g.Validate(); err != nil {
		return world.Genesis{}, fmt.Errorf("create world: %w", err)
	}
	return g, nil
}

// storePlan records that this world is being created. From then on the data directory is bound to it, because the
// process may crash between the founding of the catalog and storeGenesis. Before, it adds the root key in the data
// directory to the genesis, unless the world is open. It creates the key if there is none: the data directory must hold
// no world.
func storePlan(cfg config.Config, db *store.DB, g *world.Genesis) error {
	if !cfg.World.Open {
		root, err := joining.CreateRootKey(cfg.DataDir)
		if err != nil {
			return err
		}
		g.Roots = []trust.Key{root.Key()}
	}
	return db.Commit([]kv.Write{{Table: worldTable, Key: plannedKey, Value: g.Encode()}})
}

// planWorld stores the genesis in an empty data directory, for the first run. It adds the root key to it.
func planWorld(cfg config.Config, g *world.Genesis) (err error) {
	dataDir := cfg.DataDir
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return fmt.Errorf("create data directory: %w", err)
	}
	db, err := store.Open(store.Options{Path: filepath.Join(dataDir, databaseName)})
	if err != nil {
		return fmt.Errorf("open data directory %s: %w", dataDir, err)
	}
	parts := newStack()
	defer func() { err = errors.Join(err, parts.stop()) }()
	parts.onStop("database", db.Close)
	parts.start("commits", db.Run)
	there, known, err := storedGenesis(db)
	if err != nil {
		return err
	}
	if known {
		return fmt.Errorf("%w: %s already holds %q; choose another --data-dir", joining.ErrOtherWorld, dataDir, there.Name)
	}
	if err := checkRestoring(db); err != nil {
		return err
	}
	there, known, err = plannedGenesis(db)
	if err != nil {
		return err
	}
	if known {
		return fmt.Errorf("%w: %s holds the planned world %q (%s): start it with voxeld run, or choose another --data-dir", joining.ErrOtherWorld, dataDir, there.Name, there.ID()[:12])
	}
	return storePlan(cfg, db, g)
}

// chownData changes the owner of root's files in the data directory to the owner of the directory, who runs the node.
// Only root can do so: for other users it has no effect.
func chownData(dataDir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	dir, err := os.Stat(dataDir)
	if err != nil {
		return fmt.Errorf("find owner of data directory: %w", err)
	}
	files, err := os.ReadDir(dataDir)
	if err != nil {
		return fmt.Errorf("read data directory: %w", err)
	}
	owner := dir.Sys().(*syscall.Stat_t)
	for _, file := range files {
		info, err := file.Info()
		if err != nil {
			return fmt.Errorf("read data directory: %w", err)
		}
		if !info.Mode().IsRegular() || info.Sys().(*syscall.Stat_t).Uid != 0 {
			continue
		}
		if err := os.Lchown(filepath.Join(dataDir, file.Name()), int(owner.Uid), int(owner.Gid)); err != nil {
			return fmt.Errorf("change owner of %s to that of the data directory: %w", file.Name(), err)
		}
	}
	return nil
}

// databaseName is the name of the database file in the data directory.
const databaseName = "voxeld.db"

const (
	defaultWorldName = "Commons"
	defaultSections  = 4
	defaultDay       = world.DefaultDay
)
