package admission

import (
	"time"

	"github.com/voxelpopuli/voxeld/trust"
)

// This file holds what operators ask.

// Own returns this node's certificate, or what is wrong with it.
func (g *Gate) Own() (trust.Certificate, error) {
	if err := g.Certified(); err != nil {
		return trust.Certificate{}, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	c, _, err := trust.ReadCertificate(g.mu.own)
	return c, err
}

// Issues reports whether a node gives out tokens.
func (g *Gate) Issues(node string) bool {
	key, err := KeyOfNode(node)
	if err != nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.authority.Charter().Issues(key)
}

// Certificate returns the certificate of a node that is connected. It reports whether the node has shown a valid one.
func (g *Gate) Certificate(node string) (c trust.Certificate, admitted bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, a := range g.mu.admitted {
		if id.String() == node {
			return a.certificate, true
		}
	}
	return trust.Certificate{}, false
}

// Revoked returns the revocations in force.
func (g *Gate) Revoked() []trust.Revocation {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.authority.InForce()
}

// Invites reports whether this node has given out a token that admits nodes until some time.
func (g *Gate) Invites(token trust.TokenID, until time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i, err := loadInvitation(g.Storage, token)
	_, revoked := g.mu.authority.Revoked(trust.TokenSubject(token))
	return err == nil && !revoked && i.NotAfter > until.Unix()
}
