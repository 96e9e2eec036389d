package overlay

import "math/rand/v2"

// Areacast is the machine of the paper "Area-Based Gossip Multicast". Once per round it sends one gossip, its own position
// and updates of other players, to players from three views: those in interaction range (IR), those in vision
// range (VR), and others (Inf).
//
//	§2.2 "whenever a new gossip message is received"       receive   areacast_receive.go
//	§2.2 the update id list, delivery of what is newest    contact   areacast_receive.go
//	§2.2 views, "at the end of a round"                    refresh   areacast_views.go
//	§2.2 the position update buffer                        buffer    areacast_buffer.go
//	§2.2 "sent to random nodes from the three views"       gossip    areacast_choose.go
//	not in the paper (AreacastSwitches)                              areacast_better.go
//
// Deviations from the paper: an update's sequence number is its origin's round; fanout that a view cannot fill spills
// into the next wider one (the paper is silent, its figures need it); the update id list is bounded by MaxKnown, and
// drops players who were silent longest first; RemindEvery.
type Areacast struct {
	id   ID
	opt  AreacastOptions
	rng  *rand.Rand
	now  uint32 // the machine's own round
	at   Point
	step int // number of steps; unlike now it starts at 0

	contacts map[ID]*contact
	order    []*contact // the same contacts in an order independent of the map's; contact.slot is the index
	views    [viewInf + 1][]*contact
	dormant  []*contact // contacts outside all views; filled only if reminders are on
	buffer   buffer

	met  []Update // introduced since the last step
	rank []target // scratch space of ranked
	left int      // bytes that may still be sent in this round, if there is a cap
}

// NewAreacast returns the machine of a player without contacts. The options must be valid. Nothing else may draw from
// rng.
func NewAreacast(id ID, opt AreacastOptions, rng *rand.Rand) *Areacast {
	if err := opt.Validate(); err != nil {
		panic(err) // the caller must validate
	}
	return &Areacast{id: id, opt: opt, rng: rng, contacts: map[ID]*contact{}}
}

// ID implements Machine.
func (m *Areacast) ID() ID { return m.id }

// Introduce implements Machine: the contacts enter a view at the next step, and must send an update within RemoveAfter
// rounds.
func (m *Areacast) Introduce(contacts []Update) {
	m.met = append(m.met, contacts[:min(len(contacts), MaxKnown-min(len(m.met), MaxKnown))]...)
}

// Step implements Machine.
func (m *Areacast) Step(in *Input, out *Output) {
	m.now, m.at = in.Round, in.At
	for _, u := range m.met {
		m.meet(u)
	}
	m.met = m.met[:0]
	for i := range in.Inbox[:min(len(in.Inbox), MaxInbox)] {
		m.receive(&in.Inbox[i], out)
	}
	m.buffer.drop(m.opt.MaxPositionAge)
	m.trim()
	m.refresh()

	self := in.Self(m.id)
	if m.opt.Better.Compact {
		self = self.grained()
	}
	m.left = m.opt.Better.Cap
	m.report(self, out)
	m.gossip(self, out)
	if m.opt.Aging == AgeByRound {
		m.buffer.age(len(m.buffer.of))
	}
	m.step++
}

// Views returns the number of players in the views IR, VR and Inf.
func (m *Areacast) Views() (ir, vr, inf int) {
	return len(m.views[viewIR]), len(m.views[viewVR]), len(m.views[viewInf])
}

// Buffered returns the number of updates that wait to be forwarded.
func (m *Areacast) Buffered() int { return len(m.buffer.of) }

// Known returns the length of the update id list.
func (m *Areacast) Known() int { return len(m.order) }
