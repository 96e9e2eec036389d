package admission

import (
	"cmp"
	"crypto/ed25519"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/voxelpopuli/voxeld/trust"
)

// This file holds what operators ask.

// Own returns this node's certificate, or what is wrong with it.
func (g *Gate) Own() (trust.Certificate, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.own == nil {
		return trust.Certificate{}, errNoOwn
	}
	return g.mu.authority.Check(g.mu.own, g.self.Key(), g.now())
}

// Renewable reports whether this node's certificate is not valid only because of its date, and an issuer will renew it.
func (g *Gate) Renewable() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	c, issuer := g.ownCertificate()
	return g.mu.own != nil && c.Valid(g.now()) != nil && g.mu.authority.Renewable(c, issuer, g.self.Key(), g.now()) == nil
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

// Issued reports whether the charter with a number made the node of a key an issuer. Known is false if that charter is
// not known here.
func (g *Gate) Issued(charter uint64, node ed25519.PublicKey) (issued, known bool) {
	if len(node) != len(trust.Key{}) {
		return false, true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.authority.Issued(charter, trust.Key(node))
}

// CountsOpen reports whether what operators ordered while the world was open counts on.
func (g *Gate) CountsOpen() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.WasOpen && g.mu.authority.Closing()
}

// Charter returns the newest charter that is known here.
func (g *Gate) Charter() trust.Charter {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.authority.Charter()
}

// Certificate returns the certificate of a node that is connected. It reports whether the node has shown a valid one.
func (g *Gate) Certificate(node string) (c trust.Certificate, admitted bool) {
	id, err := peer.Decode(node)
	if err != nil {
		return trust.Certificate{}, false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	a, admitted := g.mu.admitted[id]
	return a.certificate, admitted
}

// Excluded reports whether a node is revoked, or its operator, the token that it came with, or the issuer that admitted
// it, as far as they are known.
func (g *Gate) Excluded(node string) bool {
	_, excluded := g.Exclusion(node)
	return excluded
}

// Exclusion returns the revocation because of which Excluded reports true, if it does.
func (g *Gate) Exclusion(node string) (e trust.Exclusion, excluded bool) {
	v, err := g.lastShown(node)
	if err != nil {
		return e, false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if v.certificate.Node == g.self.Key() {
		v.certificate, v.issuer = g.ownCertificate()
	}
	return g.mu.authority.Excluding(v.certificate, v.issuer)
}

// Invitations returns the tokens that this node has given out and that still admit nodes, the first to expire first.
func (g *Gate) Invitations() ([]trust.Invitation, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	all, err := invitations(g.Storage)
	now := g.now().Unix()
	all = slices.DeleteFunc(all, func(i trust.Invitation) bool {
		_, revoked := g.mu.authority.Revoked(trust.TokenSubject(i.Token))
		return revoked || i.NotAfter <= now || i.Uses > 0 && len(i.Nodes) >= i.Uses
	})
	slices.SortFunc(all, func(x, y trust.Invitation) int { return cmp.Compare(x.NotAfter, y.NotAfter) })
	return all, err
}

// Concerns reports whether the revocation of a subject would exclude a node, as far as its certificate is known: it
// names the node, or the issuer that admitted it. This node, if it is an issuer, certifies itself.
func (g *Gate) Concerns(s trust.Subject, node string) bool {
	v, err := g.lastShown(node)
	return err == nil && v.certificate.Node != g.self.Key() && (v.certificate.Names(s) || s == trust.NodeSubject(v.issuer))
}

// lastShown returns the certificate that a node showed last, or one that only has its key.
func (g *Gate) lastShown(node string) (v verified, err error) {
	id, err := peer.Decode(node)
	if err != nil {
		return v, err
	}
	v, known := g.Seen.certificates.Get(id)
	if !known {
		v.certificate.Node, err = KeyOf(id)
	}
	return v, err
}

// LastContrary returns the last charter of another node, signed with root keys of the world, that this one has refused
// since its start.
func (g *Gate) LastContrary() Contrary {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.contrary
}

// Revoked returns the revocations in force.
func (g *Gate) Revoked() []trust.Exclusion {
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
