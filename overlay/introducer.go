package overlay

import "slices"

// Introducer is the introducing part of a region's leader: it tells two avatars of each other when they come near, so that
// they need not be found by others. It is better than the pSense paper, which has no leaders.
type Introducer struct {
	id     ID
	vision float64
	lead   float64
	header int
	here   census
	told   map[pair]uint32 // the round in which two were introduced
}

// pair is two avatars, the lesser id first.
type pair [2]ID

// reintroduce is the rounds after which two who are still near are introduced again, in case the message was lost, or
// one of them forgot.
const reintroduce = 64

// introduceForget is the rounds without a report after which an avatar is taken for gone.
const introduceForget = 12

// NewIntroducer makes a leader that introduces avatars who could see one another, over vision blocks, within lead rounds.
func NewIntroducer(id ID, vision, lead float64, header int) *Introducer {
	return &Introducer{id: id, vision: vision, lead: lead, header: header, told: map[pair]uint32{}}
}

// ID implements Machine.
func (m *Introducer) ID() ID { return m.id }

// Introduce implements Machine: who is there reports.
func (m *Introducer) Introduce([]Update) {}

// Step implements Machine.
func (m *Introducer) Step(in *Input, out *Output) {
	m.here.take(in, introduceForget)
	avatars := m.here.avatars
	names := make([][]Update, len(avatars))
	m.here.pairs(in.Round, func(i, j int, dist float64) {
		a, b := &avatars[i], &avatars[j]
		if dist > reach(m.vision, m.lead+1, a.Velocity, b.Velocity) { // +1: the introduction is on its way for a round
			return
		}
		both := pair{min(a.Origin, b.Origin), max(a.Origin, b.Origin)}
		if at, ok := m.told[both]; ok && in.Round-at < reintroduce {
			return
		}
		m.told[both] = in.Round
		names[i] = append(names[i], *b)
		names[j] = append(names[j], *a)
	}, m.vision*1.5)
	for i, list := range names {
		for part := range slices.Chunk(list, MaxUpdates) {
			m.send(out, avatars[i].Origin, part)
		}
	}
	if in.Round%reintroduce == 0 {
		for both, at := range m.told {
			if in.Round-at >= reintroduce {
				delete(m.told, both)
			}
		}
	}
}

func (m *Introducer) send(out *Output, to ID, who []Update) {
	p := &Introduction{Updates: who, Compact: m.vision <= compactReach/2}
	out.Send(Message{From: m.id, To: to, Bytes: m.header + PayloadBytes(m.id, p), Payload: p})
}

// Welcome is what a leader tells one who joins: everybody it knows who is near, at the start of the machine's life. Bytes
// are the welcome's on the wire.
func Welcome(self Update, here []Update, vision, lead float64, header int) (near []Update, bytes int) {
	for _, u := range here {
		if u.Origin != self.Origin && u.At.Dist(self.At) <= reach(vision, lead, self.Velocity, u.Velocity) {
			near = append(near, quantise(u))
		}
	}
	p := &Introduction{Updates: near, Compact: vision <= compactReach/2}
	return near, header + PayloadBytes(self.Origin, p)
}
