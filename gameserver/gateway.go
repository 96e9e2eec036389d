package gameserver

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/kv"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/terrain"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/world"
)

// Regions finds, founds and follows regions; a *region.Host.
type Regions interface {
	// Locate gives the region that covers the chunk; it is founded first if need be.
	Locate(ctx context.Context, pos grid.ChunkPos) (wire.Region, error)
	// Follow links the caller with that region, wherever it is led.
	Follow(ctx context.Context, pos grid.ChunkPos) (region.Link, wire.Region, error)
	// Drain hands over what this node leads, and keeps more from coming to it. It gives how many regions
	// were handed over and how many not.
	Drain(ctx context.Context) (handed, kept int)
}

// Terrain generates land; a *terrain.Generator. Any goroutine.
type Terrain interface {
	ChunkIn(room *terrain.Room, pos grid.ChunkPos) *chunk.Chunk
	Surface(x, z int32) int32
}

// Bases gives the terrain of that hash, wherever it is; a *region.Host. It may take seconds.
type Bases interface {
	BaseOf(ctx context.Context, pos grid.ChunkPos, hash [32]byte) (*chunk.Chunk, error)
}

// Players is the network's memory of players; a *dht.DHT.
type Players interface {
	Player(ctx context.Context, id player.ID) (wire.PlayerRecord, error)
	PutPlayer(ctx context.Context, record wire.PlayerRecord) error
}

// Storage is this node's own memory of players; a *store.DB.
type Storage interface {
	Get(table string, key []byte) ([]byte, error)
	Commit(writes []kv.Write) error
}

// Options are what a Gateway stands on.
type Options struct {
	World   world.Genesis
	Terrain Terrain
	Bases   Bases  // of chunks for which Terrain makes something else than their edits lie on; nil: such chunks are not shown
	Peer    string // this node's peer id
	Version string // of the daemon, told to clients
	HTTP    string // URL under which players open this gateway
	Game    string // host:port of its game server, as others reach it
	Regions Regions
	Nodes   Nodes
	Players Players
	Storage Storage
	Client  fs.FS // the browser client's files
	MaxView int   // the largest view distance granted, in chunks; at most wire.MaxView
	// MotionBudget is how many bytes a second a session's motion of avatars may take; 0 means usualBudget. In a
	// larger crowd those who are farther away are told of less exactly.
	MotionBudget int
	Guests       bool // whether players without a key may join
	PerAddress   int  // players that one IP address (of IPv6, one /64) may have here; loopback is free
	// EditsPerSecond is how many edits one session may make; 0 means 20.
	EditsPerSecond int
	Ready          func() error    // why the node should not be sent players now; nil if it may
	Drained        func(DrainStep) // told how far the end has come; from several goroutines; nil for nobody
	Logger         *slog.Logger
	Registerer     prometheus.Registerer

	// Overlay is who tells whom about movement, one of Overlays; empty means relay. Others than relay need Streams.
	Overlay string
	Streams Streams

	builders int           // in tests: how many build chunks at once; one builds them in strict order
	ahead    time.Duration // in tests: how far this node's wall clock is ahead
	heedless bool          // in tests: chat is shown as it comes
	actedFor time.Duration // in tests: another time than actedFor
}

// wall is the node's wall clock, which need not be right.
func (o *Options) wall() time.Time { return time.Now().Add(o.ahead) }

// usualBudget is what a crowd of 1,500 in one chunk may take of each session, told to a quarter block.
const usualBudget = 19_200

// Gateway holds the sessions of one daemon. Create it with New; it serves while Run runs.
type Gateway struct {
	Options
	rules       player.Rules
	start       time.Time // all Motions count from here
	metrics     *metrics
	jobs        *jobs
	talk        *talk
	swarm       *swarm
	keeper      *keeper
	poller      *poller
	seq         atomic.Uint64 // of the newest edit of an original client
	looks       atomic.Uint64 // order of the view that was looked at last
	stage       *stage
	shelf       *lru.Cache[grid.ChunkPos, shelved]   // generated terrain, packed
	confirmed   *lru.Cache[grid.Cell, time.Duration] // when a region's leader last said that it leads
	leader      atomic.Pointer[feed]                 // of the region that the beat follows; nil for none
	came        chan struct{}                        // holds a token when an original client has come
	called      chan struct{}                        // holds a token while that region calls for a beat
	onBeat      []*session                           // the beat's; reused
	feedsOnBeat []*feed                              // likewise
	crowds      map[*feed]int                        // likewise
	post        post                                 // the beat's
	spawn       chan func(context.Context)
	stop        chan struct{} // closed when Run begins to end
	leaving     leaving

	mu struct {
		sync.Mutex
		feeds     map[grid.Cell]*feed
		sessions  map[player.ID]*session
		classics  map[*classic]struct{}          // original connections in connect mode
		parties   map[partyKey]*party            // original connections by name and address
		guests    map[player.ID]*guest           // the players of these connections
		foundings map[netip.Prefix]*rate.Limiter // what each remote address may ask for that may found a region
		addresses map[netip.Prefix]int           // weights of connections by remote address; no zeros
	}
}

// New prepares a gateway.
func New(o Options) *Gateway {
	g := &Gateway{
		Options: o,
		rules:   player.Rules{Height: int(o.World.Height())}.WithDefaults(),
		start:   time.Now(),
		metrics: newMetrics(o.Registerer),
		jobs:    newJobs(),
		stage:   newStage(cmp.Or(o.MotionBudget, usualBudget)),
		called:  make(chan struct{}, 1),
		crowds:  make(map[*feed]int),
		came:    make(chan struct{}, 1),
		spawn:   make(chan func(context.Context)),
		stop:    make(chan struct{}),
		leaving: newLeaving(),
	}
	shelf, err := lru.New[grid.ChunkPos, shelved](shelfSize)
	if err != nil {
		panic(err) // the size is positive
	}
	g.shelf = shelf
	if g.confirmed, err = lru.New[grid.Cell, time.Duration](shelfSize); err != nil {
		panic(err) // likewise
	}
	g.keeper = newKeeper(o)
	g.talk = newTalk(g)
	g.swarm = newSwarm(g, o.Overlay)
	g.poller = newPoller(g.Logger, g.swarm.on())
	g.mu.feeds = make(map[grid.Cell]*feed)
	g.mu.sessions = make(map[player.ID]*session)
	g.mu.classics = make(map[*classic]struct{})
	g.mu.parties = make(map[partyKey]*party)
	g.mu.guests = make(map[player.ID]*guest)
	g.mu.foundings = make(map[netip.Prefix]*rate.Limiter)
	g.mu.addresses = make(map[netip.Prefix]int)
	return g
}

// Listeners are the sockets that a gateway serves on. Run closes them.
type Listeners struct {
	Game net.Listener // original protocol and sessions over TCP
	HTTP net.Listener // browser client, WebSocket, health
}

// Run serves players until ctx ends or a listener fails, and returns when every session is saved and closed.
// When ctx ends the players are sent to other nodes first, as drain.go tells.
//
// The feeds and the keeper outlive the sessions: whoever leaves last leaves the world in order, and is saved.
func (g *Gateway) Run(ctx context.Context, l Listeners) error {
	inner, stopInner := context.WithCancel(context.WithoutCancel(ctx))
	front, stopFront := context.WithCancel(inner)
	var crew sync.WaitGroup
	defer crew.Wait()
	defer stopInner()
	defer stopFront()
	for range cmp.Or(g.builders, usualBuilders) {
		crew.Go(func() { g.build(inner) })
	}
	crew.Go(func() { g.keeper.run(inner, g.poses) })
	crew.Go(func() { g.runClock(inner) })
	crew.Go(func() { g.runBeat(inner) })
	crew.Go(func() { g.talk.run(inner) })
	crew.Go(func() { g.poller.run(inner) })
	crew.Go(func() { g.swarm.run(inner) })

	ended := make(chan error)
	crew.Go(func() { ended <- g.serveGame(front, l.Game) })
	crew.Go(func() { ended <- g.serveHTTP(front, l.HTTP) })
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
			stopFront() // one door closed: close the other
		case task := <-g.spawn:
			crew.Go(func() { task(inner) })
		}
	}
	return err
}

// run starts a task in a goroutine that Run awaits. It reports false when the gateway is ending.
func (g *Gateway) run(task func(context.Context)) bool {
	select {
	case g.spawn <- task:
		return true
	case <-g.stop:
		return false
	}
}

// feed gives the feed that covers the chunk, which may be new.
func (g *Gateway) feed(pos grid.ChunkPos) *feed {
	cell := grid.CellAt(pos, grid.FoundingLabel)
	g.mu.Lock()
	f := g.mu.feeds[cell]
	if f != nil {
		g.mu.Unlock()
		return f
	}
	f = newFeed(g, cell)
	g.mu.feeds[cell] = f
	g.mu.Unlock()
	g.run(f.run)
	return f
}

// watch brings a chunk into a viewer's view, and gives the feed that shows it.
func (g *Gateway) watch(pos grid.ChunkPos, whom viewer) *feed {
	for {
		if f := g.feed(pos); f.watch(pos, whom) {
			return f
		}
	}
}

// enter brings a viewer's body into the world, and gives the feed of the region that it is in.
func (g *Gateway) enter(body wire.Body, whose viewer) *feed {
	for {
		if f := g.feed(world.ChunkOf(body.Pose)); f.enter(body, whose) {
			return f
		}
	}
}

// nextSeq numbers the edits of original clients, whose protocol does not.
func (g *Gateway) nextSeq() uint64 {
	for {
		last := g.seq.Load()
		next := max(last+1, firstSeq(time.Now()))
		if g.seq.CompareAndSwap(last, next) {
			return next
		}
	}
}

// now is the gateway's clock, for budgets.
func (g *Gateway) now() time.Duration { return time.Since(g.start) }

// timeOfDay is the world's time in minutes since midnight.
func (g *Gateway) timeOfDay() float64 { return g.World.TimeOfDay(time.Now().UnixMilli()) }

// Player is what one session reports about itself.
type Player struct {
	ID    string    `json:"id"`
	Name  string    `json:"name"`
	Guest bool      `json:"guest"`
	Pose  wire.Pose `json:"pose"`
}

// Online gives the players who hold a session here.
func (g *Gateway) Online() []Player {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []Player
	for _, s := range g.mu.sessions {
		if !s.joined() {
			continue
		}
		all = append(all, Player{ID: s.body.Player.String(), Name: s.body.Name, Guest: s.body.Guest, Pose: s.where()})
	}
	return all
}
