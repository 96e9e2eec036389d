package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/backups"
	"github.com/voxelpopuli/voxeld/config"
	"github.com/voxelpopuli/voxeld/dht"
	"github.com/voxelpopuli/voxeld/dht/transport"
	"github.com/voxelpopuli/voxeld/gameserver"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/store"
	"github.com/voxelpopuli/voxeld/terrain"
	"github.com/voxelpopuli/voxeld/world"
)

// node is a running daemon.
type node struct {
	cfg     config.Config
	logger  *slog.Logger
	metrics *prometheus.Registry
	started time.Time

	db       *store.DB
	host     *transport.Host
	world    world.Genesis
	created  bool // this run created the world
	replicas *replica.Host
	dht      *dht.DHT
	regions  *region.Host
	gateway  *gameserver.Gateway
	backups  *backups.Backups
	game     net.Listener
	http     net.Listener
	scrape   net.Listener // of metrics; nil if there are none
	shutdown *shutdownProgress
}

func newNode(cfg config.Config, logger *slog.Logger) *node {
	n := &node{cfg: cfg, logger: logger, metrics: prometheus.NewRegistry(), started: time.Now(), shutdown: &shutdownProgress{begin: func() {}}}
	n.metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return n
}

// prefix returns the prefix of the world's protocol names.
func (n *node) prefix() string { return "/voxeld/" + n.world.ID()[:16] }

func (n *node) generator() (*terrain.Generator, error) {
	return terrain.New(terrain.Params{Seed: n.world.Seed, Sections: n.world.Sections, Version: n.world.Terrain})
}

// peers is the host, restricted to the world's protocols.
type peers struct {
	*transport.Host
	prefix string
}

func (n *node) peers() peers { return peers{n.host, n.prefix()} }

func (p peers) Ask(ctx context.Context, peer, protocol string, question []byte) ([]byte, error) {
	return p.Host.Ask(ctx, peer, p.prefix+protocol, question)
}

func (p peers) Open(ctx context.Context, peer, protocol string) (io.ReadWriteCloser, error) {
	return p.Host.Open(ctx, peer, p.prefix+protocol)
}

// Connected returns the ids of the connected nodes.
func (p peers) Connected() []string {
	var all []string
	for _, info := range p.Peers() {
		if info.Connected {
			all = append(all, info.ID)
		}
	}
	return all
}

// ready returns why the node cannot take players now, or nil.
func (n *node) ready() error {
	if len(n.cfg.Join) == 0 || !n.alone() {
		return nil
	}
	return errors.New("no other node of the world is connected yet")
}

func (n *node) alone() bool { return len(n.peers().Connected()) == 0 }

// gameAddress returns the address at which TCP clients reach this node: as configured, or the address of the game
// socket as other machines see it.
func (n *node) gameAddress() string {
	if n.cfg.AdvertiseGame != "" {
		return n.cfg.AdvertiseGame
	}
	return reachable(n.game.Addr())
}

// playerURL returns the URL at which browsers reach this node, likewise.
func (n *node) playerURL() string {
	if n.cfg.AdvertiseHTTP != "" {
		return n.cfg.AdvertiseHTTP
	}
	return "http://" + reachable(n.http.Addr())
}

// buildVersion is set by the linker (see Makefile). It is empty in builds without a version.
var buildVersion string

// version returns buildVersion, else the commit that was built, else the module's version.
func version() string {
	if buildVersion != "" {
		return buildVersion
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value[:min(12, len(s.Value))]
		}
	}
	return info.Main.Version
}
