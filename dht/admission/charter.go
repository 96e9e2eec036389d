package admission

import (
	"errors"
	"fmt"
	"slices"

	"github.com/voxelpopuli/voxeld/trust"
)

// This file holds what the holder of a root key does: the charters that name issuers and root keys.

// Appoint makes this node an issuer, as the root keys sign, and certifies it if it has no valid certificate. The first
// node of a world begins so, and any other one may take over when the issuers are lost. A node that
// has a certificate, and is revoked, remains an issuer without a valid one: with the root key it may have to dismiss
// whoever revoked it.
func (g *Gate) Appoint(operator string, roots ...trust.Signer) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.addIssuer(g.self.Key(), operator, roots...); err != nil {
		return err
	}
	if _, err := g.mu.authority.Check(g.mu.own, g.self.Key(), g.now()); g.mu.own != nil && err == nil {
		return nil
	}
	err := g.certifySelf(operator)
	if g.mu.own != nil && errors.Is(err, trust.ErrRevoked) {
		g.Logger.Warn("this node is revoked, and no other one admits it: voxeld peers revoked lists why; if an issuer did that which is not to be trusted, revoke that one on this node", "error", err)
		return nil
	}
	return err
}

// addIssuer makes a node an issuer, as the root keys sign. The lock is held.
func (g *Gate) addIssuer(node trust.Key, operator string, roots ...trust.Signer) error {
	next := g.mu.authority.Charter().Next(g.now())
	if next.Issues(node) {
		return nil
	}
	if g.WasOpen && g.mu.authority.Charter().Number == 0 {
		next.Number = trust.ClosingCharter
	}
	next.Issuers = append(next.Issuers, trust.Issuer{Key: node, Name: operator})
	return g.succeed(next, roots...)
}

// succeed signs the next charter, and adds it. First it signs the revocations again that would end with the charter,
// because only a former issuer or a former root key signed them. Those that exclude this node end: it has the root key,
// and as no other node would listen to it, it could not lift them. A charter that names other root keys is followed at
// once by one that says the same: a former root key can sign a rival of the newest charter, but not of one that another
// has followed. The lock is held.
func (g *Gate) succeed(next trust.Charter, roots ...trust.Signer) error {
	raw, err := next.Seal(roots...)
	if err != nil {
		return err
	}
	sealed := [][]byte{raw}
	if !slices.Equal(next.Roots, g.mu.authority.Charter().Roots) {
		following, err := next.Next(g.now()).Seal(roots...)
		if err != nil {
			return err
		}
		sealed = append(sealed, following)
	}
	own, _ := g.ownCertificate()
	for _, r := range g.mu.authority.NotEntitled(next) {
		if !r.Lifted && own.Names(r.Of()) {
			continue
		}
		r.At++ // so that it replaces the former one
		again, err := r.Seal(roots...)
		if err != nil {
			return err
		}
		if err := g.addRevocation(again); err != nil {
			return fmt.Errorf("sign revocations again: %w", err)
		}
	}
	return g.addCharters(sealed...)
}

// AppointOther makes another node an issuer.
func (g *Gate) AppointOther(node trust.Key, operator string) error {
	root, err := g.Root()
	if err != nil {
		return fmt.Errorf("only the holder of the root key can name issuers: %w", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.addIssuer(node, operator, root)
}

// Dismiss makes a node an issuer no more. The certificates that it has issued stay valid, but nodes get others at once.
// What it has revoked stays revoked.
func (g *Gate) Dismiss(node trust.Key) error {
	root, err := g.Root()
	if err != nil {
		return fmt.Errorf("only the holder of the root key can dismiss issuers: %w", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.dismiss(node, root)
}

// dismiss makes a node an issuer no more. The lock is held.
func (g *Gate) dismiss(node trust.Key, root trust.Signer) error {
	next := g.mu.authority.Charter().Next(g.now())
	switch {
	case !next.Issues(node):
		return errors.New("the node is no issuer: voxeld peers lists them")
	case node == g.self.Key():
		return errors.New("this node has the root key, with which it becomes an issuer at each start: dismiss it on another node to which you have moved root.key")
	}
	next.Issuers = slices.DeleteFunc(next.Issuers, func(i trust.Issuer) bool { return i.Key == node })
	return g.succeed(next, root)
}

// ReplaceRoot replaces this node's root key by another one, which counts from now on instead.
func (g *Gate) ReplaceRoot(fresh trust.Signer) error {
	root, err := g.Root()
	if err != nil {
		return fmt.Errorf("only its holder can replace the root key: %w", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	next := g.mu.authority.Charter().Next(g.now())
	i := slices.Index(next.Roots, root.Key())
	if i < 0 {
		return errors.New("the key in root.key is no root key of the world any more")
	}
	next.Roots[i] = fresh.Key()
	return g.succeed(next, root, fresh)
}
