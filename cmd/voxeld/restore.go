package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/backupcmd"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/joining"
	"github.com/voxelpopuli/voxeld/dht"
	"github.com/voxelpopuli/voxeld/dht/admission"
	"github.com/voxelpopuli/voxeld/dht/transport"
	"github.com/voxelpopuli/voxeld/internal/backup"
	"github.com/voxelpopuli/voxeld/internal/config"
	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/region/backups"
	"github.com/voxelpopuli/voxeld/store"
	"github.com/voxelpopuli/voxeld/trust"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

var (
	restoringKey = []byte("restoring") // of a restore that has not ended
	restoredKey  = []byte("restored")  // of a restored world that has not run yet: the nodes of the backup
)

// errRestoring reports that a restore into the data directory was interrupted.
var errRestoring = errors.New("a restore into this data directory was interrupted: delete its voxeld.* files, and restore again")

var errNotEmpty = errors.New("the data directory holds data already")

// restoreWorld founds the world of a backup in an empty data directory.
func restoreWorld(ctx context.Context, cfg config.Config, r backupcmd.Restore) (err error) {
	path := filepath.Join(cfg.DataDir, databaseName)
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s; choose an empty one with --data-dir", errNotEmpty, cfg.DataDir)
	}
	nodes := r.Chain.Last().Header.Nodes
	if r.Forked {
		nodes = nil
	} else if err := refuseBeside(ctx, r.Genesis.ID(), nodes); err != nil {
		return err
	}
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
		return fmt.Errorf("create data directory: %w", err)
	}
	defer func() { err = errors.Join(err, chownData(cfg.DataDir)) }()
	charters, err := provideRootKey(cfg.DataDir, &r)
	if err != nil {
		return err
	}
	db, err := store.Open(store.Options{Path: path})
	if err != nil {
		return fmt.Errorf("open data directory %s: %w", cfg.DataDir, err)
	}
	parts := newStack()
	defer func() { err = errors.Join(err, parts.stop()) }()
	parts.onStop("database", db.Close)
	parts.start("commits", db.Run)
	if err := db.Commit(append(charters, kv.Write{Table: worldTable, Key: restoringKey, Value: r.Genesis.Encode()})); err != nil {
		return err
	}
	made, err := dht.NewRestorer(db, r.Genesis.ID())
	if err != nil {
		return err
	}
	report, err := backups.Restore(db, r.Chain, backups.RestoreOptions{
		Self: nodemsg.Member{Peer: made.Self, Game: restoredGame(cfg)}, Player: made.Player, Forked: r.Forked, Progress: r.Progress,
	})
	if err != nil {
		return err
	}
	row, err := json.Marshal(nodes)
	if err != nil {
		return err
	}
	writes := []kv.Write{
		{Table: worldTable, Key: genesisKey, Value: r.Genesis.Encode()},
		{Table: worldTable, Key: restoringKey},
		{Table: worldTable, Key: restoredKey, Value: row},
	}
	for _, n := range nodes {
		writes = append(writes, made.Known(n.Peer, n.Addrs))
	}
	if err := db.Commit(writes); err != nil {
		return err
	}
	r.Done(r.Genesis, report)
	return nil
}

// provideRootKey puts the root key of the world to be restored into the data directory. A fork has one of its own. It
// returns the rows of the charters that lead to the key, if it is not the first.
func provideRootKey(dataDir string, r *backupcmd.Restore) ([]kv.Write, error) {
	switch {
	case r.Genesis.Open():
		return nil, nil
	case r.Forked:
		root, err := joining.CreateRootKey(dataDir)
		if err == nil {
			r.Genesis.Roots = []trust.Key{root.Key()}
		}
		return nil, err
	}
	own := filepath.Join(dataDir, joining.RootKeyFile)
	root, err := joining.ReadRootKey(cmp.Or(r.RootKey, own))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w; pass the world's root key with --root-key, or found a world of its own with --fork NAME", err)
	case err != nil:
		return nil, err
	}
	charters, err := r.Chain.Last().ChartersTo(root, time.Now())
	if err != nil {
		return nil, fmt.Errorf("%s is not the root key of world %q: %w", cmp.Or(r.RootKey, own), r.Genesis.Name, err)
	}
	rows, err := admission.CharterRows(charters)
	if err != nil || r.RootKey == "" {
		return rows, err
	}
	return rows, joining.StoreRootKey(dataDir, root)
}

// restoredGame returns the address of the game server, as far as it is known before the node runs.
func restoredGame(cfg config.Config) string {
	if cfg.AdvertiseGame != "" {
		return cfg.AdvertiseGame
	}
	address, err := net.ResolveTCPAddr("tcp", cfg.Game)
	if err != nil || address.Port == 0 {
		return "127.0.0.1:4002"
	}
	if address.IP == nil {
		address.IP = net.IPv4zero
	}
	return reachable(address)
}

const (
	// besideTime is how long a node of a backup that is connected has to answer. One that does not is busy, and not
	// gone.
	besideTime = 5 * time.Second
	// besideAddrs is how many addresses of a node are tried at most.
	besideAddrs = 16
	// besideDials is how many of them libp2p tries at the same time, and besideDialTime how long one that does not
	// answer takes.
	besideDials    = 8
	besideDialTime = 8 * time.Second
	// besideAtOnce is how many addresses are tried at the same time: fewer than those for which libp2p would have
	// others wait.
	besideAtOnce = 128
	// besideMost is how long a node asks when it starts. A service manager expects it to run soon after.
	besideMost = 5 * time.Minute
)

// refuseBeside asks the nodes of a backup, and returns an error if one of them runs in the world, or if not all were
// asked.
func refuseBeside(ctx context.Context, id string, nodes []backup.Node) error {
	host, err := transport.NewHost(transport.Options{Storage: &kv.Memory{}, Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Patient: true})
	if err != nil {
		return err
	}
	wg, asking := errgroup.WithContext(ctx) // the first that runs ends the search
	dials := semaphore.NewWeighted(besideAtOnce)
	for _, n := range nodes {
		n.Addrs = n.Addrs[:min(len(n.Addrs), besideAddrs)]
		some := int64(min(len(n.Addrs), besideDials))
		if dials.Acquire(asking, some) != nil {
			break
		}
		wg.Go(func() error {
			defer dials.Release(some)
			return refuseAlive(asking, host, id, n)
		})
	}
	return errors.Join(cmp.Or(wg.Wait(), ctx.Err()), host.Close())
}

// refuseAlive returns an error if a node runs in the world at one of its addresses.
func refuseAlive(ctx context.Context, host *transport.Host, id string, n backup.Node) error {
	dialing, cancel := context.WithTimeout(ctx, time.Duration(1+len(n.Addrs)/besideDials)*besideDialTime)
	defer cancel()
	addr, err := host.ConnectPeer(dialing, n.Peer, n.Addrs)
	if err != nil {
		return nil //nolint:nilerr // it does not run there
	}
	asking, cancel := context.WithTimeout(ctx, besideTime)
	defer cancel()
	if !joining.RunsWorld(asking, host, n.Peer, id) || ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w at %s: a restored copy would take the place of what that node has. Stop all of its nodes first; or join it "+
		"instead; or found a world of its own with --fork NAME", backupcmd.ErrAlive, addr)
}

// checkRestored refuses to run a world that has just been restored beside nodes that have it from before. It asks them
// once, and for so long at most: nodes that come later give up what they have.
func (n *node) checkRestored(ctx context.Context, id string, most time.Duration) error {
	row, err := n.db.Get(worldTable, restoredKey)
	if err != nil || row == nil {
		return err
	}
	var nodes []backup.Node
	if err := json.Unmarshal(row, &nodes); err != nil {
		return fmt.Errorf("read the nodes of the restored world: %w", err)
	}
	asking, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	err = refuseBeside(asking, id, nodes)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		n.logger.Warn("not all nodes of the backup were asked whether they run: one that does loses what it has", "nodes", len(nodes), "after", most)
		err = nil
	}
	if err != nil {
		return err
	}
	return n.db.Commit([]kv.Write{{Table: worldTable, Key: restoredKey}})
}

// backupHeader describes a backup that begins now.
func (n *node) backupHeader() backup.Header {
	h := backup.Header{
		Genesis: n.world.Encode(), Begun: n.clock.Now().UnixMilli(), Program: version(),
		Nodes: []backup.Node{{Peer: n.host.PeerID(), Addrs: n.host.Addrs()}},
	}
	for _, p := range n.host.Peers() {
		h.Nodes = append(h.Nodes, backup.Node{Peer: p.ID, Addrs: p.Addrs})
	}
	for i := range h.Nodes {
		node := &h.Nodes[i]
		for j := range node.Addrs {
			node.Addrs[j] = strings.TrimSuffix(node.Addrs[j], "/p2p/"+node.Peer)
		}
	}
	return h
}

// checkRestoring returns an error if a restore was interrupted.
func checkRestoring(db *store.DB) error {
	row, err := db.Get(worldTable, restoringKey)
	if err == nil && row != nil {
		err = errRestoring
	}
	return err
}
