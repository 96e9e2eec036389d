package sim

import (
	"cmp"
	"slices"

	"github.com/voxelpopuli/voxeld/overlay"
)

// Relay is VoxelPopuli's algorithm for one avatar (dissertation §3.2.2): it reports to the leader of its region and
// receives updates from it. An update is two hops old on arrival.
type Relay struct {
	id     overlay.ID
	leader overlay.ID
	header int
	newest map[overlay.ID]delivery
}

// delivery is the newest update of an avatar: its origin's round, and the machine's own.
type delivery struct{ round, at uint32 }

// NewRelay returns the machine of an avatar in the leader's region. header is the overhead of a packet in bytes.
func NewRelay(id, leader overlay.ID, header int) *Relay {
	return &Relay{id: id, leader: leader, header: header, newest: map[overlay.ID]delivery{}}
}

// ID implements Machine.
func (m *Relay) ID() overlay.ID { return m.id }

// Introduce implements Machine. It does nothing, because the leader has all avatars.
func (m *Relay) Introduce([]overlay.Update) {}

// Follow changes the leader: the avatar entered another region, or the region has a new leader.
func (m *Relay) Follow(leader overlay.ID) { m.leader = leader }

// relayForget is the number of rounds after which a silent avatar is dropped.
const relayForget = 20

// Step implements Machine.
func (m *Relay) Step(in *overlay.Input, out *overlay.Output) {
	for _, msg := range in.Inbox[:min(len(in.Inbox), overlay.MaxInbox)] {
		crowd, ok := msg.Payload.(*overlay.Introduction)
		if !ok || msg.From != m.leader {
			continue
		}
		for _, u := range crowd.Updates {
			last, known := m.newest[u.Origin]
			if u.Origin == m.id || !u.Valid() || known && int32(u.Round-last.round) <= 0 || !known && len(m.newest) >= overlay.MaxKnown {
				continue
			}
			m.newest[u.Origin] = delivery{u.Round, in.Round}
			out.Learned = append(out.Learned, u)
		}
	}
	if in.Round%relayForget == 0 {
		for id, d := range m.newest {
			if in.Round-d.at > relayForget {
				delete(m.newest, id)
			}
		}
	}
	p := &overlay.Report{Update: in.Self(m.id)}
	out.Send(overlay.Message{From: m.id, To: m.leader, Bytes: m.header + overlay.PayloadBytes(m.id, p), Payload: p})
}

// RelayLeader is the part of a region's leader that relays reports: each report goes to all avatars in vision range in
// the same round, in one packet per receiver. It has no cap.
type RelayLeader struct {
	id     overlay.ID
	vision float64
	header int
	here   avatars
}

// NewRelayLeader returns a leader that relays over vision blocks.
func NewRelayLeader(id overlay.ID, vision float64, header int) *RelayLeader {
	return &RelayLeader{id: id, vision: vision, header: header}
}

// ID implements Machine.
func (m *RelayLeader) ID() overlay.ID { return m.id }

// Introduce implements Machine. It does nothing, because avatars report by themselves.
func (m *RelayLeader) Introduce([]overlay.Update) {}

// Step implements Machine.
func (m *RelayLeader) Step(in *overlay.Input, out *overlay.Output) {
	fresh := m.here.update(in, relayForget)
	crowds := make([][]overlay.Update, len(m.here.updates))
	m.here.pairs(in.Round, func(i, j int, dist float64) {
		if dist > m.vision {
			return
		}
		if fresh[i] {
			crowds[j] = append(crowds[j], m.here.updates[i])
		}
		if fresh[j] {
			crowds[i] = append(crowds[i], m.here.updates[j])
		}
	}, m.vision)
	for i, crowd := range crowds {
		for part := range slices.Chunk(crowd, overlay.MaxUpdates) {
			p := &overlay.Introduction{Updates: part}
			out.Send(overlay.Message{From: m.id, To: m.here.updates[i].Origin, Bytes: m.header + overlay.PayloadBytes(m.id, p), Payload: p})
		}
	}
}

// avatars is a leader's list of the avatars of its region: their newest reports, sorted by X.
type avatars struct{ updates []overlay.Update }

// maxAvatars bounds the avatars of a region.
const maxAvatars = 1 << 16

// update applies the reports, removes avatars without a report for forget rounds, and returns which avatars are new in
// this round.
func (c *avatars) update(in *overlay.Input, forget int) (fresh []bool) {
	reports := map[overlay.ID]overlay.Update{}
	for _, msg := range in.Inbox {
		r, ok := msg.Payload.(*overlay.Report)
		if !ok || r.Update.Origin != msg.From || !r.Update.Valid() {
			continue
		}
		if old, ok := reports[msg.From]; !ok || r.Update.Newer(old) {
			reports[msg.From] = r.Update
		}
	}
	kept := c.updates[:0]
	isFresh := map[overlay.ID]bool{}
	for _, u := range c.updates {
		if n, ok := reports[u.Origin]; ok {
			delete(reports, u.Origin)
			if n.Newer(u) {
				u = n
				isFresh[u.Origin] = true
			}
		}
		if int32(in.Round-u.Round) <= int32(forget) {
			kept = append(kept, u)
		}
	}
	for _, u := range reports {
		if int32(in.Round-u.Round) <= int32(forget) && len(kept) < maxAvatars {
			kept = append(kept, u)
			isFresh[u.Origin] = true
		}
	}
	c.updates = kept
	slices.SortFunc(c.updates, func(a, b overlay.Update) int {
		return cmp.Or(cmp.Compare(a.At.X, b.At.X), cmp.Compare(a.Origin, b.Origin))
	})
	fresh = make([]bool, len(c.updates))
	for i, u := range c.updates {
		fresh[i] = isFresh[u.Origin]
	}
	return fresh
}

// mostDrift bounds the extrapolated distance of an avatar from its report, in blocks.
const mostDrift = 64

// pairs calls pair for all pairs of avatars whose extrapolated distance is at most most blocks.
func (c *avatars) pairs(round uint32, pair func(i, j int, dist float64), most float64) {
	now := make([]overlay.Point, len(c.updates))
	for i := range c.updates {
		now[i] = c.updates[i].Ahead(round)
	}
	for i := range now {
		for j := i + 1; j < len(now) && c.updates[j].At.X-c.updates[i].At.X <= most+2*mostDrift; j++ {
			if d := now[i].Dist(now[j]); d <= most {
				pair(i, j, d)
			}
		}
	}
}
