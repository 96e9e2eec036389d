package gameserver

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/gameserver/admission"
	"github.com/voxelpopuli/voxeld/gameserver/chat"
	"github.com/voxelpopuli/voxeld/gameserver/handoff"
	"github.com/voxelpopuli/voxeld/gameserver/httpd"
	"github.com/voxelpopuli/voxeld/gameserver/legacy"
	"github.com/voxelpopuli/voxeld/gameserver/mirror"
	"github.com/voxelpopuli/voxeld/gameserver/p2p"
	"github.com/voxelpopuli/voxeld/gameserver/park"
	"github.com/voxelpopuli/voxeld/gameserver/players"
	"github.com/voxelpopuli/voxeld/gameserver/wake"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// Regions finds, founds and follows regions; a *region.Host.
type Regions interface {
	// Locate returns the region that covers the chunk, and founds it first if necessary.
	Locate(ctx context.Context, pos grid.ChunkPos) (nodemsg.Region, error)
	mirror.Regions
	// Drain hands over the regions that this node leads, and takes no more. It returns how many were handed over and how many
	// were not.
	Drain(ctx context.Context) (handed, kept int)
}

// Terrain generates land; a *terrain.Generator. Any goroutine.
type Terrain interface {
	mirror.Terrain
	Surface(x, z int32) int32
}

// Options are the dependencies and settings of a Gateway.
type Options struct {
	World   world.Genesis
	Terrain Terrain
	// Terrain of chunks that Terrain generates differently from what their edits were made on; nil: such chunks are not shown.
	Bases   mirror.Bases
	Peer    string // this node's peer id
	Version string // of the daemon, sent to clients
	HTTP    string // URL under which players open this gateway
	Game    string // host:port of its game server, reachable by others
	Regions Regions
	Nodes   handoff.Nodes
	Players players.Network
	Storage players.Storage
	Client  fs.FS // the browser client's files
	MaxView int   // the largest view distance granted, in chunks; at most wire.MaxView
	// MotionBudget is the number of bytes a second that the motion of avatars may take in one session; 0 means defaultBudget. In
	// a larger crowd, avatars farther away are sent less exactly.
	MotionBudget int
	Guests       bool // whether players without a key may join
	PerAddress   int  // players that one IP address (of IPv6, one /64) may have here; loopback is not counted
	// EditsPerSecond is how many edits one session may make; 0 means 20.
	EditsPerSecond int
	Ready          func() error    // why the node should not be sent players now; nil if it may
	Drained        func(DrainStep) // receives the steps of the drain, from several goroutines; nil for none
	Logger         *slog.Logger
	Registerer     prometheus.Registerer

	// Overlay is how movement travels between gateways, one of p2p.Overlays; empty means relay. Others than relay need Streams.
	Overlay string
	Streams p2p.Streams

	testHooks
}

// testHooks are settings that only tests change.
type testHooks struct {
	builders      int           // how many build chunks at once; one builds them in strict order
	clockOffset   time.Duration // offset of this node's wall clock
	unorderedChat bool          // chat is shown as it arrives
	actedFor      time.Duration // replaces actedFor
}

// wall returns the node's wall clock, which need not be right.
func (o *Options) wall() time.Time { return time.Now().Add(o.clockOffset) }

// defaultBuilders is the number of goroutines that build chunks.
const defaultBuilders = 2

// defaultBudget is what a crowd of 1,500 in one chunk takes in each session at a precision of a quarter block.
const defaultBudget = 19_200

// Gateway holds the sessions of one daemon. Create it with New; it serves while Run runs.
type Gateway struct {
	Options
	rules          player.Rules
	start          time.Time // the origin of all Motions' times
	metrics        *metrics
	limits         *admission.Limits
	mirror         *mirror.Mirror
	chat           *chat.Sequencer
	p2p            *p2p.Driver
	players        *players.Store
	poller         *park.Poller
	legacy         *legacy.Server
	interest       *sharedIndex
	frameLeader    atomic.Pointer[mirror.Subscription] // of the region that the frame loop follows; nil for none
	frameRequested wake.Signal                         // holds a token while a frame is requested
	frameSessions  []*session                          // the frame loop's; reused
	frameCrowds    map[*mirror.Subscription]int        // likewise
	frameWriter    frameWriter                         // the frame loop's
	spawn          chan func(context.Context)
	stop           chan struct{} // closed when Run begins to shut down
	shutdown       shutdown

	mu struct {
		sync.Mutex
		sessions map[player.ID]*session
		reserved map[player.ID]struct{} // players of original clients
	}
}

// New returns a gateway that is not running yet.
func New(o Options) *Gateway {
	g := &Gateway{
		Options:        o,
		rules:          player.Rules{Height: int(o.World.Height())}.WithDefaults(),
		start:          time.Now(),
		metrics:        newMetrics(o.Registerer),
		limits:         admission.NewLimits(o.PerAddress),
		interest:       newSharedIndex(cmp.Or(o.MotionBudget, defaultBudget)),
		frameRequested: wake.NewSignal(),
		frameCrowds:    make(map[*mirror.Subscription]int),
		spawn:          make(chan func(context.Context)),
		stop:           make(chan struct{}),
		shutdown:       newShutdown(),
	}
	g.players = players.NewStore(players.Options{Storage: o.Storage, Network: o.Players, Peer: o.Peer, Wall: g.wall, Logger: o.Logger})
	g.chat = chat.NewSequencer(chat.Options{
		Now: g.now, Awaited: g.interest.awaitedAuthors, Unordered: o.unorderedChat, Registerer: o.Registerer,
	})
	g.p2p = p2p.NewDriver(p2p.Options{
		Overlay: o.Overlay, Peer: o.Peer, MaxView: o.MaxView, Rules: g.rules, Streams: o.Streams,
		Avatars: g.avatars, Publish: func(n nodemsg.ChunkDelta) { g.mirror.PublishOverlay(n) }, RequestFrame: g.frameRequested.Set,
		Logger: o.Logger, Registerer: o.Registerer,
	})
	g.mirror = mirror.New(mirror.Options{
		Regions: o.Regions, Terrain: o.Terrain, Bases: o.Bases, Interest: g.interest, Overlay: g.p2p,
		Height: o.World.Height(), Peer: o.Peer, Now: g.now, Run: g.run, Logger: o.Logger, Registerer: o.Registerer,
		Chat:   func(from *mirror.Subscription, events []nodemsg.ChatEvent) { g.chat.Enqueue(from, events) },
		Ticked: g.requestFrame, LedByOthers: func(sub *mirror.Subscription) { g.legacy.Reset(sub) },
	})
	g.poller = park.NewPoller(g.Logger, g.p2p.Enabled())
	g.mu.sessions = make(map[player.ID]*session)
	g.mu.reserved = make(map[player.ID]struct{})
	g.legacy = legacy.NewServer(g.legacyOptions())
	return g
}

// Listeners are the sockets that a gateway serves on. Run closes them.
type Listeners struct {
	Game net.Listener // original protocol and sessions over TCP
	HTTP net.Listener // browser client, WebSocket, health
}

// Run serves players until ctx ends or a listener fails, and returns when every session is saved and closed. When ctx ends the
// players are redirected to other nodes first; see drain.go.
//
// The subscriptions and the player store outlive the sessions, so that the last player to leave is removed from the world and
// saved.
func (g *Gateway) Run(ctx context.Context, l Listeners) error {
	inner, stopInner := context.WithCancel(context.WithoutCancel(ctx))
	front, stopFront := context.WithCancel(inner)
	var crew sync.WaitGroup
	defer crew.Wait()
	defer stopInner()
	defer stopFront()
	for range cmp.Or(g.builders, defaultBuilders) {
		crew.Go(func() { g.mirror.Build(inner) })
	}
	crew.Go(func() { g.players.Run(inner, g.playersHere) })
	crew.Go(func() { g.legacy.Run(inner) })
	crew.Go(func() { g.runFrameLoop(inner) })
	crew.Go(func() { g.chat.Run(inner) })
	crew.Go(func() { g.poller.Run(inner) })
	crew.Go(func() { g.p2p.Run(inner) })

	ended := make(chan error)
	crew.Go(func() { ended <- g.serveGame(front, l.Game) })
	crew.Go(func() {
		ended <- httpd.Serve(front, l.HTTP, httpd.Options{Files: g.Client, Ready: g.ready, Session: g.serveSocket})
	})
	defer close(g.stop)
	var err error
	leaving, drained := ctx.Done(), make(chan struct{})
	for running := 2; running > 0; {
		select {
		case <-leaving:
			leaving = nil
			crew.Go(func() { g.drain(inner); close(drained) })
		case <-drained:
			drained = nil
			stopFront()
		case e := <-ended:
			running--
			err = errors.Join(err, e)
			stopFront() // one listener failed: close the other
		case task := <-g.spawn:
			crew.Go(func() { task(inner) })
		}
	}
	return err
}

// run starts a task in a goroutine that Run awaits. It reports false when the gateway is shutting down.
func (g *Gateway) run(task func(context.Context)) bool {
	select {
	case g.spawn <- task:
		return true
	case <-g.stop:
		return false
	}
}

// now returns the gateway's clock, for budgets.
func (g *Gateway) now() time.Duration { return time.Since(g.start) }

// timeOfDay returns the world's time in minutes since midnight.
func (g *Gateway) timeOfDay() float64 { return g.World.TimeOfDay(time.Now().UnixMilli()) }

// Player is the report on one session.
type Player struct {
	ID    string      `json:"id"`
	Name  string      `json:"name"`
	Guest bool        `json:"guest"`
	Pose  motion.Pose `json:"pose"`
}

// Online returns the players with a session here.
func (g *Gateway) Online() []Player {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []Player
	for _, s := range g.mu.sessions {
		if !s.joined() {
			continue
		}
		all = append(all, Player{ID: s.body.Player.String(), Name: s.body.Name, Guest: s.body.Guest, Pose: s.currentPose()})
	}
	return all
}

// playersHere returns what is saved of all players here.
func (g *Gateway) playersHere() []players.Presence {
	all := g.legacy.AppendPlayers(nil)
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.mu.sessions {
		if s.joined() {
			all = append(all, s.savedState())
		}
	}
	return all
}
