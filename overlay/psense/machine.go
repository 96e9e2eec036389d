// Package psense is the machine of the paper "A Dynamic Localized Peer-to-Peer Overlay Network for Massively
// Multiplayer Online Games" (2008). Comments cite its sections and steps. Each avatar sends its position to the near
// nodes in its vision range and to one sensor node for each sector outside of it; receivers forward it to those whom it
// should have reached.
//
// A Machine belongs to one goroutine (see package overlay). gameserver and research/sim may import the package.
package psense

import (
	"math/rand/v2"

	"github.com/voxelpopuli/voxeld/overlay"
)

// Machine is the pSense machine of one avatar (paper §3). Deviations are listed in docs/adr/0022.
type Machine struct {
	cfg     Options
	id      overlay.ID
	rng     *rand.Rand
	round   uint32
	self    overlay.Update
	stepped bool // round and self are set by a step

	nodes     []node                  // the near nodes and the sensor nodes, by ascending id
	ids       []overlay.ID            // their ids in the same order: a search in them touches few cache lines
	sensors   []int                   // by sector: index in nodes, or -1
	delivered map[overlay.ID]delivery // the newest update of each origin that was delivered to the game; bounded by sweep
	lost      []overlay.Update        // at most maxLost nodes who were silent for long

	queue    []arrival // this round's positions, for forwarding
	requests []asked   // this round's sensor requests
	planned  plan
	falling  [mostInterval + 1]float64 // see fallingFrom
}

type delivery struct{ round, at uint32 } // the origin's round, and the machine's own

type arrival struct {
	from overlay.ID
	*overlay.Position
}

type asked struct {
	from overlay.ID
	*overlay.SensorRequest
}

// New returns the machine of an avatar. It panics if the parameters are invalid.
func New(cfg Options, id overlay.ID, rng *rand.Rand) *Machine {
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	return &Machine{
		cfg: cfg, id: id, rng: rng, sensors: make([]int, cfg.Sectors), delivered: map[overlay.ID]delivery{}, falling: cfg.fallingFrom(),
	}
}

// ID implements Machine.
func (m *Machine) ID() overlay.ID { return m.id }

// outward returns an update as it is sent: the paper's have no velocity.
func (m *Machine) outward(u overlay.Update) overlay.Update {
	if !m.cfg.Compact {
		u.Velocity = overlay.Point{}
	}
	return u
}

// compactAt reports whether a position is sent in the short form to a receiver at this distance.
func (m *Machine) compactAt(dist float64) bool { return m.cfg.Compact && dist <= overlay.CompactReach }

func (m *Machine) send(out *overlay.Output, to overlay.ID, p overlay.Payload) {
	out.Send(overlay.Message{From: m.id, To: to, Bytes: m.cfg.Header + overlay.PayloadBytes(m.id, p), Payload: p})
}

// node is another avatar known to a machine.
type node struct {
	overlay.Update               // the newest known one, from whatever source
	now            overlay.Point // its extrapolated position in this round
	dist           float64
	reach          float64 // distance up to which it is near
	near           bool
	sector         int    // sector of a node that is not near
	sent           uint32 // round of the last own update to it
	wasSent        bool
}

// plan is a round's outgoing queue of positions (step 2b), before the cap.
type plan struct {
	batches []batch
	entries []entry
	resting []overlay.ID // near nodes that get no own update in this round because they got one recently
	reached []bool       // scratch space of forward: by index in nodes
}

// batch is one update on its way to several receivers.
type batch struct {
	update    overlay.Update
	hops      uint8 // on arrival
	own       bool
	prior     []overlay.ID // receivers that have the update already or need not get it; shared with the received payload, and not changed
	short     bool         // prior and the added ids are short
	kept      int          // number of entries
	listed    int          // number of entries that carry the receiver list
	receivers int          // number of entries in the receiver list
	far       int          // number of entries too far away for the short form
}

// entry is one planned message.
type entry struct {
	batch, to int // indexes in batches and nodes
	list      bool
	receiver  bool    // is in the receiver list
	far       bool    // is too far away for the short form
	value     float64 // with Stalest: the value of the update to the receiver
}
