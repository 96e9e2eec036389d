package gameserver

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/overlay"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
	"github.com/voxelpopuli/voxeld/world"
)

// Under an overlay other than relay, gateways send one another the moves of their players without the leaders of regions
// (docs/overlays.md). Each avatar of a session here has a machine of package overlay, which the goroutine of p2p steps once a
// round; what the machines send to avatars of another gateway travels as one packet. Regions still send all places a few times a
// second: that introduces avatars to one another, and is authoritative for all without updates over the overlay.

// Overlays: how movement travels between gateways.
const (
	OverlayRelay    = "relay" // by the leaders of regions
	OverlayPSense   = "psense"
	OverlayAreacast = "areacast"
)

// Overlays are the values of Options.Overlay.
var Overlays = []string{OverlayRelay, OverlayPSense, OverlayAreacast}

const (
	// round is the length of a round. Rounds are counted by the wall clock, so that all gateways count alike.
	round = region.TickEvery
	// silentRounds is the number of rounds without an update of an avatar after which the region's state is used again; gateways'
	// clocks may differ by as much.
	silentRounds = 40
	// relayRounds is the interval, in rounds, of updates to a region about a player who has moved within a chunk.
	relayRounds = 5
	// introduceRounds is the interval, in rounds, at which a machine is given all avatars around it.
	introduceRounds = 8
	// quietRounds is the number of rounds without an update of an avatar after which the region's state is used again if it is
	// newer by as many: the avatar has left the overlay's range. Regions are slower, but not by so much.
	quietRounds = 12
	// p2pVision is the range of updates between avatars, in blocks: sessions get those of avatars farther away only as often as
	// regions send them.
	p2pVision = 48
	// p2pReach is the maximum distance from the origin, in blocks: farther out the places in packets are too coarse, and
	// movement goes through regions.
	p2pReach = 1 << 17
	// maxSpeedFactor bounds the apparent speed of other avatars, as a multiple of the fastest one of a player: updates queue up
	// on the way.
	maxSpeedFactor = 2
)

// p2pDriver exchanges the movement of avatars with other gateways. The lock is a leaf: it may be taken under a subscription's.
type p2pDriver struct {
	g        *Gateway
	overlay  string
	vision   float64 // blocks
	received chan peerPlaces
	routes   map[string]*[]overlay.Message // by gateway, of the newest turn; owned and reused by the goroutine that takes turns

	mu struct {
		sync.Mutex
		round   uint32
		locals  map[overlay.ID]*localAvatar
		remotes map[overlay.ID]*remoteAvatar
		queues  map[string]*peerQueue // by peer
	}
}

// localAvatar is an avatar of this gateway.
type localAvatar struct {
	s        *session
	machine  overlay.Machine
	inbox    []overlay.Message
	at       overlay.Point
	lastSent motion.Pose // the pose last sent to the region
}

// remoteAvatar is an avatar of another gateway that is or was in view of a session here.
type remoteAvatar struct {
	body         nodemsg.Body // as shown
	shown        bool         // it is in the mirror
	chunk        grid.ChunkPos
	overlayRound uint32       // the round of the newest update over the overlay
	fresh        bool         // overlayRound is recent: places sent by the region are older
	regionBody   nodemsg.Body // as sent by the region
	inRegion     bool         // the region has it
	regionRound  uint32       // the round of the region's newest update

	route  *[]overlay.Message // to its gateway, in the round routed
	routed uint32
}

func newP2PDriver(g *Gateway, kind string) *p2pDriver {
	d := &p2pDriver{g: g, overlay: kind, vision: float64(min((g.MaxView+1)*grid.ChunkSize*3/2, p2pVision))}
	d.received, d.routes = make(chan peerPlaces, 16), make(map[string]*[]overlay.Message)
	d.mu.locals = make(map[overlay.ID]*localAvatar)
	d.mu.remotes = make(map[overlay.ID]*remoteAvatar)
	d.mu.queues = make(map[string]*peerQueue)
	return d
}

// enabled reports whether gateways send one another movement at all.
func (d *p2pDriver) enabled() bool { return d.overlay == OverlayPSense || d.overlay == OverlayAreacast }

// gatewayID returns the gateway that regions are sent for this gateway's players.
func (d *p2pDriver) gatewayID() string {
	if d.enabled() {
		return d.g.Peer
	}
	return ""
}

// carries reports whether the overlay sends the moves of the session's player; then it updates the region too.
func (d *p2pDriver) carries(s *session) bool {
	if !d.enabled() {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	m := d.mu.locals[numberOf(s.body.Player)]
	return m != nil && m.s == s
}

// numberOf returns a player's number in the overlay: the same at all gateways. If two players nearby have the same number, the
// second one's movement goes through regions.
func numberOf(id player.ID) overlay.ID {
	return overlay.ID(binary.BigEndian.Uint32(id[:])) &^ overlay.FirstServer
}

// roundOutput is the output of a round. It is valid until the next round.
type roundOutput struct {
	round    uint32
	messages map[string]*[]overlay.Message // by gateway; some may be empty
	here     []overlay.Message             // to avatars of this gateway
	steps    []relocation                  // of avatars in view here
	moved    []*session                    // whose regions need an update
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
func (d *p2pDriver) step(sessions []*session, now uint32) roundOutput {
	d.mu.Lock()
	defer d.mu.Unlock()
	now = max(now, d.mu.round+1)
	d.mu.round = now
	d.syncMachines(sessions)
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
		pose := m.s.currentPose()
		m.at = overlay.Point{X: pose.X, Z: pose.Z}
		if (now+uint32(id))%introduceRounds == 0 || len(m.inbox) == 0 {
			m.machine.Introduce(d.around(id, m.at, now))
		}
		out.Reset()
		m.machine.Step(&overlay.Input{Round: now, At: m.at, Body: bodyOf(pose), Inbox: m.inbox}, &out)
		clear(m.inbox)
		m.inbox = m.inbox[:0]
		for _, msg := range out.Messages {
			if d.mu.locals[msg.To] != nil {
				r.here = append(r.here, msg)
			} else if a := d.mu.remotes[msg.To]; a != nil && a.body.Gateway != "" {
				if a.routed != now {
					a.routed, a.route = now, r.to(a.body.Gateway)
				}
				*a.route = append(*a.route, msg)
			}
		}
		if m.lastSent != pose && (now+uint32(id))%relayRounds == 0 {
			m.lastSent = pose
			r.moved = append(r.moved, m.s)
		}
	}
	r.steps = d.restoreSilent(now, r.steps)
	return r
}

// renew sets the current places of avatars in their outgoing messages, and delivers those for avatars here.
func (d *p2pDriver) renew(r *roundOutput) {
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
				pose := from.s.currentPose()
				self = overlay.Update{Origin: msg.From, Round: r.round, At: overlay.Point{X: pose.X, Z: pose.Z}, Body: bodyOf(pose)}
			}
			overlay.Renew(last, self)
		}
	}
	renew(r.here)
	for _, messages := range r.messages {
		renew(*messages)
	}
	for _, u := range d.deliverHere(r.here) {
		r.steps = d.applyUpdate(u, r.round, r.steps)
	}
}

// syncMachines creates a machine for each session's avatar, and removes those of ended sessions. The lock is held.
func (d *p2pDriver) syncMachines(sessions []*session) {
	here := make(map[overlay.ID]bool, len(sessions))
	for _, s := range sessions {
		pose, id := s.currentPose(), numberOf(s.body.Player)
		if !s.placed() || s.bodySubShared.Load() == nil || math.Abs(pose.X) > p2pReach || math.Abs(pose.Z) > p2pReach || here[id] {
			continue
		}
		here[id] = true
		if m := d.mu.locals[id]; m == nil || m.s != s {
			d.mu.locals[id] = &localAvatar{s: s, machine: d.machine(id), lastSent: pose}
		}
	}
	for id := range d.mu.locals {
		if !here[id] {
			delete(d.mu.locals, id)
		}
	}
}

func (d *p2pDriver) machine(id overlay.ID) overlay.Machine {
	rng := rand.New(rand.NewPCG(uint64(id), uint64(d.mu.round)))
	if d.overlay == OverlayAreacast {
		o := overlay.BetterAreacast(areacastCap)
		o.Vision, o.Interaction, o.RemoveAfter = d.vision, d.vision/4, silentRounds
		return overlay.NewAreacast(id, o, rng)
	}
	c := overlay.ImprovedPSense(d.vision, 0)
	c.Introductions = false // regions introduce avatars to one another
	c.Compact = false       // full ids: short ones need a leader that assigns them
	c.Forget = silentRounds
	c.Falling = .05
	// Lists of receivers were most of the bytes, and regions introduce better than forwards and sensor nodes do.
	c.Forwarders, c.ListEvery, c.SensorEvery = 1, introduceRounds, introduceRounds
	return overlay.NewPSense(c, id, rng)
}

// approach is how far two avatars can come nearer between two introductions, in blocks.
const approach = 2 * introduceRounds

// areacastCap is the maximum number of bytes of an avatar's machine in a round under areacast.
const areacastCap = 5 << 10

// around returns the avatars around a place, as known from the regions and the overlay. The lock is held.
func (d *p2pDriver) around(self overlay.ID, at overlay.Point, now uint32) (near []overlay.Update) {
	for id, a := range d.mu.remotes {
		u := overlay.Update{Origin: id, Round: max(a.regionRound, a.overlayRound), At: overlay.Point{X: a.body.Pose.X, Z: a.body.Pose.Z}}
		if id != self && a.shown && a.body.Gateway != "" && now-u.Round < silentRounds && u.At.Dist(at) <= d.vision+approach {
			near = append(near, u)
		}
	}
	slices.SortFunc(near, func(a, b overlay.Update) int { return int(int64(a.Origin) - int64(b.Origin)) })
	return near
}

// deliverHere puts messages for this gateway's avatars into their inboxes, which are read in the next round. It returns the
// places in them, so that sessions need not wait for that. The lock is held.
func (d *p2pDriver) deliverHere(messages []overlay.Message) (places []overlay.Update) {
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

// receive applies a packet of another gateway, and returns the places in it.
func (d *p2pDriver) receive(peer string, packet []byte) (places []overlay.Update, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	messages, err := overlay.ReadPacket(packet, func(to overlay.ID) (overlay.Reference, bool) {
		m := d.mu.locals[to]
		if m == nil {
			return overlay.Reference{}, false
		}
		return overlay.Reference{At: m.at, Round: d.mu.round}, true
	})
	d.g.metrics.packetsIn.Inc()
	d.g.metrics.p2pIn.Add(float64(len(packet)))
	places = d.deliverHere(messages)
	if err != nil {
		return places, fmt.Errorf("packet of %s: %w", peer, err)
	}
	return places, nil
}

// bodyOf and poseOf pack the parts of a pose that the overlay does not handle: height in 1/32 blocks, yaw and pitch as in tick
// frames.
func bodyOf(p motion.Pose) uint64 {
	at := sessionmsg.PlaceOf(world.ChunkOf(p), p)
	return 1 | uint64(at.Yaw)<<1 | uint64(uint8(at.Pitch))<<9 | uint64(at.Y)<<17
}

func poseOf(u overlay.Update) motion.Pose {
	yaw, pitch, y := uint8(u.Body>>1), int8(uint8(u.Body>>9)), uint16(u.Body>>17)
	p := sessionmsg.Place{Y: y, Yaw: yaw, Pitch: pitch}.Pose(grid.ChunkPos{})
	p.X, p.Z = u.At.X, u.At.Z
	return p
}
