package overlay

import (
	"cmp"
	"slices"
)

// Relay is VoxelPopuli's algorithm for one avatar (dissertation §3.2.2): it reports to the leader of its region and
// receives updates from it. An update is two hops old on arrival.
type Relay struct {
	id     ID
	leader ID
	header int
	newest map[ID]delivery
}

// NewRelay returns the machine of an avatar in the leader's region. header is the overhead of a packet in bytes.
func NewRelay(id, leader ID, header int) *Relay {
	return &Relay{id: id, leader: leader, header: header, newest: map[ID]delivery{}}
}

// ID implements Machine.
func (m *Relay) ID() ID { return m.id }

// Introduce implements Machine. It does nothing, because the leader has all avatars.
func (m *Relay) Introduce([]Update) {}

// Follow changes the leader: the avatar entered another region, or the region has a new leader.
func (m *Relay) Follow(leader ID) { m.leader = leader }

// relayForget is the number of rounds after which a silent avatar is dropped.
const relayForget = 20

// Step implements Machine.
func (m *Relay) Step(in *Input, out *Output) {
	for _, msg := range in.Inbox[:min(len(in.Inbox), MaxInbox)] {
		crowd, ok := msg.Payload.(*Crowd)
		if !ok || msg.From != m.leader {
			continue
		}
		for _, u := range crowd.Updates {
			last, known := m.newest[u.Origin]
			if u.Origin == m.id || !u.Valid() || known && int32(u.Round-last.round) <= 0 || !known && len(m.newest) >= MaxKnown {
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
	p := &Report{Update: in.Self(m.id)}
	out.Send(Message{From: m.id, To: m.leader, Bytes: m.header + PayloadBytes(m.id, p), Payload: p})
}

// RelayLeader is the part of a region's leader that relays reports: each report goes to all avatars in vision range in
// the same round, in one packet per receiver. It has no cap.
type RelayLeader struct {
	id     ID
	vision float64
	header int
	here   census
}

// NewRelayLeader returns a leader that relays over vision blocks.
func NewRelayLeader(id ID, vision float64, header int) *RelayLeader {
	return &RelayLeader{id: id, vision: vision, header: header}
}

// ID implements Machine.
func (m *RelayLeader) ID() ID { return m.id }

// Introduce implements Machine. It does nothing, because avatars report by themselves.
func (m *RelayLeader) Introduce([]Update) {}

// Step implements Machine.
func (m *RelayLeader) Step(in *Input, out *Output) {
	fresh := m.here.update(in, relayForget)
	crowds := make([][]Update, len(m.here.avatars))
	m.here.pairs(in.Round, func(i, j int, dist float64) {
		if dist > m.vision {
			return
		}
		if fresh[i] {
			crowds[j] = append(crowds[j], m.here.avatars[i])
		}
		if fresh[j] {
			crowds[i] = append(crowds[i], m.here.avatars[j])
		}
	}, m.vision)
	for i, crowd := range crowds {
		for part := range slices.Chunk(crowd, MaxUpdates) {
			p := &Crowd{Updates: part}
			out.Send(Message{From: m.id, To: m.here.avatars[i].Origin, Bytes: m.header + PayloadBytes(m.id, p), Payload: p})
		}
	}
}

// census is a leader's list of the avatars of its region: their newest reports, sorted by X.
type census struct{ avatars []Update }

// maxCensus bounds the avatars of a region.
const maxCensus = 1 << 16

// update applies the reports, removes avatars without a report for forget rounds, and returns which avatars are new in
// this round.
func (c *census) update(in *Input, forget int) (fresh []bool) {
	news := map[ID]Update{}
	for _, msg := range in.Inbox {
		r, ok := msg.Payload.(*Report)
		if !ok || r.Update.Origin != msg.From || !r.Update.Valid() {
			continue
		}
		if old, ok := news[msg.From]; !ok || r.Update.Newer(old) {
			news[msg.From] = r.Update
		}
	}
	kept := c.avatars[:0]
	isFresh := map[ID]bool{}
	for _, u := range c.avatars {
		if n, ok := news[u.Origin]; ok {
			delete(news, u.Origin)
			if n.Newer(u) {
				u = n
				isFresh[u.Origin] = true
			}
		}
		if int32(in.Round-u.Round) <= int32(forget) {
			kept = append(kept, u)
		}
	}
	for _, u := range news {
		if int32(in.Round-u.Round) <= int32(forget) && len(kept) < maxCensus {
			kept = append(kept, u)
			isFresh[u.Origin] = true
		}
	}
	c.avatars = kept
	slices.SortFunc(c.avatars, func(a, b Update) int {
		return cmp.Or(cmp.Compare(a.At.X, b.At.X), cmp.Compare(a.Origin, b.Origin))
	})
	fresh = make([]bool, len(c.avatars))
	for i, u := range c.avatars {
		fresh[i] = isFresh[u.Origin]
	}
	return fresh
}

// mostDrift bounds the extrapolated distance of an avatar from its report, in blocks.
const mostDrift = 64

// pairs calls pair for all pairs of avatars whose extrapolated distance is at most most blocks.
func (c *census) pairs(round uint32, pair func(i, j int, dist float64), most float64) {
	now := make([]Point, len(c.avatars))
	for i := range c.avatars {
		now[i] = c.avatars[i].ahead(round)
	}
	for i := range now {
		for j := i + 1; j < len(now) && c.avatars[j].At.X-c.avatars[i].At.X <= most+2*mostDrift; j++ {
			if d := now[i].Dist(now[j]); d <= most {
				pair(i, j, d)
			}
		}
	}
}
