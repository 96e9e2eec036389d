package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"net/rpc"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"

	"github.com/voxelpopuli/voxeld/dht"
	"github.com/voxelpopuli/voxeld/dht/admission"
	"github.com/voxelpopuli/voxeld/dht/transport"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/heap"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/region/policysync"
	regiontransport "github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/store"
	"github.com/voxelpopuli/voxeld/terrain"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// genesis is that of the region benchmark's world.
var genesis = world.Genesis{
	Name: "durable", Seed: 33, Sections: 4, Terrain: terrain.Version, Placement: grid.PlacementWalkad,
	Spawn: grid.Pos{Y: 100}, Origin: 1,
}

// Writing is a measurement by writers within a node.
type Writing struct {
	Writers  int
	Keys     bool    // they sign their edits
	Rate     float64 // writes a second of all writers together; 0: unlimited
	Warm     time.Duration
	Duration time.Duration
}

// Visiting is visits of regions: each is founded or woken, a block is put there, and its link is closed.
type Visiting struct {
	Regions  []grid.ChunkPos
	Together int // so many at a time
}

// runNode runs a daemon without its gateway.
func runNode(args []string) error {
	flags := flag.NewFlagSet("node", flag.ContinueOnError)
	dir := flags.String("dir", "", "data directory")
	ip := flags.String("ip", "", "address")
	join := flags.String("join", "", "multiaddr of the first node; empty for that one")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	n := &benchNode{logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})), metrics: prometheus.NewRegistry()}
	if err := n.start(ctx, &wg, *dir, *ip, *join); err != nil {
		return err
	}
	n.ctx = ctx
	server := rpc.NewServer()
	if err := server.RegisterName("Node", n); err != nil {
		return err
	}
	server.ServeConn(pipes{os.Stdin, os.Stdout}) // until the parent closes the pipe
	return nil
}

// pipes are the connection with the parent.
type pipes struct {
	io.ReadCloser
	io.Writer
}

// benchNode is a node. Its exported methods are called by the parent, by net/rpc, one at a time.
type benchNode struct {
	ctx     context.Context //nolint:containedctx // net/rpc has none to pass; it ends with the process
	logger  *slog.Logger
	metrics *prometheus.Registry
	addr    string
	regions *region.Host
	adopted []*regionClient
}

func (n *benchNode) start(ctx context.Context, wg *sync.WaitGroup, dir, ip, join string) error {
	db, err := store.Open(store.Options{Path: filepath.Join(dir, "voxeld.db"), Logger: n.logger, Registerer: n.metrics})
	if err != nil {
		return err
	}
	serve := func(run func(context.Context) error) {
		wg.Go(func() {
			if err := run(ctx); err != nil && ctx.Err() == nil {
				n.logger.Error("a component ended", "error", err)
			}
		})
	}
	serve(heap.Run)
	serve(db.Run)
	o := transport.Options{Storage: db, Listen: []string{"/ip4/" + ip + "/tcp/4001"}, Logger: n.logger, Registerer: n.metrics}
	if join != "" {
		o.Bootstrap = []string{join}
	}
	host, err := transport.NewHost(o)
	if err != nil {
		return err
	}
	n.addr = host.Addrs()[0]
	d, err := dht.Join(host, dht.Options{World: genesis.ID(), Placement: genesis.Placement, Storage: db, Logger: n.logger, Registerer: n.metrics})
	if err != nil {
		return err
	}
	serve(d.Run)
	peers := peers{host, "/voxeld/" + genesis.ID()[:16]}
	carrier := regiontransport.NewCarrier(peers, n.logger, n.metrics)
	serve(carrier.Run)
	replicas, err := replica.NewHost(replica.Options{
		Storage: db, Self: host.PeerID(), Send: carrier.Send, SendSnapshot: carrier.SendSnapshot,
		Logger: n.logger, Registerer: n.metrics,
	})
	if err != nil {
		return err
	}
	serve(replicas.Run)
	if join == "" {
		if err := region.FoundCatalog(ctx, replicas, host.PeerID()); err != nil {
			return err
		}
	}
	generator, err := terrain.New(terrain.Params{Seed: genesis.Seed, Sections: genesis.Sections, Version: genesis.Terrain})
	if err != nil {
		return err
	}
	key, err := admission.KeyOfNode(host.PeerID())
	if err != nil {
		return err
	}
	n.regions, err = region.NewHost(ctx, region.Options{
		Self:   nodemsg.Member{Peer: host.PeerID(), Game: ip + ":4002"},
		Height: genesis.Height(), Placement: genesis.Placement, Copies: 3, CatalogCopies: 3, Grace: time.Minute,
		Base:    func(pos grid.ChunkPos) [32]byte { return generator.Chunk(pos).Hash() },
		Storage: db, Replicas: replicas, Records: d, Peers: peers, World: genesis.ID(), Logger: n.logger, Registerer: n.metrics,
		Operator: policysync.Operator{Key: key[:], Sign: host.Sign, Charter: func() uint64 { return 0 }},
	})
	if err != nil {
		return err
	}
	host.Handle(peers.prefix+regiontransport.LinkProtocol, n.regions.ServeLink)
	host.Handle(peers.prefix+regiontransport.RaftProtocol, n.regions.ServeRaft)
	host.Handle(peers.prefix+regiontransport.SnapshotProtocol, n.regions.ServeSnapshot)
	host.HandleAsk(peers.prefix+regiontransport.AskProtocol, n.regions.AnswerQuestion)
	serve(n.regions.Run)
	n.metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "voxeld_bench_heap_bytes", Help: "Live heap."}, func() float64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(n.metrics, promhttp.HandlerOpts{}))
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	server := &http.Server{Addr: ip + ":9102", Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	serve(func(context.Context) error { return server.ListenAndServe() })
	context.AfterFunc(ctx, func() { server.Close() }) //nolint:errcheck // the process ends
	return nil
}

// peers exposes the world's protocols only, as cmd/voxeld's does.
type peers struct {
	*transport.Host
	prefix string
}

func (p peers) Ask(ctx context.Context, peer, protocol string, question []byte) ([]byte, error) {
	return p.Host.Ask(ctx, peer, p.prefix+protocol, question)
}

func (p peers) Open(ctx context.Context, peer, protocol string) (io.ReadWriteCloser, error) {
	return p.Host.Open(ctx, peer, p.prefix+protocol)
}

// Addr returns the node's multiaddr.
func (n *benchNode) Addr(_ bool, addr *string) error { //nolint:unparam // net/rpc wants the result
	*addr = n.addr
	return nil
}

// Found founds regions.
func (n *benchNode) Found(regions []grid.ChunkPos, _ *bool) error {
	for _, pos := range regions {
		if _, err := n.regions.Locate(n.ctx, pos); err != nil {
			return err
		}
	}
	return nil
}

// Adopt links to those of the regions that are led here, and returns how many there are.
func (n *benchNode) Adopt(regions []grid.ChunkPos, led *int) error {
	for _, pos := range regions {
		link, info, err := n.regions.Follow(n.ctx, pos)
		if err != nil {
			return err
		}
		if info.Leader != n.regions.Self.Peer {
			if err := link.Close(); err != nil {
				return err
			}
			continue
		}
		c, err := newRegionClient(n.ctx, link, pos)
		if err != nil {
			return err
		}
		n.adopted = append(n.adopted, c)
	}
	*led = len(n.adopted)
	return nil
}

// Collect collects garbage, and returns memory to the system.
func (n *benchNode) Collect(bool, *bool) error { //nolint:unparam // net/rpc wants the result
	debug.FreeOSMemory()
	return nil
}

// Write runs writers, spread over the regions that are led here, and returns how long their edits took.
func (n *benchNode) Write(o Writing, all *[]time.Duration) error {
	if len(n.adopted) == 0 {
		return errors.New("no region is led here")
	}
	begin := time.Now().Add(o.Warm)
	end := begin.Add(o.Duration)
	took := make([][]time.Duration, o.Writers)
	var writers errgroup.Group
	for w := range o.Writers {
		c := n.adopted[w%len(n.adopted)]
		writers.Go(func() (err error) {
			took[w], err = c.writer(n.ctx, newEditor(w, o.Keys), w, newPacer(o.Rate, w, o.Writers), begin, end)
			return err
		})
	}
	err := writers.Wait()
	*all = slices.Concat(took...)
	return err
}
