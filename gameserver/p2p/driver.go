// Package p2p drives the overlay machines of a gateway: under an overlay other than relay, gateways send one another
// the moves of their players without the leaders of regions.
//
// Each avatar of a session here has a machine of package overlay, which is stepped once a round; what the machines send
// to avatars of another gateway travels as one packet. Regions still send all places a few times a second: that
// introduces avatars to one another, and is authoritative for all without updates over the overlay.
//
// Machines are stepped every 50 ms of the wall clock, and updates that are 2 s off are dropped, so the clocks of
// gateways must agree. A gateway sends its frames when the packets of all gateways are there, or after 20 ms. The
// vision range is 48 blocks at most; regions update avatars farther away. A region gets moves within a chunk four times
// a second, and moves into another chunk at once. An update of the last 2 s counts more than the region's position,
// unless that is more than 0.6 s newer; those farther away than a player can have moved are refused. Players more than
// 131,072 blocks from the origin, original clients, and players of gateways that run relay move by way of their
// regions.
//
// The goroutine of Driver.Run steps the machines, and starts and awaits a queue for each other gateway. Only package
// gameserver imports p2p.
package p2p

import (
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/overlay"
	"github.com/voxelpopuli/voxeld/overlay/areacast"
	"github.com/voxelpopuli/voxeld/overlay/psense"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Overlays: how movement travels between gateways.
const (
	Relay    = "relay" // by the leaders of regions
	PSense   = "psense"
	Areacast = "areacast"
)

// Overlays are the values of Options.Overlay except the empty one.
var Overlays = []string{Relay, PSense, Areacast}

const (
	// relayRounds is the interval, in rounds, of updates to a region about a player who has moved within a chunk.
	relayRounds = 5
	// introduceRounds is the interval, in rounds, at which a machine is given all avatars around it.
	introduceRounds = 8
	// maxVision is the range of updates between avatars, in blocks: sessions get those of avatars farther away only as
	// often as regions send them.
	maxVision = 48
	// maxReach is the maximum distance from the origin, in blocks: farther out the places in packets are too coarse,
	// and movement goes through regions.
	maxReach = 1 << 17
)

// Avatar is the avatar of a session here. Two values are equal if they are of the same session. Any goroutine may call
// it.
type Avatar interface {
	Player() player.ID
	// Pose returns where the avatar is, and reports whether it is in a region.
	Pose() (pose motion.Pose, inRegion bool)
	// UpdateRegion sends the avatar's pose to its region.
	UpdateRegion()
}

// Options are the dependencies and settings of a Driver.
type Options struct {
	Overlay string // how movement travels between gateways, one of Overlays; empty means Relay
	Peer    string // this node's peer id
	MaxView int    // the largest view distance, in chunks
	Rules   player.Rules
	Streams Streams         // to other gateways; may be nil under Relay
	Avatars func() []Avatar // of the sessions here
	// Publish shows sessions what the overlay has sent of a chunk. The Driver holds no lock meanwhile.
	Publish      func(nodemsg.ChunkDelta)
	RequestFrame func() // shows sessions at once what was published
	Logger       *slog.Logger
	Registerer   prometheus.Registerer
}

// peerPlaces is the places in a packet of another gateway.
type peerPlaces struct {
	peer   string
	places []overlay.Update
}

// Driver exchanges the movement of avatars with other gateways. Its lock is a leaf: it may be taken under a
// subscription's.
type Driver struct {
	Options
	metrics  metrics
	vision   float64 // blocks
	received chan peerPlaces
	routes   map[string]*[]overlay.Message // by gateway, of the newest turn; owned and reused by the goroutine that takes turns
	queues   map[string]*peerQueue         // by peer; Run's

	mu struct {
		sync.Mutex
		locals  map[overlay.ID]*localAvatar
		remotes remoteAvatars
	}
}

// localAvatar is an avatar of this gateway.
type localAvatar struct {
	Avatar
	machine  overlay.Machine
	inbox    []overlay.Message
	at       overlay.Point
	lastSent motion.Pose // the pose last sent to the region
}

// NewDriver returns a driver that is not running yet.
func NewDriver(o Options) *Driver {
	d := &Driver{
		Options: o, metrics: newMetrics(o.Registerer), vision: float64(min((o.MaxView+1)*grid.ChunkSize*3/2, maxVision)),
		received: make(chan peerPlaces, 16), routes: make(map[string]*[]overlay.Message), queues: make(map[string]*peerQueue),
	}
	d.mu.locals = make(map[overlay.ID]*localAvatar)
	d.mu.remotes = remoteAvatars{rules: o.Rules, refused: d.metrics.refused, byID: make(map[overlay.ID]*remoteAvatar)}
	return d
}

// Enabled reports whether gateways send one another movement at all.
func (d *Driver) Enabled() bool { return d.Overlay == PSense || d.Overlay == Areacast }

// GatewayID returns the gateway that regions are sent for this gateway's players.
func (d *Driver) GatewayID() string {
	if d.Enabled() {
		return d.Peer
	}
	return ""
}

// Carries reports whether the overlay sends the moves of the avatar; then it updates the region too.
func (d *Driver) Carries(a Avatar) bool {
	if !d.Enabled() {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	m := d.mu.locals[numberOf(a.Player())]
	return m != nil && m.Avatar == a
}

// Merge records a region's delta of a chunk, and removes from it what the overlay has newer. Holds reports whether a
// player is in the chunk of the mirror. The lock of the mirror is held.
func (d *Driver) Merge(n *nodemsg.ChunkDelta, holds func(player.ID) bool) {
	if !d.Enabled() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.remotes.merge(n, holds)
}

// Clear records that a chunk is no longer in the mirror. The lock of the mirror is held.
func (d *Driver) Clear(at grid.ChunkPos) {
	if !d.Enabled() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.remotes.clear(at)
}

// roundOutput is the output of a round. It is valid until the next round.
type roundOutput struct {
	round    uint32
	messages map[string]*[]overlay.Message // by gateway; some may be empty
	here     []overlay.Message             // to avatars of this gateway
	steps    []relocation                  // of avatars in view here
	moved    []Avatar                      // whose regions need an update
}

// to returns the list of messages for a gateway.
func (r *roundOutput) to(peer string) *[]overlay.Message {
	to := r.messages[peer]
	if to == nil {
		to = new([]overlay.Message)
		r.messages[peer] = to
	}
	return to
}

// step steps all machines.
func (d *Driver) step(avatars []Avatar, now uint32) roundOutput {
	d.mu.Lock()
	defer d.mu.Unlock()
	if ahead := int32(d.mu.remotes.round - now); ahead > silentRounds {
		d.mu.remotes.startAgain(now)
		for id, m := range d.mu.locals {
			m.machine, m.inbox = d.machine(id), m.inbox[:0]
		}
	} else if ahead >= 0 {
		now = d.mu.remotes.round + 1
	}
	d.mu.remotes.round = now
	d.syncMachines(avatars)
	r := roundOutput{round: now, messages: d.routes}
	for peer, messages := range d.routes {
		if len(*messages) == 0 {
			delete(d.routes, peer)
		}
		clear(*messages)
		*messages = (*messages)[:0]
	}
	var out overlay.Output
	for id, m := range d.mu.locals {
		pose, _ := m.Pose()
		m.at = overlay.Point{X: pose.X, Z: pose.Z}
		if (now+uint32(id))%introduceRounds == 0 || len(m.inbox) == 0 {
			m.machine.Introduce(d.around(id, m.at, now))
		}
		out.Reset()
		m.machine.Step(&overlay.Input{Round: now, At: m.at, GameData: bodyOf(pose), Inbox: m.inbox}, &out)
		clear(m.inbox)
		m.inbox = m.inbox[:0]
		for _, msg := range out.Messages {
			if d.mu.locals[msg.To] != nil {
				r.here = append(r.here, msg)
			} else if a := d.mu.remotes.byID[msg.To]; a != nil && a.body.Gateway != "" {
				if a.routed != now {
					a.routed, a.route = now, r.to(a.body.Gateway)
				}
				*a.route = append(*a.route, msg)
			}
		}
		if m.lastSent != pose && (now+uint32(id))%relayRounds == 0 {
			m.lastSent = pose
			r.moved = append(r.moved, m.Avatar)
		}
	}
	r.steps = d.mu.remotes.restoreSilent(r.steps)
	return r
}

// renew sets the current places of avatars in their outgoing messages, and delivers those for avatars here.
func (d *Driver) renew(r *roundOutput) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var from *localAvatar
	var self overlay.Update
	var last overlay.Payload // most go to many
	renew := func(messages []overlay.Message) {
		for _, msg := range messages {
			if msg.Payload == last {
				continue
			}
			if last = msg.Payload; from == nil || self.Origin != msg.From {
				if from = d.mu.locals[msg.From]; from == nil {
					continue
				}
				pose, _ := from.Pose()
				self = UpdateOf(from.Player(), pose, r.round)
			}
			overlay.Renew(last, self)
		}
	}
	renew(r.here)
	for _, messages := range r.messages {
		renew(*messages)
	}
	for _, u := range d.deliverHere(r.here) {
		r.steps = d.mu.remotes.applyUpdate(u, r.steps)
	}
}

// syncMachines creates a machine for each of these avatars, and removes the others. The lock is held.
func (d *Driver) syncMachines(avatars []Avatar) {
	here := make(map[overlay.ID]bool, len(avatars))
	for _, a := range avatars {
		pose, inRegion := a.Pose()
		id := numberOf(a.Player())
		if !inRegion || math.Abs(pose.X) > maxReach || math.Abs(pose.Z) > maxReach || here[id] {
			continue
		}
		here[id] = true
		if m := d.mu.locals[id]; m == nil || m.Avatar != a {
			d.mu.locals[id] = &localAvatar{Avatar: a, machine: d.machine(id), lastSent: pose}
		}
	}
	for id := range d.mu.locals {
		if !here[id] {
			delete(d.mu.locals, id)
		}
	}
}

func (d *Driver) machine(id overlay.ID) overlay.Machine {
	rng := rand.New(rand.NewPCG(uint64(id), uint64(d.mu.remotes.round)))
	if d.Overlay == Areacast {
		o := areacast.Improved(areacastCap)
		o.Vision, o.Interaction, o.RemoveAfter = d.vision, d.vision/4, silentRounds
		return areacast.New(id, o, rng)
	}
	c := psense.Improved(d.vision, 0)
	c.Introductions = false // regions introduce avatars to one another
	c.Compact = false       // full ids: short ones need a leader that assigns them
	c.Forget = silentRounds
	c.Falling = .05
	// Lists of receivers were most of the bytes, and regions introduce better than forwards and sensor nodes do.
	c.Forwarders, c.ListEvery, c.SensorEvery = 1, introduceRounds, introduceRounds
	return psense.New(c, id, rng)
}

// approach is how far two avatars can come nearer between two introductions, in blocks.
const approach = 2 * introduceRounds

// areacastCap is the maximum number of bytes of an avatar's machine in a round under areacast.
const areacastCap = 5 << 10

// around returns the avatars around a place, as known from the regions and the overlay. The lock is held.
func (d *Driver) around(self overlay.ID, at overlay.Point, now uint32) (near []overlay.Update) {
	for id, a := range d.mu.remotes.byID {
		u := overlay.Update{Origin: id, Round: max(a.regionRound, a.overlayRound), At: overlay.Point{X: a.body.Pose.X, Z: a.body.Pose.Z}}
		if id != self && a.shown && a.body.Gateway != "" && now-u.Round < silentRounds && u.At.Dist(at) <= d.vision+approach {
			near = append(near, u)
		}
	}
	slices.SortFunc(near, func(a, b overlay.Update) int { return int(int64(a.Origin) - int64(b.Origin)) })
	return near
}

// deliverHere puts messages for this gateway's avatars into their inboxes, which are read in the next round. It returns
// the places in them, so that sessions need not wait for that. The lock is held.
func (d *Driver) deliverHere(messages []overlay.Message) (places []overlay.Update) {
	var last overlay.Payload // most go to many
	for _, msg := range messages {
		m := d.mu.locals[msg.To]
		if m == nil {
			continue
		}
		if len(m.inbox) < overlay.MaxInbox {
			m.inbox = append(m.inbox, msg)
		}
		if msg.Payload != last {
			last = msg.Payload
			places = overlay.AppendPlaces(places, last)
		}
	}
	return places
}
