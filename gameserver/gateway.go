package gameserver

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/gameserver/admission"
	"github.com/voxelpopuli/voxeld/gameserver/chat"
	"github.com/voxelpopuli/voxeld/gameserver/elsewhere"
	"github.com/voxelpopuli/voxeld/gameserver/handoff"
	"github.com/voxelpopuli/voxeld/gameserver/horizon"
	"github.com/voxelpopuli/voxeld/gameserver/legacy"
	"github.com/voxelpopuli/voxeld/gameserver/mirror"
	"github.com/voxelpopuli/voxeld/gameserver/moderation"
	"github.com/voxelpopuli/voxeld/gameserver/newcomer"
	"github.com/voxelpopuli/voxeld/gameserver/outbox"
	"github.com/voxelpopuli/voxeld/gameserver/p2p"
	"github.com/voxelpopuli/voxeld/gameserver/park"
	"github.com/voxelpopuli/voxeld/gameserver/players"
	"github.com/voxelpopuli/voxeld/gameserver/services"
	"github.com/voxelpopuli/voxeld/gameserver/sessions"
	"github.com/voxelpopuli/voxeld/gameserver/surroundings"
	"github.com/voxelpopuli/voxeld/gameserver/wake"
	"github.com/voxelpopuli/voxeld/gameserver/weborigin"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/notice"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
	"github.com/voxelpopuli/voxeld/world"
)

// Regions finds, founds and follows regions; a *region.Host.
type Regions interface {
	legacy.Regions
	// Drain hands over the regions that this node leads, and takes no more. It returns how many were handed over and
	// how many were not.
	Drain(ctx context.Context) (handed, kept int)
}

// Terrain generates land; a *terrain.Generator. Any goroutine.
type Terrain interface {
	mirror.Terrain
	surroundings.Terrain
	horizon.Terrain
	Surface(x, z int32) int32
}

// Options are the dependencies and settings of a Gateway.
type Options struct {
	World   world.Genesis
	Terrain Terrain
	// Terrain of chunks that Terrain generates differently from what their edits were made on; nil: such chunks are not
	// shown.
	Bases     mirror.Bases
	Peer      string            // this node's peer id
	Version   string            // of the daemon, sent to clients
	HTTP      string            // URL under which players open this gateway
	Origins   []string          // of the pages that may reach it, that of HTTP among them; see package weborigin
	Game      string            // host:port of its game server, reachable by others
	Games     map[string]uint16 // the ports of the other games, by Adapted.Game
	Regions   Regions
	Ranges    surroundings.Query // nil: players have no map, whatever the settings
	Nodes     handoff.Nodes
	Players   players.Network
	Storage   players.Storage
	Client    fs.FS                               // the browser client's files
	Contents  func(hash [32]byte) ([]byte, error) // what the policy names by its hash
	Admission admission.Settings
	People    moderation.People
	History   moderation.History
	Wall      func() time.Time // the time of the world; nil: that of the machine
	Settled   func() bool      // reports whether what is too old by it may be deleted; nil: it may
	Ready     func() error     // why the node should not be sent players now; nil if it may
	Drained   func(DrainStep)  // receives the steps of the drain, from several goroutines; nil for none

	Logger     *slog.Logger
	Registerer prometheus.Registerer

	// Overlay is how movement travels between gateways, one of p2p.Overlays; empty means relay. Others than relay need
	// Streams.
	Overlay string
	Streams p2p.Streams

	testHooks
}

// testHooks are settings that only tests change.
type testHooks struct {
	builders      int           // how many build chunks at once; one builds them in strict order
	clockOffset   time.Duration // what the time of the world is off here
	unorderedChat bool          // chat is shown as it arrives
	actedFor      time.Duration // replaces actedFor
}

// wall returns the time of the world, which need not be right.
func (o *Options) wall() time.Time {
	if o.Wall == nil {
		return time.Now().Add(o.clockOffset)
	}
	return o.Wall()
}

// defaultBuilders is the number of goroutines that build chunks.
const defaultBuilders = 2

// Gateway holds the sessions of one daemon. Create it with New; it serves while Run runs.
type Gateway struct {
	Options
	// Elsewhere asks other gateways about their players, and answers them (elsewhere.Protocol).
	Elsewhere    *elsewhere.Players
	settings     atomic.Pointer[admission.Settings] // Options.Admission is that of the start
	rules        player.Rules
	start        time.Time // the origin of all Motions' times
	metrics      *metrics
	limits       *admission.Limits
	enforcer     *moderation.Enforcer
	mirror       *mirror.Mirror
	chat         *chat.Sequencer // of those near each other
	world        *worldChat
	services     *services.Server
	p2p          *p2p.Driver
	players      *players.Store
	poller       *park.Poller
	legacy       *legacy.Server
	interest     *sharedIndex
	frames       frames
	origins      *handoff.Origins // of other nodes' pages
	pages        *weborigin.Policy
	surroundings *surroundings.Surroundings
	horizon      *horizon.Horizon
	newcomers    *newcomer.Chooser
	texturePack  texturePack
	spawn        chan func(context.Context)
	stop         chan struct{} // closed when Run begins to shut down
	shutdown     shutdown
	sessions     *sessions.Table[*session] // those that have a place
}

// frames is the state of the frame loop.
type frames struct {
	leader    atomic.Pointer[mirror.Subscription] // of the region that the loop follows; nil for none
	requested wake.Signal                         // holds a token while a frame is requested

	// The frame loop's own. The first two are reused.
	sessions []*session
	crowds   map[*mirror.Subscription]int
	writer   outbox.FrameWriter
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

// hasMap reports whether players are shown a map, and who is near.
func (g *Gateway) hasMap() bool { return g.Ranges != nil && g.settings.Load().Map }

// now returns the gateway's clock, for budgets.
func (g *Gateway) now() time.Duration { return time.Since(g.start) }

// timeOfDay returns the world's time in minutes since midnight.
func (g *Gateway) timeOfDay() float64 { return g.World.TimeOfDay(g.wall().UnixMilli()) }

// SetAdmission changes who may play, and what they may take. Nobody is sent away: players who are here keep their view
// distance until they change it, and guests may stay.
func (g *Gateway) SetAdmission(p admission.Settings) {
	g.settings.Store(&p)
	g.limits.Set(p)
	g.interest.setBudget(p.Budget())
	g.legacy.SetEdits()
	for _, s := range g.sessions.All() {
		s.limits.edit.SetLimit(s.permissions.Edits(p.Edits()))
	}
}

// viewOf returns the view distance that is granted to a client that asks for one.
func (g *Gateway) viewOf(asked int) int32 { return int32(min(asked, g.settings.Load().MaxView)) }

// requestFrame requests a frame now: the subscription has received the first update of a tick. Under an overlay other
// than relay this is left to p2p, which requests frames when packets arrive.
func (g *Gateway) requestFrame(sub *mirror.Subscription) {
	if !g.p2p.Enabled() && g.frames.leader.Load() == sub {
		g.frames.requested.Set()
	}
}

// wakeFrameLoop requests a frame because a client has connected: frames are rare while there is none.
func (g *Gateway) wakeFrameLoop() {
	if !g.p2p.Enabled() {
		g.frames.requested.Set()
	}
}

// Reasons of a Reconnect.
var (
	reasonMove   = notice.New("node_stops", "This node is being stopped. You go on at another one.")
	reasonAlone  = notice.New("only_node_stops", "This node is being stopped, and no other one can take you now. It will be back.")
	reasonUnread = notice.New("disk_does_not_answer", "This node's disk does not answer. You go on at another one.")
)

// errUnread refuses a join where the player's record cannot be read, if no other node takes them.
var errUnread = wire.Stop(wire.FailUnreadable, notice.New("disk_of_only_node_does_not_answer", "This node's disk does not answer, and no other node can take you now. Try again later."))

func reconnect(gateways []wire.Gateway, reason notice.Notice) sessionmsg.Reconnect {
	return sessionmsg.Reconnect{Gateways: gateways, Reason: reason.Text, Code: reason.Code}
}

// DrainStep reports a completed step of a drain.
type DrainStep = handoff.Step

// shutdown is the progress of a shutdown. Its channels are closed when the step is done.
type shutdown struct {
	begun   chan struct{}
	asked   chan struct{}
	targets *handoff.Targets // after asked
}

func newShutdown() shutdown {
	return shutdown{begun: make(chan struct{}), asked: make(chan struct{})}
}

// shuttingDown reports whether the gateway is shutting down.
func (g *Gateway) shuttingDown() bool {
	select {
	case <-g.shutdown.begun:
		return true
	default:
		return false
	}
}

// refuseJoin returns the answer to a join during shutdown, from a client of another game or, if that is empty, of none.
func (g *Gateway) refuseJoin(ctx context.Context, game string) error {
	select {
	case <-g.shutdown.asked:
	case <-ctx.Done():
		return ctx.Err()
	}
	homes := g.shutdown.targets.Assign(game)
	reason := reasonMove
	if len(homes) == 0 {
		reason = reasonAlone
	}
	return &redirectError{reconnect(homes, reason), errDraining}
}

// refuseUnread refuses a join because the player's record cannot be read here, and redirects the player, if another
// node takes players.
func (g *Gateway) refuseUnread(ctx context.Context, game string, why error) error {
	homes := handoff.Find(ctx, g.Nodes, 1, g.Logger).Assign(game)
	if len(homes) == 0 {
		return fmt.Errorf("%w: %w", errUnread, why)
	}
	g.Logger.Warn("joining player redirected", "error", why)
	return &redirectError{reconnect(homes, reasonUnread), why}
}

// spawnPose returns the spawn of the world. Earlier versions let it be set above and below the world.
func (g *Gateway) spawnPose() motion.Pose {
	p := g.World.Spawn
	if own := g.enforcer.Settings().Spawn; own != nil {
		p = *own
	}
	return motion.Pose{X: float64(p.X) + .5, Y: min(max(float64(p.Y), 0), float64(g.World.Height())), Z: float64(p.Z) + .5}
}
