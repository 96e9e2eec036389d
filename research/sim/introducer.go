package sim

import (
	"slices"

	"github.com/voxelpopuli/voxeld/overlay"
)

// Introducer is the part of a region's leader that introduces avatars: it sends two avatars each other's updates when
// they come near, so that they need not be discovered by others. The pSense paper has no leaders.
type Introducer struct {
	id         overlay.ID
	vision     float64
	lead       float64
	header     int
	here       avatars
	introduced map[pair]uint32 // the round of the last introduction of a pair
}

// pair is two avatars, the lower id first.
type pair [2]overlay.ID

// reintroduce is the number of rounds after which two avatars who are still near are introduced again, in case the
// message was lost or one of them dropped the other.
const reintroduce = 64

// introduceForget is the number of rounds without a report after which an avatar counts as gone.
const introduceForget = 12

// NewIntroducer returns a leader that introduces avatars who could come within vision blocks of each other in lead
// rounds.
func NewIntroducer(id overlay.ID, vision, lead float64, header int) *Introducer {
	return &Introducer{id: id, vision: vision, lead: lead, header: header, introduced: map[pair]uint32{}}
}

// ID implements Machine.
func (m *Introducer) ID() overlay.ID { return m.id }

// Introduce implements Machine. It does nothing, because avatars report by themselves.
func (m *Introducer) Introduce([]overlay.Update) {}

// Step implements Machine.
func (m *Introducer) Step(in *overlay.Input, out *overlay.Output) {
	m.here.update(in, introduceForget)
	avatars := m.here.updates
	names := make([][]overlay.Update, len(avatars))
	m.here.pairs(in.Round, func(i, j int, dist float64) {
		a, b := &avatars[i], &avatars[j]
		if dist > overlay.Reach(m.vision, m.lead+1, a.Velocity, b.Velocity) { // +1: the introduction takes a round to arrive
			return
		}
		both := pair{min(a.Origin, b.Origin), max(a.Origin, b.Origin)}
		if at, ok := m.introduced[both]; ok && in.Round-at < reintroduce {
			return
		}
		m.introduced[both] = in.Round
		names[i] = append(names[i], *b)
		names[j] = append(names[j], *a)
	}, m.vision*1.5)
	for i, list := range names {
		for part := range slices.Chunk(list, overlay.MaxUpdates) {
			m.send(out, avatars[i].Origin, part)
		}
	}
	if in.Round%reintroduce == 0 {
		for both, at := range m.introduced {
			if in.Round-at >= reintroduce {
				delete(m.introduced, both)
			}
		}
	}
}

func (m *Introducer) send(out *overlay.Output, to overlay.ID, who []overlay.Update) {
	p := &overlay.Introduction{Updates: who, Compact: m.vision <= overlay.CompactReach/2}
	out.Send(overlay.Message{From: m.id, To: to, Bytes: m.header + overlay.PayloadBytes(m.id, p), Payload: p})
}

// Welcome returns what a leader sends to a joining avatar at the start of its machine's life: all known avatars nearby.
// bytes is the size of the message on the wire.
func Welcome(self overlay.Update, here []overlay.Update, vision, lead float64, header int) (near []overlay.Update, bytes int) {
	for _, u := range here {
		if u.Origin != self.Origin && u.At.Dist(self.At) <= overlay.Reach(vision, lead, self.Velocity, u.Velocity) {
			near = append(near, overlay.Quantise(u))
		}
	}
	p := &overlay.Introduction{Updates: near, Compact: vision <= overlay.CompactReach/2}
	return near, header + overlay.PayloadBytes(self.Origin, p)
}
