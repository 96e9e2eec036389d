package overlay

// AgedUpdate is an update in a gossip.
type AgedUpdate struct {
	Update
	Age uint8 // hops travelled before this one, less than MaxHops
}

// Gossip is areacast's message: the sender's own update, and the updates that the sender forwards.
type Gossip struct{ Updates []AgedUpdate }

// Kind implements Payload.
func (*Gossip) Kind() Kind { return KindGossip }

// paperUpdateBits is the size of an update in the paper (§4.4): player id 64, sequence number 64, position 64, age 4,
// node id 64.
const paperUpdateBits = 260

// paperSize returns the paper's size of a gossip of n updates in bytes.
func paperSize(n int) int { return (n*paperUpdateBits + 7) / 8 }

// size returns the size of a gossip on the wire, with its header.
func (m *Areacast) size(g *Gossip) int {
	if m.opt.Better.Compact {
		return m.opt.Header + g.Size()
	}
	return m.opt.Header + paperSize(len(g.Updates))
}
