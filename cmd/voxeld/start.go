package main

import (
	"context"
	"crypto/ed25519"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/backups"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/bundle"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/cli"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/historycmd"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/joining"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/reload"
	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/vitals"
	"github.com/voxelpopuli/voxeld/dht"
	"github.com/voxelpopuli/voxeld/dht/admission"
	"github.com/voxelpopuli/voxeld/dht/transport"
	"github.com/voxelpopuli/voxeld/gameserver"
	"github.com/voxelpopuli/voxeld/gameserver/certs"
	"github.com/voxelpopuli/voxeld/gameserver/classicube"
	"github.com/voxelpopuli/voxeld/gameserver/elsewhere"
	"github.com/voxelpopuli/voxeld/gameserver/handoff"
	"github.com/voxelpopuli/voxeld/gameserver/luanti"
	"github.com/voxelpopuli/voxeld/gameserver/minecraft"
	"github.com/voxelpopuli/voxeld/gameserver/p2p"
	"github.com/voxelpopuli/voxeld/gameserver/weborigin"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/config"
	"github.com/voxelpopuli/voxeld/internal/cputime"
	"github.com/voxelpopuli/voxeld/internal/heap"
	"github.com/voxelpopuli/voxeld/internal/wallclock"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/region/policysync"
	regiontransport "github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/replica"
	"github.com/voxelpopuli/voxeld/store"
	"github.com/voxelpopuli/voxeld/web"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// runNode runs a daemon until ctx ends. It prints the welcome message to out. Recent has the last lines of the logger.
func runNode(ctx context.Context, reloader *reload.Reloader, logger *slog.Logger, recent *cli.Recent, out io.Writer) (err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	n := newNode(reloader.Config(), logger)
	n.reloader, n.recent = reloader, recent
	signal.Notify(n.hangups, syscall.SIGHUP)
	defer signal.Stop(n.hangups)
	n.shutdown.begin = stop
	parts := newStack()
	defer func() {
		err = errors.Join(err, parts.stop())
		n.shutdown.reportEnd(err)
	}()
	if err := n.start(ctx, parts); err != nil {
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			return nil // stopped before it was up
		}
		return err
	}
	if n.cfg.LogFormat == "json" { // whoever reads the log is a program, and the owner's token is not for those who read logs
		logger.Info("node is running", "world", n.world.Name, "id", n.world.ID(), "created", n.created, "url", n.localURL())
	} else {
		token := ""
		if n.created {
			token = moderation{n.regions.Policy, n.gateway}.firstToken(ctx, logger)
		}
		n.printWelcome(out, token)
	}
	if _, err := systemd.SdNotify(false, systemd.SdNotifyReady); err != nil { // systemd waits for it (Type=notify)
		logger.Warn("systemd not notified", "error", err)
	}
	return parts.wait(ctx)
}

// start starts the node's parts; each uses those before it. The gateway is the last part, and so stops first: the
// other parts still run while it moves its players to other nodes.
func (n *node) start(ctx context.Context, parts *stack) error {
	for _, start := range []func(context.Context, *stack) error{
		n.openSockets, n.openStore, n.enterWorld, n.startRegions, n.makeGateway, n.startMetrics, n.startReload, n.startBackups, n.startAdmin,
		func(ctx context.Context, parts *stack) error { return importPolicy(ctx, n.regions.Policy, parts) }, n.startGateway,
	} {
		if err := start(ctx, parts); err != nil {
			return err
		}
	}
	return nil
}

// fewFiles is how many open files a node needs for some hundred players: each has a connection, and each other node
// several.
const fewFiles = 8192

// warnOfFewFiles logs that the node may open few files. The runtime has raised the soft limit to the hard one.
func (n *node) warnOfFewFiles() {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err == nil && limit.Cur < fewFiles {
		n.logger.Warn("this node may open few files and connections: players are refused when that is used up; raise the limit (ulimit -Hn, LimitNOFILE)",
			"limit", limit.Cur, "want", fewFiles)
	}
}

func (n *node) openStore(_ context.Context, parts *stack) error {
	n.warnOfFewFiles()
	if err := os.MkdirAll(n.cfg.DataDir, 0o700); err != nil {
		return fmt.Errorf("create data directory: %w", err)
	}
	path := filepath.Join(n.cfg.DataDir, databaseName)
	if err := n.checkLeftovers(path); err != nil {
		return err
	}
	db, err := store.Open(store.Options{
		Path: path, Logger: n.logger, Registerer: n.metrics,
	})
	if err != nil {
		return fmt.Errorf("open data directory %s: %w", n.cfg.DataDir, err)
	}
	n.db = db
	parts.onStop("database", db.Close)
	stored, err := integrity.LastPromised(db)
	if err != nil {
		return fmt.Errorf("read the newest time in the data directory: %w", err)
	}
	n.clock = wallclock.New(stored)
	if behind := -n.clock.MachineAhead(); behind > time.Minute {
		n.logger.Warn("the clock of this machine is behind the time that is stored here: set it right", "behind", behind)
	}
	parts.start("heap", heap.Run)
	parts.start("commits", db.Run)
	return nil
}

// errDatabaseGone reports that a node ran in the data directory, but its database is missing.
var errDatabaseGone = errors.New("the database is gone")

// checkLeftovers refuses to create a new world where a node left its root key, or a killed one its socket, and the
// database has been lost since, or whose token file is of a world. It allows --join: the node is a new one then, and
// its world is known.
func (n *node) checkLeftovers(database string) error {
	if len(n.cfg.Join) > 0 {
		return nil
	}
	if _, err := os.Lstat(database); !errors.Is(err, fs.ErrNotExist) {
		return nil // store.Open opens it, or reports why it cannot
	}
	left := n.cfg.AdminSocket()
	info, err := os.Lstat(left)
	inside := filepath.Dir(left) == filepath.Clean(n.cfg.DataDir) // otherwise it may be another node's
	if !inside || err != nil || info.Mode().Type() != fs.ModeSocket {
		left = filepath.Join(n.cfg.DataDir, joining.RootKeyFile)
		if _, err := os.Lstat(left); err != nil {
			if err := joining.CheckTokenFile(n.cfg.TokenFile); err != nil {
				return cli.Usage(err)
			}
			return nil
		}
	}
	return fmt.Errorf("%w: a node ran here (it left %s), but %s is missing; put it back, or restore a backup with voxeld restore, "+
		"or start with --join as a new node of its world, or move %s away to create a new world here", errDatabaseGone, left, database, left)
}

// openSockets opens the ports before anything else: if one is taken, no new data directory must be left behind.
func (n *node) openSockets(_ context.Context, parts *stack) (err error) {
	if n.cfg.Encrypted() {
		n.certs, err = certs.New(certs.Options{
			CertFile: n.cfg.TLSCert, KeyFile: n.cfg.TLSKey,
			Domains: n.cfg.ACMEDomain, Email: n.cfg.ACMEEmail, Directory: n.cfg.ACMEDirectory, Cache: filepath.Join(n.cfg.DataDir, "acme"),
			Logger: n.logger, Registerer: n.metrics,
		})
		if err != nil {
			return cli.Usage(err)
		}
	}
	if n.game, err = listen("game", n.cfg.Game); err != nil {
		return err
	}
	parts.onStop("game socket", closeOnce(n.game))
	if n.http, err = listen("http", n.cfg.HTTP); err != nil {
		return err
	}
	parts.onStop("http socket", closeOnce(n.http))
	n.games = make(map[string]net.Listener)
	for _, g := range []struct {
		flag, address string
		listen        func(flag, address string) (net.Listener, error)
	}{
		{"classicube", n.cfg.ClassiCube, listen}, {"luanti", n.cfg.Luanti, listenPackets}, {"minecraft", n.cfg.Minecraft, listen},
	} {
		if g.address == "" {
			continue
		}
		if n.games[g.flag], err = g.listen(g.flag, g.address); err != nil {
			return err
		}
		parts.onStop(g.flag+" socket", closeOnce(n.games[g.flag]))
	}
	if n.cfg.HTTPRedirect != "" {
		if n.redirect, err = listen("http-redirect", n.cfg.HTTPRedirect); err != nil {
			return err
		}
		parts.onStop("redirect socket", closeOnce(n.redirect))
	}
	if n.cfg.Metrics == "" {
		return nil
	}
	if n.scrape, err = listen("metrics", n.cfg.Metrics); err != nil {
		return err
	}
	parts.onStop("metrics socket", closeOnce(n.scrape))
	return nil
}

// enterWorld starts the network, and loads, joins or creates the node's world.
func (n *node) enterWorld(ctx context.Context, parts *stack) error {
	join, err := n.cfg.Bootstrap()
	if err != nil {
		return cli.Usage(err)
	}
	n.host, err = transport.NewHost(transport.Options{
		Storage: n.db, Listen: n.cfg.Listen, Announce: n.cfg.Announce, Bootstrap: join.Addrs,
		Logger: n.logger, Registerer: n.metrics,
	})
	if err != nil {
		return err
	}
	parts.onStop("network", n.host.Close)
	if err := n.chooseWorld(ctx, join); err != nil {
		return err
	}
	if _, err := n.generator(); err != nil { // before other nodes see this one
		return fmt.Errorf("enter world %q: %w", n.world.Name, err)
	}
	newcomer := n.joining()
	gate, err := newcomer.Enter(ctx, n.world, join)
	if err != nil {
		return err
	}
	n.access = joining.Access{Node: newcomer, Gate: gate, World: n.world.ID()}
	if gate != nil {
		parts.start("admission", gate.Run)
	}
	if n.cfg.TokenFile != "" {
		if err := n.access.WriteToken(n.cfg.TokenFile); err != nil {
			return err
		}
	}
	options := dht.Options{
		World: n.world.ID(), Placement: n.world.Placement, Storage: store.NewBounded(n.db), Logger: n.logger, Registerer: n.metrics,
		Now: n.clock.Now, Settled: n.clock.Settled, Stepped: func() bool { return n.clock.MachineAhead().Abs() > time.Minute },
	}
	if gate != nil {
		options.Certificate = gate.Seen.Certificate
	}
	n.dht, err = dht.Join(n.host, options)
	if err != nil {
		return err
	}
	parts.onStop("dht", n.dht.Close)
	parts.start("dht upkeep", n.dht.Run)
	return nil
}

func (n *node) joining() *joining.Node {
	return &joining.Node{Host: n.host, Storage: n.db, DataDir: n.cfg.DataDir, Now: n.clock.Now, Settled: n.clock.Settled, Logger: n.logger, Registerer: n.metrics}
}

// chooseWorld sets n.world to the world of the data directory, the world that --join names, the planned world, or a
// new one, in this order.
func (n *node) chooseWorld(ctx context.Context, join config.Bootstrap) error {
	defer joining.ReportUnresolved(ctx, n.logger, net.DefaultResolver, join.Addrs)()
	stored, known, err := storedGenesis(n.db)
	if err != nil {
		return err
	}
	if known {
		n.world = stored
		if err := n.checkRestored(ctx, stored.ID(), besideMost); err != nil {
			return err
		}
		return joining.Check(ctx, n.host, join, stored)
	}
	if err := checkRestoring(n.db); err != nil {
		return err
	}
	planned, begun, err := plannedGenesis(n.db)
	if err != nil {
		return err
	}
	if len(join.Absent) > 0 && join.Secret == nil {
		return fmt.Errorf("join: there is no token in %s: the node that runs with --token-file writes it when it starts", strings.Join(join.Absent, ", "))
	}
	if len(join.Addrs) > 0 {
		if begun {
			return fmt.Errorf("%w: it holds %q (%s), which was begun here; choose another --data-dir, or run without --join", joining.ErrOtherWorld, planned.Name, planned.ID()[:12])
		}
		n.world, err = n.joining().Genesis(ctx, join)
		if err != nil {
			return err
		}
		return storeGenesis(n.db, n.world)
	}
	n.created = true
	if n.world = planned; begun {
		return nil
	}
	if n.world, err = newGenesis(n.cfg.World, defaultWorldName, nil, defaultSections, defaultDay, n.clock.Now()); err != nil {
		return err
	}
	if err := storePlan(n.cfg, n.db, &n.world); err != nil {
		return err
	}
	n.logger.Warn("the data directory is empty and --join is not set: a new world is created",
		"world", n.world.ID(), "name", n.world.Name, "data_dir", n.cfg.DataDir)
	return nil
}

func (n *node) startRegions(ctx context.Context, parts *stack) error {
	prefix := n.prefix()
	carrier := regiontransport.NewCarrier(n.peers(), n.logger, n.metrics)
	parts.start("carrier", carrier.Run)
	var err error
	n.replicas, err = replica.NewHost(replica.Options{
		Storage: n.db, Self: n.host.PeerID(), Send: carrier.Send, SendSnapshot: carrier.SendSnapshot,
		Logger: n.logger, Registerer: n.metrics,
	})
	if err != nil {
		return err
	}
	parts.start("replicas", n.replicas.Run)
	if n.created {
		// Found the catalog first: a stored genesis means that the world is complete.
		if err := region.FoundCatalog(ctx, n.replicas, n.host.PeerID()); err != nil {
			return err
		}
		if err := storeGenesis(n.db, n.world); err != nil {
			return err
		}
	}
	generator, err := n.generator()
	if err != nil {
		return err
	}
	suspects, err := classifyDamage(n.db.CorruptRows(), n.db, n.logger)
	if err != nil {
		return err
	}
	incarnations, err := n.beginIncarnation(ctx)
	if err != nil {
		return err
	}
	parts.start("incarnations", incarnations.Run)
	key, err := admission.KeyOfNode(n.host.PeerID())
	if err != nil {
		return err
	}
	options := region.Options{
		Self:           nodemsg.Member{Peer: n.host.PeerID(), Game: n.gameAddress()},
		Height:         n.world.Height(),
		Placement:      n.world.Placement,
		Copies:         n.cfg.Replicas,
		CatalogCopies:  catalogCopies(n.cfg.Replicas),
		Grace:          n.cfg.ReplaceAfter,
		Base:           func(pos grid.ChunkPos) [32]byte { return generator.Chunk(pos).Hash() },
		Ground:         generator.Chunk,
		ScrubEvery:     n.cfg.ScrubEvery,
		Spawn:          n.world.Spawn.Chunk(),
		Limits:         limits(n.cfg.Dividing),
		Incarnations:   incarnations,
		DamagedRegions: suspects,
		Storage:        n.db, Replicas: n.replicas, Records: n.dht, Peers: n.peers(), Players: n.dht.StoredPlayers,
		World: n.world.ID(), Operator: policysync.Operator{Key: key[:], Sign: n.host.Sign, Charter: func() uint64 { return 0 }},
		Clock: n.clock, NotReady: n.impaired, Forgotten: n.dht.Forget, Say: n.say,
		Logger: n.logger, Registerer: n.metrics,
	}
	if gate := n.access.Gate; gate != nil {
		options.Attester = admission.Attester{Gate: gate}
		options.Excluded = gate.Excluded
		options.Issuer = gate.Issues
		options.Operator.Charter = func() uint64 { return gate.Charter().Number }
		options.Operator.WasOpen = gate.CountsOpen()
		options.Issued = func(charter uint64, node ed25519.PublicKey) (bool, error) {
			issued, known := gate.Issued(charter, node)
			if !known {
				return false, policy.ErrUnknownCharter
			}
			return issued, nil
		}
	}
	if n.regions, err = region.NewHost(ctx, options); err != nil {
		return err
	}
	n.regions.History.SetRetention(retention(n.cfg.History))
	n.host.Handle(prefix+regiontransport.LinkProtocol, n.regions.ServeLink)
	n.host.Handle(prefix+regiontransport.RaftProtocol, n.regions.ServeRaft)
	n.host.Handle(prefix+regiontransport.SnapshotProtocol, n.regions.ServeSnapshot)
	n.host.Handle(prefix+regiontransport.PieceProtocol, n.regions.ServePiece)
	n.host.Handle(prefix+regiontransport.ExportProtocol, n.regions.Exporter.Serve)
	n.host.HandleAsk(prefix+regiontransport.AskProtocol, n.regions.AnswerQuestion)
	parts.start("regions", n.regions.Run)
	return nil
}

// beginIncarnation shows the nodes that this one knows that it has started, and that its data is not older than what
// they have seen of it.
func (n *node) beginIncarnation(ctx context.Context) (*integrity.Incarnations, error) {
	protocol := n.prefix() + integrity.IncarnationsProtocol
	k, err := integrity.OpenIncarnations(integrity.IncarnationsOptions{
		Storage: n.db, Sign: n.host.Sign,
		Ask: func(ctx context.Context, peer string, question []byte) ([]byte, error) {
			return n.host.Ask(ctx, peer, protocol, question)
		},
		Held:           func() (map[uint64]uint64, error) { return replica.Replicas(n.db, n.host.PeerID()) },
		GroupPeers:     func() ([]string, error) { return replica.GroupPeers(n.db, n.host.PeerID()) },
		OpenGroupPeers: func() []string { return n.replicas.OpenGroupPeers() },
		Promised:       n.replicas.Promised, Now: n.clock.Now, Logger: n.logger, Registerer: n.metrics,
	})
	if err != nil {
		return nil, err
	}
	n.host.HandleAsk(protocol, k.Answer)
	k.Greet(ctx)
	return k, nil
}

func (n *node) makeGateway(context.Context, *stack) error {
	generator, err := n.generator()
	if err != nil {
		return err
	}
	ports := make(map[string]uint16)
	for game, l := range n.games {
		address, err := netip.ParseAddrPort(l.Addr().String())
		if err != nil {
			return fmt.Errorf("port of %s: %w", game, err)
		}
		ports[game] = address.Port()
	}
	n.gateway = gameserver.New(gameserver.Options{
		World: n.world, Terrain: generator, Bases: n.regions, Peer: n.host.PeerID(), Version: version(),
		HTTP: n.playerURL(), Origins: n.pageOrigins(), Game: n.gameAddress(), Games: ports,
		Regions: n.regions, Ranges: n.regions.Ranges.Query, Nodes: n.peers(), Players: n.dht, Storage: store.NewBounded(n.db),
		Client: client(), Contents: func(hash [32]byte) ([]byte, error) { return n.regions.Contents.Get(hash) },
		Admission: admissionSettings(n.cfg.Players),
		People:    n.regions.Policy, History: n.regions.History, Wall: n.clock.Now, Settled: n.clock.Settled,
		Overlay: n.cfg.Overlay, Streams: n.peers(),
		Ready: n.ready, Drained: n.shutdown.report, Logger: n.logger, Registerer: n.metrics,
	})
	n.sessions.Store(n.gateway)
	n.host.HandleAsk(n.prefix()+handoff.Protocol, n.gateway.AnswerHandoff)
	n.host.HandleAsk(n.prefix()+elsewhere.Protocol, n.gateway.Elsewhere.Answer)
	n.host.Handle(n.prefix()+p2p.Protocol, n.gateway.ServeOverlay)
	return nil
}

func (n *node) startGateway(_ context.Context, parts *stack) error {
	proxies, err := n.cfg.Proxies()
	if err != nil {
		return cli.Usage(err)
	}
	listeners := gameserver.Listeners{Game: n.game, HTTP: n.http, Redirect: n.redirect, Proxies: proxies}
	other, err := luanti.New(n.metrics, n.gateway.LookUp)
	if err != nil {
		return err
	}
	status := func() minecraft.Status {
		s := minecraft.Status{Text: n.world.Name}
		for _, p := range n.gateway.Online() {
			s.Players = append(s.Players, p.Name)
		}
		return s
	}
	for _, a := range []gameserver.Adapted{
		{Game: "classicube", Protocol: classicube.New(n.metrics)},
		{Game: "luanti", Protocol: other},
		{Game: "minecraft", Protocol: minecraft.New(n.metrics, status)},
	} {
		if a.Listener = n.games[a.Game]; a.Listener != nil { // the metrics of the others are there, too
			listeners.Adapted = append(listeners.Adapted, a)
		}
	}
	if n.certs != nil {
		_, port, err := net.SplitHostPort(n.http.Addr().String())
		if err != nil {
			return err
		}
		listeners.TLS, listeners.Redirects = n.certs.Config(), n.certs.PlainHandler(port)
	}
	parts.start("gateway", func(ctx context.Context) error { return n.gateway.Run(ctx, listeners) })
	if list := n.cfg.ClassiCubeList; list != "" {
		_, port, err := net.SplitHostPort(n.games["classicube"].Addr().String())
		if err != nil {
			return err
		}
		parts.start("server list", classicube.Heartbeat{
			URL: list, Name: n.world.Name, Software: "voxeld " + version(), Port: port,
			Players: func() int { return len(n.gateway.Online()) }, Logger: n.logger,
		}.Run)
	}
	if n.certs != nil {
		parts.start("certificates", n.certs.Run)
	}
	return nil
}

// unbuilt is served when the daemon was built without its browser client.
//
//go:embed unbuilt
var unbuilt embed.FS

// client returns the browser client, or a page that explains how to build it.
func client() fs.FS {
	if web.Built() {
		return web.Client()
	}
	page, err := fs.Sub(unbuilt, "unbuilt")
	if err != nil {
		panic(err) // only an invalid name fails
	}
	return page
}

// importPolicy enters what a restore has left: roles and bans before players join, names meanwhile.
func importPolicy(ctx context.Context, policy *policysync.Copy, parts *stack) error {
	if err := policy.Import(ctx, policysync.ImportUrgent); err != nil {
		return err
	}
	parts.start("names of the backup", func(ctx context.Context) error {
		if err := policy.Import(ctx, policysync.ImportNames); err != nil && ctx.Err() == nil {
			return err
		}
		<-ctx.Done()
		return nil
	})
	return nil
}

func (n *node) startMetrics(_ context.Context, parts *stack) error {
	n.cpu = cputime.New(n.logger, n.metrics)
	vitals.Register(n.metrics, vitals.Options{Version: version(), Started: n.started, DataDir: n.cfg.DataDir, Ready: n.takesPlayers})
	if n.scrape == nil {
		return nil
	}
	parts.start("cpu time", n.cpu.Run)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(n.metrics, promhttp.HandlerOpts{}))
	n.logger.Info("metrics", "url", "http://"+n.scrape.Addr().String()+"/metrics")
	serveUntil(parts, "metrics", n.scrape, weborigin.New(n.pageOrigins(), nil).KnownHosts(mux))
	return nil
}

// serveUntil serves HTTP until the part is stopped.
func serveUntil(parts *stack, name string, l net.Listener, handler http.Handler) {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, ConnContext: withCaller}
	parts.start(name, func(ctx context.Context) error {
		stop := context.AfterFunc(ctx, func() { server.Close() }) //nolint:errcheck // Serve reports it
		defer stop()
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
}

func (n *node) startBackups(_ context.Context, parts *stack) error {
	where, err := config.ParseTarget(n.cfg.BackupTarget)
	if err != nil {
		return cli.Usage(err)
	}
	target, err := backups.NewTarget(where, n.host.PeerID())
	if err != nil {
		return cli.Usage(err)
	}
	n.backups = backups.New(backups.Options{
		Backup: n.regions.Exporter.Backup, Header: n.backupHeader, World: n.world,
		Every: n.cfg.BackupEvery, Keep: n.cfg.BackupKeep, Incremental: n.cfg.BackupIncremental, Dir: n.cfg.BackupDirectory(),
		Target: target, Now: n.clock.Now,
		Logger: n.logger, Registerer: n.metrics,
	})
	parts.start("backups", n.backups.Run)
	return nil
}

func (n *node) startAdmin(_ context.Context, parts *stack) error {
	path := n.cfg.AdminSocket()
	if err := removeStaleSocket(path); err != nil {
		return err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return fmt.Errorf("listen on admin socket %s: %w; choose another path with --admin", path, err)
	}
	// The data directory is closed to other users, unless an operator opens it to a group, as the Debian package does.
	if err := os.Chmod(path, 0o660); err != nil {
		return errors.Join(fmt.Errorf("set permissions of admin socket: %w", err), l.Close())
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) { reply(w, n.status(r.Context())) })
	mux.HandleFunc("GET /peers", func(w http.ResponseWriter, _ *http.Request) { reply(w, n.peerList()) })
	mux.HandleFunc("GET /regions", func(w http.ResponseWriter, r *http.Request) { reply(w, n.regionList(r.Context())) })
	mux.Handle("GET /metrics", promhttp.HandlerFor(n.metrics, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /players", func(w http.ResponseWriter, _ *http.Request) { reply(w, n.playerList()) })
	historycmd.Server{Regions: n.regions, Write: reply}.Add(mux)
	mux.HandleFunc("GET /area/regions", answerArea(n.regions, false))
	mux.HandleFunc("GET /area/players", answerArea(n.regions, true))
	n.access.Add(mux, n.regions)
	n.addOperations(mux)
	moderation{n.regions.Policy, n.gateway}.add(mux)
	ofWorld := mods{n.regions.Policy, n.regions.Contents}
	ofWorld.add(mux)
	if n.cfg.ModDir != "" {
		parts.start("mod folder", func(ctx context.Context) error {
			ofWorld.watch(ctx, n.cfg.ModDir, n.logger)
			return nil
		})
	}
	textures{n.regions.Policy, n.regions.Contents}.add(mux)
	mux.Handle("POST "+admin.BackupPath, n.backups)
	mux.HandleFunc("POST "+admin.ScheduledBackupPath, n.backups.ServeScheduled)
	replaceHandlers{n.regions.Refounder, n.world}.add(mux)
	mux.HandleFunc("POST /reload", n.answerReload)
	mux.HandleFunc("POST /drain", n.shutdown.serve)
	mux.HandleFunc("GET /region/scrub", func(w http.ResponseWriter, r *http.Request) { n.answerScrub(w, r) })
	mux.HandleFunc("GET "+bundle.LogPath, func(w http.ResponseWriter, _ *http.Request) { w.Write(n.recent.Lines()) }) //nolint:errcheck // the client left
	mux.HandleFunc("GET "+bundle.ConfigPath, func(w http.ResponseWriter, _ *http.Request) { bundle.WriteSettings(w, n.reloader.Settings()) })
	mux.HandleFunc("GET "+bundle.ProcessPath, func(w http.ResponseWriter, _ *http.Request) { bundle.WriteProcess(w, n.cfg.DataDir) })
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", n.cpu.Yield(pprof.Profile))
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	serveUntil(parts, "admin socket", l, logOrders(n.logger, mux))
	return nil
}

// removeStaleSocket removes the socket that a killed daemon left at path. It returns an error if anything else
// is there.
func removeStaleSocket(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("stat admin socket: %w", err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return cli.Usage(fmt.Errorf("admin socket %s: the file is not a socket; choose another path with --admin", path))
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		return errors.Join(fmt.Errorf("admin socket %s: another daemon uses it; stop that one, or choose another path with --admin", path), c.Close())
	}
	if !errors.Is(err, syscall.ECONNREFUSED) { // refused: its daemon is gone
		return fmt.Errorf("admin socket %s: cannot find out whether a daemon still uses it: %w; choose another path with --admin", path, err)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("remove old admin socket: %w", err)
	}
	return nil
}

// printWelcome prints how to add a node, how to become an owner, how to stop and, last, where to play.
func (n *node) printWelcome(out io.Writer, token string) {
	what := "is running"
	if n.created {
		what = "has been created"
	}
	fmt.Fprintf(out, "\n  The world %q %s (%s).\n", n.world.Name, what, n.world.ID()[:12])
	if n.created {
		fmt.Fprintf(out, "  It is a new world, with no other nodes. To join an existing world instead, stop this node,\n"+
			"  empty %s, and start it with --join.\n", n.cfg.DataDir)
	}
	if n.access.Gate == nil {
		fmt.Fprintf(out, "  It is open: whoever reaches this node can run nodes of it, and change anything in it.\n")
	} else if n.created {
		fmt.Fprintf(out, "  Keep a copy of %s elsewhere: whoever has it decides who may run nodes of the world.\n", filepath.Join(n.cfg.DataDir, joining.RootKeyFile))
	}
	fmt.Fprintln(out)
	if len(n.host.Addrs()) > 0 {
		fmt.Fprintf(out, "  Add a machine:       %s invite --data-dir %s   and there: voxeld run --join TOKEN\n", os.Args[0], n.cfg.DataDir)
	}
	if token != "" {
		fmt.Fprintf(out, "  Own the world:       type /owner %s into the chat of the game\n", token)
	}
	if url := n.playerURL(); url != n.localURL() {
		fmt.Fprintf(out, "  For players:         %s\n", url)
	}
	fmt.Fprintf(out, "  Stop:                Ctrl-C\n")
	fmt.Fprintf(out, "  Play:                %s\n\n", n.localURL())
}

// catalogCopies returns the number of replicas of the catalog. It has more than a region, because all founding depends
// on it.
func catalogCopies(replicas int) int {
	if replicas == 1 {
		return 1
	}
	return max(replicas, 5)
}
