package overlay

import (
	"math/rand/v2"
	"slices"
)

// PSense is the pSense machine of one avatar (paper §3). Deviations are listed in docs/overlays.md.
type PSense struct {
	cfg     PSenseConfig
	id      ID
	rng     *rand.Rand
	round   uint32
	self    Update
	stepped bool // round and self are set by a step

	nodes     []node          // the near nodes and the sensor nodes, by ascending id
	ids       []ID            // their ids in the same order: a search in them touches few cache lines
	sensors   []int           // by sector: index in nodes, or -1
	delivered map[ID]delivery // the newest update of each origin that was delivered to the game; bounded by sweep
	lost      []Update        // at most maxLost nodes who were silent for long

	queue    []arrival // this round's positions, for forwarding
	requests []asked   // this round's sensor requests
	planned  plan
	falling  [mostInterval + 1]float64 // see fallingFrom
}

type delivery struct{ round, at uint32 } // the origin's round, and the machine's own

type arrival struct {
	from ID
	*Position
}

type asked struct {
	from ID
	*SensorRequest
}

// NewPSense returns the machine of an avatar. It panics if the parameters are invalid.
func NewPSense(cfg PSenseConfig, id ID, rng *rand.Rand) *PSense {
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	return &PSense{
		cfg: cfg, id: id, rng: rng, sensors: make([]int, cfg.Sectors), delivered: map[ID]delivery{}, falling: cfg.fallingFrom(),
	}
}

// ID implements Machine.
func (m *PSense) ID() ID { return m.id }

// Introduce implements Machine (§3.4: a new node must only know one node of the network).
func (m *PSense) Introduce(contacts []Update) {
	for _, u := range contacts {
		if !m.stepped { // before the first step the machine has no round of its own
			m.round = u.Round
		}
		m.note(u)
	}
}

// Step implements Machine.
func (m *PSense) Step(in *Input, out *Output) {
	last, stepped := m.self, m.stepped
	m.round, m.self, m.stepped = in.Round, in.Self(m.id), true
	if stepped && m.self.Velocity == (Point{}) && in.Round == last.Round+1 {
		m.self.Velocity = in.At.Sub(last.At) // without a given velocity, derive it from the last two positions
	}
	if m.cfg.Compact {
		m.self = quantise(m.self)
	}
	m.receive(in.Inbox, out)
	m.updateLists()

	first := len(out.Messages)
	m.ask(out)
	for _, q := range m.requests {
		m.suggest(out, q.from, q.SensorRequest)
	}
	m.report(out)
	used := 0
	for _, msg := range out.Messages[first:] { // sensor messages are never deleted
		used += msg.Bytes
	}
	m.plan()
	m.fit(used)
	m.ship(out)

	clear(m.queue)
	clear(m.requests)
	m.queue, m.requests = m.queue[:0], m.requests[:0]
	m.sweep()
}

// receive is step 1. A position that is a duplicate, or older than a previous one, is discarded.
func (m *PSense) receive(inbox []Message, out *Output) {
	for _, msg := range inbox[:min(len(inbox), MaxInbox)] {
		switch p := msg.Payload.(type) {
		case *Position:
			if m.deliver(p.Update, out) {
				m.note(p.Update)
				if p.Listed && len(p.Receivers) <= MaxReceivers && int(p.Hops) < m.cfg.Lifetime {
					m.queue = append(m.queue, arrival{msg.From, p})
				}
			}
		case *SensorRequest:
			if p.Self.Origin == msg.From && p.Self.Valid() {
				m.note(p.Self)
				m.requests = append(m.requests, asked{msg.From, p})
			}
		case *SensorSuggestion:
			m.note(p.Node)
		case *Introduction:
			if m.cfg.Introductions && msg.From == m.cfg.Leader {
				for _, u := range p.Updates {
					m.note(u)
				}
			}
		}
	}
}

// deliver passes an update to the game if it is new.
func (m *PSense) deliver(u Update, out *Output) bool {
	age := int32(m.round - u.Round)
	if u.Origin == m.id || u.Origin.Server() || !u.Valid() || age > int32(m.cfg.Forget) || age < -int32(m.cfg.Forget) {
		return false
	}
	last, ok := m.delivered[u.Origin]
	if ok && int32(u.Round-last.round) <= 0 || !ok && len(m.delivered) >= MaxKnown {
		return false
	}
	m.delivered[u.Origin] = delivery{u.Round, m.round}
	out.Learned = append(out.Learned, u)
	return true
}

// sweep occasionally removes entries of origins that have fallen silent. Updates older than Forget rounds are refused
// anyway.
func (m *PSense) sweep() {
	if (m.round+uint32(m.id))%32 != 0 {
		return
	}
	for id, d := range m.delivered {
		if int32(m.round-d.at) > 2*int32(m.cfg.Forget) {
			delete(m.delivered, id)
		}
	}
}

// report sends the avatar's position to the leader.
func (m *PSense) report(out *Output) {
	if m.cfg.Introductions && (m.round+uint32(m.id))%uint32(m.cfg.ReportEvery) == 0 {
		m.send(out, m.cfg.Leader, &Report{Update: m.outward(m.self), Compact: m.cfg.Compact})
	}
}

// outward returns an update as it is sent: the paper's have no velocity.
func (m *PSense) outward(u Update) Update {
	if !m.cfg.Compact {
		u.Velocity = Point{}
	}
	return u
}

// compactAt reports whether a position is sent in the short form to a receiver at this distance.
func (m *PSense) compactAt(dist float64) bool { return m.cfg.Compact && dist <= compactReach }

func (m *PSense) send(out *Output, to ID, p Payload) {
	out.Send(Message{From: m.id, To: to, Bytes: m.cfg.Header + PayloadBytes(m.id, p), Payload: p})
}

// Near appends the ids of the near nodes, sorted.
func (m *PSense) Near(ids []ID) []ID {
	for i := range m.nodes {
		if m.nodes[i].near {
			ids = append(ids, m.nodes[i].Origin)
		}
	}
	return ids
}

// Sensors appends the ids of the sensor nodes.
func (m *PSense) Sensors(ids []ID) []ID {
	for _, at := range m.sensors {
		if at >= 0 && at < len(m.nodes) {
			ids = append(ids, m.nodes[at].Origin)
		}
	}
	return slices.Clip(ids)
}
