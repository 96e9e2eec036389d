package gameserver

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/overlay"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/world"
)

// With another overlay than relay, gateways tell one another how their players move, without the leaders of regions (DESIGN
// §8). Each avatar of a session here has a machine of package overlay, which the swarm's goroutine steps once a round; what the machines
// have for avatars of another gateway travels as one packet. Regions still say who is where, a few times a second: that introduces
// avatars to one another, and is the truth for all of whom the overlay tells nothing.

// Overlays: who tells whom about movement.
const (
	OverlayRelay    = "relay" // the leaders of regions
	OverlayPSense   = "psense"
	OverlayAreacast = "areacast"
)

// Overlays are those that Options.Overlay may name.
var Overlays = []string{OverlayRelay, OverlayPSense, OverlayAreacast}

const (
	// round is how long a round of the machines is. Rounds are counted by the wall clock, so that all gateways count alike.
	round = region.TickEvery
	// silentRounds is after how many rounds without news of an avatar the region's word counts again; clocks of gateways may
	// be apart by as much.
	silentRounds = 40
	// relayRounds is every how many rounds a region is told where a player is, who has moved within a chunk.
	relayRounds = 5
	// introduceRounds is every how many rounds a machine is told of everybody around.
	introduceRounds = 8
	// quietRounds is after how many rounds without news of an avatar the region's word counts again if it is newer by as many:
	// he has gone out of the overlay's range. Regions are slower, but not by so much.
	quietRounds = 12
	// swarmVision is how far avatars tell one another at most, in blocks: of those farther away sessions are told no more often than
	// regions tell.
	swarmVision = 48
	// swarmReach is how far from the origin avatars may be, in blocks: farther out the packets' places are too coarse, and movement
	// goes through regions.
	swarmReach = 1 << 17
	// maxStrides is how many times a player's fastest pace others may seem to have; news wait for one another on the way.
	maxStrides = 2
)

// swarm is the movement of this gateway's avatars among gateways. The lock is a leaf: it may be taken under a feed's.
type swarm struct {
	g       *Gateway
	overlay string
	vision  float64 // blocks
	parcels chan parcel
	routes  map[string]*[]overlay.Message // by gateway, of the newest turn; they belong to who takes turns, who uses them again

	mu struct {
		sync.Mutex
		round   uint32
		members map[overlay.ID]*member
		known   map[overlay.ID]*acquaintance
		lines   map[string]*line // by peer
	}
}

// member is an avatar of this gateway.
type member struct {
	s       *session
	machine overlay.Machine
	inbox   []overlay.Message
	at      overlay.Point
	told    wire.Pose // to the region
}

// acquaintance is an avatar that somebody here sees, or has seen.
type acquaintance struct {
	body   wire.Body // as it is shown
	shown  bool      // it is in the mirror
	chunk  grid.ChunkPos
	heard  uint32    // the round of the newest news over the overlay
	lively bool      // heard is not long ago: what the region tells of places is older
	truth  wire.Body // as the region has it
	there  bool      // the region has it
	said   uint32    // the round in which it said so

	route  *[]overlay.Message // to its gateway, in the round routed
	routed uint32
}

func newSwarm(g *Gateway, kind string) *swarm {
	w := &swarm{g: g, overlay: kind, vision: float64(min((g.MaxView+1)*grid.ChunkSize*3/2, swarmVision))}
	w.parcels, w.routes = make(chan parcel, 16), make(map[string]*[]overlay.Message)
	w.mu.members = make(map[overlay.ID]*member)
	w.mu.known = make(map[overlay.ID]*acquaintance)
	w.mu.lines = make(map[string]*line)
	return w
}

// on tells whether gateways tell one another of movement at all.
func (w *swarm) on() bool { return w.overlay == OverlayPSense || w.overlay == OverlayAreacast }

// home is what regions are told as the gateway of this gateway's players.
func (w *swarm) home() string {
	if w.on() {
		return w.g.Peer
	}
	return ""
}

// tells tells whether the overlay tells how the session's player moves; then it tells his region too.
func (w *swarm) tells(s *session) bool {
	if !w.on() {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.mu.members[numberOf(s.body.Player)]
	return m != nil && m.s == s
}

// numberOf is a player's number in the overlay: the same at all gateways. Should two players around have the same, the second one's
// movement goes through regions.
func numberOf(id player.ID) overlay.ID {
	return overlay.ID(binary.BigEndian.Uint32(id[:])) &^ overlay.FirstServer
}

// turn is what comes out of a round. It holds until the next one is taken.
type turn struct {
	round    uint32
	messages map[string]*[]overlay.Message // by gateway; some may be empty
	here     []overlay.Message             // to avatars of this gateway
	steps    []displacement                // of those who are seen here
	moved    []*session                    // whose regions are to be told
}

// to is where messages for a gateway gather.
func (r *turn) to(peer string) *[]overlay.Message {
	to := r.messages[peer]
	if to == nil {
		to = new([]overlay.Message)
		r.messages[peer] = to
	}
	return to
}

// turn steps all machines.
func (w *swarm) turn(sessions []*session, now uint32) turn {
	w.mu.Lock()
	defer w.mu.Unlock()
	now = max(now, w.mu.round+1)
	w.mu.round = now
	w.enrol(sessions)
	r := turn{round: now, messages: w.routes}
	for peer, messages := range w.routes {
		if len(*messages) == 0 {
			delete(w.routes, peer)
		}
		clear(*messages)
		*messages = (*messages)[:0]
	}
	var out overlay.Output
	for id, m := range w.mu.members {
		pose := m.s.where()
		m.at = overlay.Point{X: pose.X, Z: pose.Z}
		if (now+uint32(id))%introduceRounds == 0 || len(m.inbox) == 0 {
			m.machine.Introduce(w.around(id, m.at, now))
		}
		out.Reset()
		m.machine.Step(&overlay.Input{Round: now, At: m.at, Body: bodyOf(pose), Inbox: m.inbox}, &out)
		clear(m.inbox)
		m.inbox = m.inbox[:0]
		for _, msg := range out.Messages {
			if w.mu.members[msg.To] != nil {
				r.here = append(r.here, msg)
			} else if a := w.mu.known[msg.To]; a != nil && a.body.Gateway != "" {
				if a.routed != now {
					a.routed, a.route = now, r.to(a.body.Gateway)
				}
				*a.route = append(*a.route, msg)
			}
		}
		if m.told != pose && (now+uint32(id))%relayRounds == 0 {
			m.told = pose
			r.moved = append(r.moved, m.s)
		}
	}
	r.steps = w.silence(now, r.steps)
	return r
}

// renew puts where avatars are now into what they are about to tell, and delivers what is for others here.
func (w *swarm) renew(r *turn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var from *member
	var self overlay.Update
	var last overlay.Payload // most go to many
	renew := func(messages []overlay.Message) {
		for _, msg := range messages {
			if msg.Payload == last {
				continue
			}
			if last = msg.Payload; from == nil || self.Origin != msg.From {
				if from = w.mu.members[msg.From]; from == nil {
					continue
				}
				pose := from.s.where()
				self = overlay.Update{Origin: msg.From, Round: r.round, At: overlay.Point{X: pose.X, Z: pose.Z}, Body: bodyOf(pose)}
			}
			overlay.Renew(last, self)
		}
	}
	renew(r.here)
	for _, messages := range r.messages {
		renew(*messages)
	}
	for _, u := range w.deliverHere(r.here) {
		r.steps = w.learn(u, r.round, r.steps)
	}
}

// enrol gives each session's avatar a machine, and takes those away whose sessions have ended. The lock is held.
func (w *swarm) enrol(sessions []*session) {
	here := make(map[overlay.ID]bool, len(sessions))
	for _, s := range sessions {
		pose, id := s.where(), numberOf(s.body.Player)
		if !s.placed() || s.home.Load() == nil || math.Abs(pose.X) > swarmReach || math.Abs(pose.Z) > swarmReach || here[id] {
			continue
		}
		here[id] = true
		if m := w.mu.members[id]; m == nil || m.s != s {
			w.mu.members[id] = &member{s: s, machine: w.machine(id), told: pose}
		}
	}
	for id := range w.mu.members {
		if !here[id] {
			delete(w.mu.members, id)
		}
	}
}

func (w *swarm) machine(id overlay.ID) overlay.Machine {
	rng := rand.New(rand.NewPCG(uint64(id), uint64(w.mu.round)))
	if w.overlay == OverlayAreacast {
		o := overlay.BetterAreacast(areacastCap)
		o.Vision, o.Interaction, o.RemoveAfter = w.vision, w.vision/4, silentRounds
		return overlay.NewAreacast(id, o, rng)
	}
	c := overlay.ImprovedPSense(w.vision, 0)
	c.Introductions = false // regions introduce: everybody knows from them who is around
	c.Compact = false       // places are told in full: short ids need a leader who gives them
	c.Forget = silentRounds
	c.Falling = .05
	// Lists of receivers were most of the bytes, and regions introduce better than forwards and sensor nodes do.
	c.Forwarders, c.ListEvery, c.SensorEvery = 1, introduceRounds, introduceRounds
	return overlay.NewPSense(c, id, rng)
}

// approach is how far two avatars can come nearer between two introductions, in blocks.
const approach = 2 * introduceRounds

// areacastCap is how many bytes an avatar's machine may send in a round under areacast.
const areacastCap = 5 << 10

// around gives whom the regions and the overlay tell of around a place. The lock is held.
func (w *swarm) around(self overlay.ID, at overlay.Point, now uint32) (near []overlay.Update) {
	for id, a := range w.mu.known {
		u := overlay.Update{Origin: id, Round: max(a.said, a.heard), At: overlay.Point{X: a.body.Pose.X, Z: a.body.Pose.Z}}
		if id != self && a.shown && a.body.Gateway != "" && now-u.Round < silentRounds && u.At.Dist(at) <= w.vision+approach {
			near = append(near, u)
		}
	}
	slices.SortFunc(near, func(a, b overlay.Update) int { return int(int64(a.Origin) - int64(b.Origin)) })
	return near
}

// deliverHere puts messages for this gateway's avatars into their inboxes: they take them in the next round. What they tell of places
// is given back: sessions need not wait for that. The lock is held.
func (w *swarm) deliverHere(messages []overlay.Message) (places []overlay.Update) {
	var last overlay.Payload // most go to many
	for _, msg := range messages {
		m := w.mu.members[msg.To]
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

// receive takes in a packet of another gateway, and gives what it tells of places.
func (w *swarm) receive(peer string, packet []byte) (places []overlay.Update, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	messages, err := overlay.ReadPacket(packet, func(to overlay.ID) (overlay.Reference, bool) {
		m := w.mu.members[to]
		if m == nil {
			return overlay.Reference{}, false
		}
		return overlay.Reference{At: m.at, Round: w.mu.round}, true
	})
	w.g.metrics.packetsIn.Inc()
	w.g.metrics.swarmIn.Add(float64(len(packet)))
	places = w.deliverHere(messages)
	if err != nil {
		return places, fmt.Errorf("packet of %s: %w", peer, err)
	}
	return places, nil
}

// bodyOf and poseOf pack what the overlay does not know of a pose: height in 1/32 blocks, yaw and pitch as tick frames have them.
func bodyOf(p wire.Pose) uint64 {
	at := wire.PlaceOf(world.ChunkOf(p), p)
	return 1 | uint64(at.Yaw)<<1 | uint64(uint8(at.Pitch))<<9 | uint64(at.Y)<<17
}

func poseOf(u overlay.Update) wire.Pose {
	yaw, pitch, y := uint8(u.Body>>1), int8(uint8(u.Body>>9)), uint16(u.Body>>17)
	p := wire.Place{Y: y, Yaw: yaw, Pitch: pitch}.Pose(grid.ChunkPos{})
	p.X, p.Z = u.At.X, u.At.Z
	return p
}
