package admission

import (
	"context"

	"github.com/libp2p/go-libp2p/core/peer"
)

// KeepUp does what Run does once a minute.
func (g *Gate) KeepUp(ctx context.Context) { g.keepUp(ctx) }

// BeginExchange stands for the exchange with a node that somebody else has begun. End ends it, for lack of time.
func (g *Gate) BeginExchange(id peer.ID) (end func()) {
	e := &exchanging{done: make(chan struct{}), err: context.DeadlineExceeded, gaveUp: true}
	g.mu.Lock()
	g.mu.running[id] = e
	g.mu.Unlock()
	return func() {
		g.mu.Lock()
		delete(g.mu.running, id)
		g.mu.Unlock()
		close(e.done)
	}
}

// AddCharter adds a charter that the holders of the root keys have sealed.
func (g *Gate) AddCharter(raw []byte) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.addCharters(raw)
}

// OwnBytes returns the node's own sealed certificate.
func OwnBytes(g *Gate) []byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.own
}

// RenewedBy returns what an issuer answers to this node's question for a newer certificate, whether or not it admits
// this node.
func RenewedBy(ctx context.Context, g, issuer *Gate) ([]byte, error) {
	question := g.show(issuer.Host.LibP2P().ID(), shown{})
	question.Renew = true
	raw, err := issuer.Answer(ctx, g.Host.LibP2P().ID().String(), encode(question))
	if err != nil {
		return nil, err
	}
	answer, err := decode(raw)
	return answer.Issued, err
}

// ReadsFromSeen reports whether the certificate of a node is read without verifying its signature again.
func ReadsFromSeen(g *Gate, id peer.ID, raw []byte) bool {
	v, err := g.Seen.read(id, raw)
	return err == nil && &v.raw[0] != &raw[0]
}
