package gameserver

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/voxelpopuli/voxeld/gameserver/admission"
	"github.com/voxelpopuli/voxeld/gameserver/chat"
	"github.com/voxelpopuli/voxeld/gameserver/elsewhere"
	"github.com/voxelpopuli/voxeld/gameserver/games"
	"github.com/voxelpopuli/voxeld/gameserver/handoff"
	"github.com/voxelpopuli/voxeld/gameserver/horizon"
	"github.com/voxelpopuli/voxeld/gameserver/httpd"
	"github.com/voxelpopuli/voxeld/gameserver/legacy"
	"github.com/voxelpopuli/voxeld/gameserver/mirror"
	"github.com/voxelpopuli/voxeld/gameserver/moderation"
	"github.com/voxelpopuli/voxeld/gameserver/newcomer"
	"github.com/voxelpopuli/voxeld/gameserver/p2p"
	"github.com/voxelpopuli/voxeld/gameserver/park"
	"github.com/voxelpopuli/voxeld/gameserver/players"
	"github.com/voxelpopuli/voxeld/gameserver/realip"
	"github.com/voxelpopuli/voxeld/gameserver/services"
	"github.com/voxelpopuli/voxeld/gameserver/sessions"
	"github.com/voxelpopuli/voxeld/gameserver/surroundings"
	"github.com/voxelpopuli/voxeld/gameserver/wake"
	"github.com/voxelpopuli/voxeld/gameserver/weborigin"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/internal/isolate"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// New returns a gateway that is not running yet.
func New(o Options) *Gateway {
	g := &Gateway{
		Options:  o,
		rules:    player.Rules{Height: int(o.World.Height())}.WithDefaults(),
		start:    time.Now(),
		metrics:  newMetrics(o.Registerer),
		sessions: sessions.New[*session](),
		limits:   admission.NewLimits(o.Admission, o.Registerer),
		interest: newSharedIndex(o.Admission.Budget()),
		frames:   frames{requested: wake.NewSignal(), crowds: make(map[*mirror.Subscription]int)},
		horizon:  horizon.New(horizon.Query(o.Ranges), o.Terrain, o.Registerer),
		spawn:    make(chan func(context.Context)),
		stop:     make(chan struct{}),
		shutdown: newShutdown(),
		origins:  handoff.NewOrigins(o.Nodes),
	}
	g.pages = weborigin.New(o.Origins, g.origins.Known)
	g.metrics.panics = isolate.New(o.Logger, o.Registerer)
	g.settings.Store(&o.Admission)
	g.enforcer = moderation.NewEnforcer(o.People, g.wall, moderation.Node{
		Guests: func() bool { return g.settings.Load().Guests }, Original: func() bool { return !g.settings.Load().NoOriginal },
	}, g.announce, o.Registerer)
	g.Elsewhere = elsewhere.New(o.Nodes, here{g}, g.run, o.Registerer)
	g.newcomers = newcomer.New(newcomer.Sources{
		History: o.History, Ranges: o.Ranges, Terrain: o.Terrain, Policy: g.enforcer.Read, Height: o.World.Height(), Wall: g.wall,
	})
	g.surroundings = surroundings.New(o.Ranges, here{g}.names, o.Terrain)
	g.players = players.NewStore(players.Options{Storage: o.Storage, Network: o.Players, Peer: o.Peer, Wall: g.wall, Settled: o.Settled, Logger: o.Logger})
	g.chat = chat.NewSequencer(chat.Options{
		Now: g.now, Awaited: g.interest.awaitedAuthors, Unordered: o.unorderedChat, Registerer: channelOf(o.Registerer, "near"),
	})
	g.world = newWorldChat(g)
	g.p2p = p2p.NewDriver(p2p.Options{
		Overlay: o.Overlay, Peer: o.Peer, MaxView: o.Admission.MaxView, Rules: g.rules, Streams: o.Streams,
		Avatars: g.avatars, Publish: func(n nodemsg.ChunkDelta) { g.mirror.PublishOverlay(n) }, RequestFrame: g.frames.requested.Set,
		Logger: o.Logger, Registerer: o.Registerer,
	})
	g.mirror = mirror.New(mirror.Options{
		Regions: o.Regions, Terrain: o.Terrain, Bases: o.Bases, Interest: g.interest, Overlay: g.p2p,
		Height: o.World.Height(), Peer: o.Peer, Now: g.now, Wall: g.wall, Run: g.run, Panics: g.metrics.panics, Logger: o.Logger, Registerer: o.Registerer,
		Chat:   func(from *mirror.Subscription, events []nodemsg.ChatEvent) { g.chat.Enqueue(from, events) },
		Ticked: g.requestFrame, LedByOthers: func(cell grid.Cell) { g.legacy.Reset(cell) },
	})
	g.services = services.New(services.Options{
		World: o.World, Policy: o.People.Read, History: o.History, Ranges: o.Ranges, Mirror: g.mirror,
		Names: here{g}.names, Nodes: func() int { return 1 + len(o.Nodes.Connected()) },
		Say: g.world.send, Lines: g.world.read, Client: g.limits.Client, Wall: g.wall, Logger: o.Logger, Registerer: o.Registerer,
	})
	g.poller = park.NewPoller(g.Logger, g.p2p.Enabled())
	g.legacy = legacy.NewServer(g.legacyOptions())
	return g
}

// Listeners are the sockets that a gateway serves on. Run closes them.
type Listeners struct {
	Game     net.Listener   // original protocol and sessions over TCP
	HTTP     net.Listener   // browser client, WebSocket, health
	TLS      *tls.Config    // of HTTP; nil: plain HTTP
	Redirect net.Listener   // plain HTTP that Redirects serves; nil for none
	Adapted  []Adapted      // of other games
	Proxies  realip.Proxies // in front of all of them

	Redirects http.Handler
}

// Run serves players until ctx ends or a listener fails, and returns when every session is saved and closed. When ctx
// ends the players are redirected to other nodes first; see drain.go.
//
// The subscriptions and the player store outlive the sessions, so that the last player to leave is removed from the
// world and saved.
func (g *Gateway) Run(ctx context.Context, l Listeners) error {
	inner, stopInner := context.WithCancel(context.WithoutCancel(ctx))
	front, stopFront := context.WithCancel(inner)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stopInner()
	defer stopFront()
	for range cmp.Or(g.builders, defaultBuilders) {
		wg.Go(func() { g.mirror.Build(inner) })
	}
	wg.Go(func() { g.players.Run(inner, g.playersHere) })
	wg.Go(func() { g.legacy.Run(inner) })
	wg.Go(func() { g.runFrameLoop(inner) })
	wg.Go(func() { g.chat.Run(inner) })
	wg.Go(func() { g.world.sequencer.Run(inner) })
	wg.Go(func() { g.poller.Run(inner) })
	wg.Go(func() { g.p2p.Run(inner) })
	wg.Go(func() { g.judgePlayers(inner) })
	wg.Go(func() { g.origins.Run(inner) })

	ended := make(chan error)
	website := httpd.Options{
		Files: g.Client, Preview: httpd.Preview{Title: g.World.Name, URL: g.HTTP}, Ready: g.ready, Session: g.serveSocket, Surface: g.horizon.Handler(g.hasMap, func(r *http.Request) bool { return g.limits.Client(addrOf(r)).Allow(admission.Tile) }), TLS: l.TLS,
		Map: func() (httpd.Map, bool) {
			return httpd.Map{World: g.World.Name, Node: g.Peer, Spawn: g.spawnPose().Block()}, g.hasMap() && g.settings.Load().PublicMap
		},
		Services: g.services, Textures: http.HandlerFunc(g.textures), Pages: g.pages, Proxies: l.Proxies, Admit: g.limits.AdmitHTTP, Requests: g.metrics.requests, Panics: g.metrics.panics, Logger: g.Logger,
	}
	running := 2
	wg.Go(func() { ended <- g.serveGame(front, l.Proxies.Listener(l.Game, wire.HandshakeTimeout)) })
	wg.Go(func() { ended <- httpd.Serve(front, l.HTTP, website) })
	if l.Redirect != nil {
		running++
		wg.Go(func() { ended <- httpd.ServeRedirect(front, l.Redirect, website, l.Redirects) })
	}
	accounts := games.NewAccounts(g.World.ID(), g.enforcer.OwnerOf)
	for _, a := range l.Adapted {
		running++
		wg.Go(func() {
			ended <- g.adapted(a, accounts).Serve(front, l.Proxies.Listener(a.Listener, wire.HandshakeTimeout))
		})
	}
	defer close(g.stop)
	var err error
	leaving, drained := ctx.Done(), make(chan struct{})
	for running > 0 {
		select {
		case <-leaving:
			leaving = nil
			wg.Go(func() { g.drain(inner); close(drained) })
		case <-drained:
			drained = nil
			stopFront()
		case e := <-ended:
			running--
			err = errors.Join(err, e)
			stopFront() // one listener failed: close the other
		case task := <-g.spawn:
			wg.Go(func() { task(inner) })
		}
	}
	return err
}

// Player is the report on one session.
type Player struct {
	ID    string      `json:"id"`
	Name  string      `json:"name"`
	Guest bool        `json:"guest"`
	Pose  motion.Pose `json:"pose"`
}

// Online returns the players with a session here.
func (g *Gateway) Online() []Player {
	var all []Player
	for _, s := range g.sessions.All() {
		if !s.place.joined() {
			continue
		}
		all = append(all, Player{ID: s.body.Player.String(), Name: s.body.Name, Guest: s.body.Guest, Pose: s.place.pose()})
	}
	return all
}

// playersHere returns what is saved of all players here.
func (g *Gateway) playersHere() []players.Presence {
	all := g.legacy.AppendPlayers(nil)
	for _, s := range g.sessions.All() {
		if s.place.joined() {
			all = append(all, s.presence())
		}
	}
	return all
}
