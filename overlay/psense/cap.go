package psense

import (
	"math"
	"slices"

	"github.com/voxelpopuli/voxeld/overlay"
)

// fit is step 2c: it deletes entries until the queue fits under the cap, of which used bytes are taken. Deleted entries
// leave the receiver lists too.
func (m *Machine) fit(used int) {
	if m.cfg.Cap == 0 {
		return
	}
	p := &m.planned
	total := used
	for i := range p.batches {
		total += m.batchBytes(&p.batches[i])
	}
	if total <= m.cfg.Cap {
		return
	}
	if m.cfg.Stalest {
		m.rank()
	} else {
		m.rng.Shuffle(len(p.entries), func(i, j int) { p.entries[i], p.entries[j] = p.entries[j], p.entries[i] })
	}
	if m.cfg.OwnFirst {
		slices.SortStableFunc(p.entries, func(a, b entry) int { return min(a.batch, 1) - min(b.batch, 1) })
	}
	if m.cfg.Forwarders > 0 && m.cfg.OwnFirst {
		total = m.dropLists(total)
	}
	for total > m.cfg.Cap && len(p.entries) > 0 {
		e := p.entries[len(p.entries)-1]
		p.entries = p.entries[:len(p.entries)-1]
		b := &p.batches[e.batch]
		total -= m.batchBytes(b)
		b.kept--
		if e.list {
			b.listed--
		}
		if e.receiver {
			b.receivers--
		}
		if e.far {
			b.far--
		}
		total += m.batchBytes(b)
	}
}

// dropLists removes the receiver list from all but one of the own update's receivers, if more own updates fit then.
func (m *Machine) dropLists(total int) int {
	p := &m.planned
	own := &p.batches[0]
	for i := len(p.entries) - 1; i >= 0 && total > m.cfg.Cap && own.listed > 1; i-- {
		if e := &p.entries[i]; e.batch == 0 && e.list {
			total -= m.batchBytes(own)
			e.list = false
			own.listed--
			total += m.batchBytes(own)
		}
	}
	return total
}

// batchBytes returns an upper bound of a batch's size with its headers. ids may also be in prior, and a compact machine
// uses the short form for all nodes except distant ones.
func (m *Machine) batchBytes(b *batch) int {
	if b.kept == 0 {
		return 0
	}
	bare := m.cfg.Header + overlay.PositionBytes(m.id, &b.update, m.cfg.Compact, false, false, 0)
	total := b.kept * bare
	if b.listed > 0 {
		n := min(len(b.prior)+b.receivers, overlay.MaxReceivers)
		listed := m.cfg.Header + overlay.PositionBytes(m.id, &b.update, m.cfg.Compact, true, b.short, n)
		total += b.listed * (listed - bare)
	}
	if m.cfg.Compact {
		total += b.far * farBytes
	}
	return total
}

// farBytes is how much longer the long form of a position can be than the short one.
const farBytes = 16 + 8 - (10 - 4 + 2) + 1

// rank sorts the entries by their value to the receivers, the highest first.
func (m *Machine) rank() {
	p := &m.planned
	for i := range p.entries {
		e := &p.entries[i]
		b := &p.batches[e.batch]
		n := &m.nodes[e.to]
		age, dist := uint32(2), 0. // the receiver's information about a forwarded origin is unknown
		if b.own {
			dist = n.dist
			age = mostMissed
			if n.wasSent {
				age = min(m.round-n.sent, mostMissed)
			}
		} else {
			dist = b.update.Ahead(m.round).Dist(n.now)
		}
		e.value = m.missed(int(age), dist)
		if e.list && m.cfg.Forwarders > 0 {
			e.value += 1 // few carry the list, and newcomers are discovered through them
		}
	}
	slices.SortStableFunc(p.entries, func(a, b entry) int {
		switch {
		case a.value > b.value:
			return -1
		case a.value < b.value:
			return 1
		}
		return 0
	})
}

// mostMissed bounds the rounds that missed considers: the paper's greatest PositionAge.
const mostMissed = 20

// missed returns the value of an update for a node at a distance that got the previous one age rounds ago. It is
// Whittle's index of the cost PQ(p, q) = a^w, that is age·(age+1)^w - Σ a^w over 1 ≤ a ≤ age. It grows with age and
// falls with distance. Serving the highest first keeps the sum of all PQ(p, q) low; serving the nearest first would
// starve the others.
func (m *Machine) missed(age int, dist float64) float64 {
	w := 1 - (dist-m.cfg.Interaction)/(m.cfg.Vision-m.cfg.Interaction)
	w = min(max(w, .01), 1) // nodes about to come into range need updates too
	sum := 0.
	for a := 1; a <= age; a++ {
		sum += math.Pow(float64(a), w)
	}
	return float64(age)*math.Pow(float64(age+1), w) - sum
}
