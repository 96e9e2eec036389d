package admission

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/voxelpopuli/voxeld/trust"
)

const (
	// upkeepEvery is how often certificates are looked at again: they expire, and are renewed.
	upkeepEvery = time.Minute
	// maxExchanges is how many peers are told of a change at the same time.
	maxExchanges = 16
)

// Run renews this node's certificate, disconnects peers whose certificates have ended, and passes charters and
// revocations on as soon as they change, until ctx ends.
func (g *Gate) Run(ctx context.Context) error {
	every := time.NewTicker(upkeepEvery)
	defer every.Stop()
	g.keepUp(ctx)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
			g.keepUp(ctx)
		case <-g.changed:
			g.spread(ctx)
			g.keepUp(ctx) // the issuer of this node's certificate may have been dismissed
		}
	}
}

// keepUp renews this node's certificate if it is time, or whoever issued it was dismissed, and judges all peers again.
func (g *Gate) keepUp(ctx context.Context) {
	g.mu.Lock()
	if g.Settled == nil || g.Settled() {
		g.mu.authority.Forget(g.now())
	}
	g.judgeAgain()
	c, issuer, err := trust.ReadCertificate(g.mu.own)
	charter := g.mu.authority.Charter()
	due := err == nil && (g.now().After(c.RenewAt()) || c.Valid(g.now()) != nil || !charter.Issues(issuer))
	issues := charter.Issues(g.self.Key())
	if due && issues {
		if err := g.certifySelf(c.Operator); err != nil {
			g.Logger.Error("own certificate not renewed", "error", err)
		}
	}
	g.mu.Unlock()
	if due && !issues {
		if err := g.askRenewal(ctx); err != nil {
			g.Logger.Warn("certificate not renewed", "expires", c.Expires(), "error", err)
		}
	}
}

// askRenewal asks the issuers, one after the other, for a newer certificate.
func (g *Gate) askRenewal(ctx context.Context) error {
	g.mu.Lock()
	issuers := g.mu.authority.Charter().Issuers
	g.mu.Unlock()
	err := errors.New("the world has no issuer")
	for _, issuer := range issuers {
		var id peer.ID
		if id, err = PeerOf(issuer.Key); err != nil {
			continue
		}
		if err = g.renewFrom(ctx, id); err == nil {
			return nil
		}
	}
	return err
}

func (g *Gate) renewFrom(ctx context.Context, id peer.ID) error {
	ctx, cancel := context.WithTimeout(ctx, exchangeTime)
	defer cancel()
	g.mu.Lock()
	before := g.mu.own
	g.mu.Unlock()
	if err := g.Await(ctx, id); err != nil { // an issuer also renews a certificate that has ended
		return err
	}
	question := g.show(id, shown{})
	if !bytes.Equal(question.Certificate, before) {
		return nil
	}
	question.Renew = true
	answer, err := g.ask(ctx, id, question)
	if err != nil {
		return err
	}
	return g.takeOwn(answer.Issued)
}

func (g *Gate) takeOwn(raw []byte) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.setOwn(raw)
}

// spread tells all connected peers what has changed.
func (g *Gate) spread(ctx context.Context) {
	slots := make(chan struct{}, maxExchanges)
	var all sync.WaitGroup
	defer all.Wait()
	for _, id := range g.Host.LibP2P().Network().Peers() {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			if err := g.exchange(ctx, id); err != nil {
				g.Logger.Debug("charters and revocations not passed on", "peer", id.String(), "error", err)
			}
		})
	}
}
