package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/backups"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/joining"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/reload"
	"github.com/voxelpopuli/voxeld/dht"
	"github.com/voxelpopuli/voxeld/dht/transport"
	"github.com/voxelpopuli/voxeld/gameserver"
	"github.com/voxelpopuli/voxeld/gameserver/certs"
	"github.com/voxelpopuli/voxeld/internal/config"
	"github.com/voxelpopuli/voxeld/internal/cputime"
	"github.com/voxelpopuli/voxeld/internal/wallclock"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/store"
	"github.com/voxelpopuli/voxeld/terrain"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// node is a running daemon.
type node struct {
	cfg     config.Config
	logger  *slog.Logger
	metrics *prometheus.Registry
	started time.Time
	clock   *wallclock.Clock // what is stored, or compared with stored times, has its time

	db       *store.DB
	host     *transport.Host
	world    world.Genesis
	access   joining.Access
	created  bool // this run created the world
	replicas *replica.Host
	dht      *dht.DHT
	regions  *region.Host
	gateway  *gameserver.Gateway
	sessions atomic.Pointer[gameserver.Gateway] // the gateway, once it is made: for the regions, which are made before
	backups  *backups.Backups
	game     net.Listener
	http     net.Listener
	certs    certs.Source            // of http; nil: plain HTTP
	redirect net.Listener            // to https; nil if there is none
	games    map[string]net.Listener // for clients of other games, by the names of their flags
	scrape   net.Listener            // of metrics; nil if there are none
	cpu      *cputime.Sampler
	shutdown *shutdownProgress
	reloader *reload.Reloader
	recent   *cli.Recent    // the last lines of the log
	hangups  chan os.Signal // SIGHUPs, which request a reload
}

func newNode(cfg config.Config, logger *slog.Logger) *node {
	n := &node{
		cfg: cfg, logger: logger, metrics: prometheus.NewRegistry(), started: time.Now(), shutdown: &shutdownProgress{begin: func() {}},
		reloader: reload.New(config.Settings{Config: cfg}, nil), hangups: make(chan os.Signal, 1),
		recent: &cli.Recent{},
	}
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

// ready returns why the node cannot take players now, or nil. What impairs all nodes alike, such as a slow disk that
// they share, or this node when it is alone, must not close the world: then players are better off here than nowhere.
func (n *node) ready() error {
	if err := n.excluded(); err != nil {
		return err
	}
	// Without another node, the catalog must have a leader all the same: then this node is all that is left of the
	// world.
	if !n.regions.States().CatalogQuorum && n.alone() {
		return errors.New("no other node of the world is connected, and the catalog has no leader")
	}
	if err := n.impaired(); err != nil && n.regions.OthersReady() {
		return err
	}
	return nil
}

// excluded returns an error if the node is excluded from the world, as far as it knows.
func (n *node) excluded() error {
	if n.access.Excluded() != nil { // anybody may read the answer, and the reason is for operators
		return errors.New("this node is excluded from the world: voxeld status says by whom")
	}
	return nil
}

// impaired returns why players should rather be on other nodes, or nil. A disk that is full does not count: land is
// shown without it.
func (n *node) impaired() error {
	if err := n.replicas.Stalled(); errors.Is(err, replica.ErrHung) {
		return err
	}
	if g := n.sessions.Load(); g != nil {
		if leader := g.CutOff(); leader != "" {
			return fmt.Errorf("it cannot reach %s, which leads land where its players stand, and other nodes can", leader)
		}
	}
	return nil
}

// say shows a player, on the gateway of a node, what a mod tells them.
func (n *node) say(ctx context.Context, gateway string, line nodemsg.PrivateLine) {
	if g := n.sessions.Load(); g != nil {
		g.ShowLine(ctx, gateway, line)
	}
}

// takesPlayers returns why the node does not take players now, or nil: what /readyz answers.
func (n *node) takesPlayers() error {
	if n.gateway.Draining() {
		return errors.New("this node is draining")
	}
	return n.ready()
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

// playerURL returns the URL at which browsers reach this node: the one that is advertised, or else its own; with a
// certificate, by its name.
func (n *node) playerURL() string {
	if n.cfg.AdvertiseHTTP != "" {
		return n.cfg.AdvertiseHTTP
	}
	address := reachable(n.http.Addr())
	if n.certs == nil {
		return "http://" + address
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		panic(err) // reachable returns host:port
	}
	if name := n.certs.Host(); name != "" {
		host = name
		if port == "443" {
			return "https://" + name
		}
	}
	return "https://" + net.JoinHostPort(host, port)
}

// localURL returns the URL to open on this machine. A certificate is for the node's name only.
func (n *node) localURL() string {
	if n.certs != nil {
		return n.playerURL()
	}
	return "http://" + cli.Browsable(n.http.Addr().String())
}
