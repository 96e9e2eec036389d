package admission

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/voxelpopuli/voxeld/dht/transport"
	"github.com/voxelpopuli/voxeld/trust"
)

// maxInvitations bounds the invitations that an issuer keeps; those that have expired do not count.
const maxInvitations = 4096

var errNoIssuer = errors.New("this node is no issuer of the world: run the command on one that voxeld peers lists as issuer")

// Invite returns the secret of a new token, which admits nodes as the invitation says. It needs no Token and NotAfter.
func (g *Gate) Invite(i trust.Invitation, life time.Duration) (trust.Secret, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.mu.authority.Charter().Issues(g.self.Key()) {
		return trust.Secret{}, errNoIssuer
	}
	all, err := invitations(g.Storage)
	if err != nil {
		return trust.Secret{}, err
	}
	now, open := g.now(), 0
	for _, other := range all {
		if other.NotAfter > now.Unix() {
			open++
		}
	}
	if open >= maxInvitations {
		return trust.Secret{}, fmt.Errorf("%d tokens are open: revoke some, or wait until they expire", open)
	}
	var secret trust.Secret
	rand.Read(secret[:])
	i.Token, i.NotAfter = secret.ID(), now.Add(life).Unix()
	if i.Issuer {
		if _, err := g.Root(); err != nil {
			return trust.Secret{}, fmt.Errorf("only the holder of the root key can name issuers: %w", err)
		}
	}
	if err := i.Validate(); err != nil {
		return trust.Secret{}, err
	}
	return secret, storeInvitation(g.Storage, i)
}

// admit answers a newcomer that brings the secret of a token.
func (g *Gate) admit(id peer.ID, secret trust.Secret) ([]byte, error) {
	key, err := KeyOf(id)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	issued, err := g.redeem(key, secret)
	if err != nil {
		g.metrics.refused.WithLabelValues(reason(err)).Inc()
		return nil, err
	}
	g.Logger.Info("node admitted with a token", "peer", id.String(), "token", secret.ID().String())
	a := g.mu.authority
	return encode(message{
		World: g.World, Charter: a.Charter().Number, Digest: a.Digest(), Certificate: g.mu.own,
		Charters: fitting(a.Chain(0)), Issued: issued, Genesis: g.Genesis, Roots: g.Roots,
	}), nil
}

// redeem issues a certificate for the node that brings a token. The lock is held.
func (g *Gate) redeem(node trust.Key, secret trust.Secret) ([]byte, error) {
	if !g.mu.authority.Charter().Issues(g.self.Key()) {
		return nil, trust.ErrNoInvitation
	}
	i, err := loadInvitation(g.Storage, secret.ID())
	if err != nil {
		return nil, err
	}
	if i, err = i.Redeem(node, g.now()); err != nil {
		return nil, err
	}
	var placement [16]byte
	rand.Read(placement[:])
	raw, err := g.mu.authority.Issue(g.self, node, i.Operator, placement, i.Token, g.now())
	if err != nil {
		return nil, err
	}
	if err := storeInvitation(g.Storage, i); err != nil || !i.Issuer {
		return raw, err
	}
	root, err := g.Root()
	if err != nil {
		return raw, err
	}
	return raw, g.addIssuer(node, i.Operator, root)
}

// renew issues a newer certificate for a peer that shows one, whatever its date says.
func (g *Gate) renew(id peer.ID, raw []byte) ([]byte, error) {
	key, err := KeyOf(id)
	if err != nil {
		return nil, err
	}
	v, err := g.Seen.read(id, raw)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	c := v.certificate
	if !g.mu.authority.Charter().Issues(g.self.Key()) {
		return nil, errNoIssuer
	}
	if err := g.mu.authority.Renewable(c, v.issuer, key, g.now()); err != nil {
		return nil, err
	}
	return g.mu.authority.Issue(g.self, c.Node, c.Operator, c.Placement, c.Token, g.now())
}

// Revoke ends the certificates of a subject, on all nodes that this one reaches within seconds, or lifts that. If the
// subject is an issuer, and this node has the root key, it also dismisses it: until then it may revoke others. It
// returns an error if that would exclude this node: no other one would hear of it when it lifts that.
func (g *Gate) Revoke(s trust.Subject, reason string, lift bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.mu.authority.Charter().Issues(g.self.Key()) {
		return errNoIssuer
	}
	own, issuer := g.ownCertificate()
	switch {
	case s == trust.NodeSubject(own.Node):
		return errors.New("a node can neither revoke itself nor lift that: run the command on another issuer; to lift it with the root key, dismiss the issuer that revoked this node")
	case !lift && own.Names(s):
		return errors.New("this would exclude this node itself, by its operator or token: run the command on another issuer")
	case !lift && s == trust.NodeSubject(issuer): // this node's certificate would end, too
		if err := g.certifySelf(own.Operator); err != nil && !errors.Is(err, trust.ErrRevoked) { // it has ended already: go on
			return err
		}
	}
	raw, err := trust.Revocation{
		World: g.World, Kind: s.Kind, Subject: []byte(s.Name), At: g.mu.authority.RevokeAt(s, g.now()), Lifted: lift, Reason: reason,
	}.Seal(g.self)
	if err != nil {
		return err
	}
	if err := g.addRevocation(raw); err != nil {
		return err
	}
	defer g.judgeAgain()
	if lift || s.Kind != trust.RevokeNode || !g.mu.authority.Charter().Issues(trust.Key([]byte(s.Name))) {
		return nil
	}
	root, err := g.Root()
	if err == nil {
		err = g.dismiss(trust.Key([]byte(s.Name)), root)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // without the root key, another node dismisses the issuer
		return fmt.Errorf("the node is revoked, but still an issuer: %w", err)
	}
	return nil
}

// World asks the node of a world at a peer for the world's id. Strangers may ask that.
func World(ctx context.Context, h *transport.Host, peer string) (trust.World, error) {
	raw, err := h.Ask(ctx, peer, Protocol, encode(message{}))
	if err != nil {
		return trust.World{}, err
	}
	m, err := decode(raw)
	return m.World, err
}

// Enroll asks a node of a world for a certificate, with the secret of a token, and stores it. The genesis and the root
// keys that the node names are passed to roots, which returns an error unless the genesis is that of the world, and the
// root keys to be believed.
func Enroll(ctx context.Context, o Options, node string, secret trust.Secret, roots func(genesis []byte, named []trust.Key) ([]trust.Key, error)) error {
	raw, err := o.Host.Ask(ctx, node, Protocol, encode(message{World: o.World, Secret: &secret}))
	if err != nil {
		return err
	}
	m, err := decode(raw)
	if err != nil {
		return err
	}
	if o.Roots, err = roots(m.Genesis, m.Roots); err != nil {
		return err
	}
	a, err := trust.NewAuthority(o.World, o.Roots)
	if err != nil {
		return err
	}
	for _, raw := range m.Charters {
		if _, err := a.AddCharter(raw); err != nil {
			return err
		}
	}
	// If there are more charters than fit into the answer, the first exchange brings the others.
	if a.Charter().Number == m.Charter {
		if _, err := a.Check(m.Issued, selfOf(o.Host).Key(), o.now()); err != nil {
			return err
		}
	}
	if err := replaceCharters(o.Storage, m.Charters); err != nil {
		return err
	}
	return storeCertificate(o.Storage, m.Issued)
}
