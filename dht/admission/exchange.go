package admission

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/voxelpopuli/voxeld/trust"
)

// exchangeTime bounds an exchange.
const exchangeTime = 10 * time.Second

// exchanging is an exchange that others may wait for.
type exchanging struct {
	done   chan struct{} // closed at its end
	err    error
	gaveUp bool // the one who began it had no more time; others may
}

// Await returns when both nodes have shown each other valid certificates, or the reason why not.
func (g *Gate) Await(ctx context.Context, id peer.ID) error {
	for {
		g.mu.Lock()
		if _, there := g.mu.admitted[id]; there {
			g.mu.Unlock()
			return nil
		}
		e, running := g.mu.running[id]
		if !running {
			e = &exchanging{done: make(chan struct{})}
			g.mu.running[id] = e
		}
		g.mu.Unlock()
		if !running {
			e.err = g.exchange(ctx, id)
			e.gaveUp = ctx.Err() != nil
			g.mu.Lock()
			delete(g.mu.running, id)
			g.mu.Unlock()
			close(e.done)
			return e.err
		}
		select {
		case <-e.done:
			if !e.gaveUp {
				return e.err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// exchange shows this node's certificate to a peer and judges the peer's. Then both have the same charters and
// revocations.
func (g *Gate) exchange(ctx context.Context, id peer.ID) error {
	ctx, cancel := context.WithTimeout(ctx, exchangeTime)
	defer cancel()
	var s shown
	for range maxRounds {
		question := g.show(id, s)
		answer, err := g.ask(ctx, id, question)
		if err != nil {
			return fmt.Errorf("show certificates: %w", err)
		}
		judged := g.take(id, answer)
		renewed := answer.Refused != "" && len(answer.Issued) > 0 && g.takeOwn(answer.Issued) == nil
		newest := g.newest()
		more := judged.added || newest > answer.Charter && (!s.told || answer.Charter > s.charter) ||
			newest == answer.Charter && !s.told && !judged.same // there may be two with that number
		s = shown{told: true, same: judged.same, charter: answer.Charter, sent: last(question.Revocations, s.sent), got: last(answer.Revocations, s.got)}
		switch {
		case more: // both must know the same charters before they can judge
		case renewed && judged.err == nil: // this node's certificate had ended, and the peer is an issuer
		case judged.err != nil:
			g.countRefused(id, judged.err)
			return fmt.Errorf("certificate of %s: %w", id, judged.err)
		case answer.Refused != "":
			g.warnRefused(id, answer.Refused)
			return fmt.Errorf("%w: %s says: %s", errRefused, id, answer.Refused)
		case judged.same, len(answer.Revocations) == 0 && len(question.Revocations) == 0 && question.admitted:
			return nil
		}
	}
	return fmt.Errorf("show certificates: %s did not come to an end", id)
}

// shown is how far two nodes have shown each other what they know.
type shown struct {
	told      bool   // charter is known
	same      bool   // the peer knows the same charters and revocations
	charter   uint64 // number of the peer's newest charter
	sent, got []byte // the last revocations in both directions
}

func last(revocations [][]byte, before []byte) []byte {
	if n := len(revocations); n > 0 {
		return revocations[n-1]
	}
	return before
}

func (g *Gate) newest() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.authority.Charter().Number
}

func (g *Gate) ask(ctx context.Context, id peer.ID, question message) (message, error) {
	raw, err := g.Host.Ask(ctx, id.String(), Protocol, encode(question))
	if err != nil {
		return message{}, err
	}
	answer, err := decode(raw)
	if err == nil && answer.World != g.World {
		err = errors.New("it is a node of another world")
	}
	return answer, err
}

// show returns a message that shows this node's certificate, with the next charters, if it is known which ones the peer
// has, and the next revocations, if the peer is admitted.
func (g *Gate) show(id peer.ID, s shown) message {
	g.mu.Lock()
	defer g.mu.Unlock()
	a := g.mu.authority
	m := message{World: g.World, Charter: a.Charter().Number, Digest: a.Digest(), Certificate: g.mu.own, After: s.got}
	switch {
	case s.told && !s.same && s.charter > 0 && s.charter == m.Charter: // the peer may have another one with that number
		m.Charters = a.Chain(s.charter - 1)
	case s.told:
		m.Charters = fitting(a.Chain(s.charter))
	}
	if _, m.admitted = g.mu.admitted[id]; m.admitted {
		m.Revocations = following(a.Revocations(), s.sent)
	}
	return m
}

// judgement is what a message of a peer led to.
type judgement struct {
	err   error // why the peer is not admitted
	added bool  // a charter was new
	same  bool  // the peer knows the same charters and revocations
}

// take takes over what a message tells, and judges its sender's certificate. Nothing in it is believed without the
// signatures.
func (g *Gate) take(id peer.ID, m message) judgement {
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.mu.authority.Charter()
	for _, raw := range m.Charters {
		if err := g.addCharters(raw); err != nil {
			g.noteRefused(id, err)
			break // what follows depends on it
		}
	}
	j := judgement{err: g.judge(id, m.Certificate), added: !g.mu.authority.Charter().Equal(before)}
	if j.err == nil {
		for _, raw := range m.Revocations {
			if err := g.addRevocation(raw); err != nil && !errors.Is(err, trust.ErrNotEntitled) {
				g.Logger.Warn("revocation refused", "peer", id.String(), "error", err)
				break
			}
		}
		j.err = g.judge(id, m.Certificate) // it may be the one that was revoked
	}
	if j.added || len(m.Revocations) > 0 {
		g.judgeAgain()
	}
	j.same = m.Digest == g.mu.authority.Digest()
	return j
}

// Answer answers a peer's question of Protocol.
func (g *Gate) Answer(_ context.Context, name string, raw []byte) ([]byte, error) {
	question, err := decode(raw)
	if err != nil {
		return nil, err
	}
	id, err := peer.Decode(name)
	if err != nil {
		return nil, err
	}
	switch question.World {
	case g.World:
	case trust.World{}: // see World
		return encode(message{World: g.World}), nil
	default:
		return nil, errors.New("this is a node of another world")
	}
	if question.Secret != nil {
		return g.admit(id, *question.Secret)
	}
	judged := g.take(id, question)
	answer := g.show(id, shown{told: judged.err == nil, same: judged.same, charter: question.Charter, sent: question.After})
	if ended := errors.Is(judged.err, trust.ErrExpired); question.Renew || ended {
		if answer.Issued, err = g.renew(id, question.Certificate); err != nil && !ended {
			return nil, err
		}
	}
	if judged.err != nil && question.Charter <= answer.Charter { // otherwise it is asked for its charters, and may be admitted then
		if answer.Refused = judged.err.Error(); answer.Issued == nil { // with a newer certificate it comes back at once
			g.countRefused(id, judged.err)
		}
		answer.Revocations = g.excluding(id, question.Certificate)
	}
	return encode(answer), nil
}

// excluding returns the revocation because of which a peer's certificate does not count, if there is one: then the peer
// can say by whom it is excluded, and does not take the others for down.
func (g *Gate) excluding(id peer.ID, certificate []byte) [][]byte {
	v, err := g.Seen.read(id, certificate)
	if err != nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if e, excluded := g.mu.authority.Excluding(v.certificate, v.issuer); excluded {
		return [][]byte{e.Sealed}
	}
	return nil
}

// noteRefused logs that this node refuses a peer's charter, and records it if root keys of the world signed it: anybody
// can send the others. The lock is held.
func (g *Gate) noteRefused(id peer.ID, err error) {
	if !errors.Is(err, trust.ErrContrary) {
		g.Logger.Debug("charter refused", "peer", id.String(), "error", err)
		return
	}
	now := g.now()
	if now.Sub(g.mu.warnedOf) >= time.Minute {
		g.mu.warnedOf = now
		g.Logger.Warn("charter refused", "peer", id.String(), "error", err)
	}
	g.mu.contrary = Contrary{Peer: id.String(), Err: err, At: now}
}

// countRefused records that a peer is not admitted. The connections to it are closed soon.
func (g *Gate) countRefused(id peer.ID, err error) {
	g.metrics.refused.WithLabelValues(reason(err)).Inc()
	g.Logger.Debug("node not admitted", "peer", id.String(), "error", err)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.Host.LibP2P().Network().Connectedness(id) == network.Connected { // otherwise Forget was called already
		g.mu.refused[id] = struct{}{}
	}
}

// warnRefused logs that a peer does not admit this node, at most once a minute.
func (g *Gate) warnRefused(id peer.ID, why string) {
	g.mu.Lock()
	due := time.Since(g.mu.warned) >= time.Minute
	if due {
		g.mu.warned = time.Now()
	}
	g.mu.Unlock()
	if due {
		g.Logger.Warn("another node refuses this one", "peer", id.String(), "error", why)
	}
}
