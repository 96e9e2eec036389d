package trust

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// MaxCharters bounds the charters of a world. Each change of a key or issuer is one.
const MaxCharters = 1024

// Authority is what one node knows of who may belong to its world. It is not safe for concurrent use.
type Authority struct {
	roots   []Key // of the genesis
	charter Charter
	chain   []sealedCharter // without the first, in order
	revoked map[Subject]sealedRevocation
}

// sealedCharter is a charter with its signed form.
type sealedCharter struct {
	Charter
	raw []byte
}

// NewAuthority returns the authority of a world with the root keys that its genesis names.
func NewAuthority(world World, roots []Key) (*Authority, error) {
	first := FirstCharter(world, roots)
	if err := first.Validate(); err != nil {
		return nil, err
	}
	return &Authority{roots: roots, charter: first, revoked: make(map[Subject]sealedRevocation)}, nil
}

// Clone returns a copy, which changes on its own.
func (a *Authority) Clone() *Authority {
	return &Authority{roots: a.roots, charter: a.charter, chain: slices.Clone(a.chain), revoked: maps.Clone(a.revoked)}
}

// Charter returns the newest charter.
func (a *Authority) Charter() Charter { return a.charter }

// Chain returns the sealed charters whose numbers are greater than number, in order.
func (a *Authority) Chain(number uint64) (chain [][]byte) {
	for _, c := range a.chain {
		if c.Number > number {
			chain = append(chain, c.raw)
		}
	}
	return chain
}

// Issued reports whether the charter with a number makes the node an issuer. Known is false if that charter is not
// known here.
func (a *Authority) Issued(number uint64, node Key) (issued, known bool) {
	if number == a.charter.Number {
		return a.charter.Issues(node), true
	}
	i := slices.IndexFunc(a.chain, func(c sealedCharter) bool { return c.Number == number })
	if i < 0 {
		return false, number < a.charter.Number // the first one has no issuers
	}
	return a.chain[i].Issues(node), true
}

// Closing reports whether the first charter is a ClosingCharter.
func (a *Authority) Closing() bool { return len(a.chain) > 0 && a.chain[0].Number == ClosingCharter }

// Revocations returns all sealed revocations, in a fixed order.
func (a *Authority) Revocations() [][]byte {
	all := make([][]byte, 0, len(a.revoked))
	for r := range maps.Values(a.revoked) {
		all = append(all, r.raw)
	}
	slices.SortFunc(all, bytes.Compare)
	return all
}

// InForce returns the revocations that have not been lifted, in no order.
func (a *Authority) InForce() (all []Exclusion) {
	for r := range maps.Values(a.revoked) {
		if !r.Lifted {
			all = append(all, r.exclusion())
		}
	}
	return all
}

// Excluding returns the revocation because of which a certificate of an issuer does not count, if there is one.
func (a *Authority) Excluding(c Certificate, issuer Key) (e Exclusion, excluded bool) {
	for _, s := range append(c.subjects(), NodeSubject(issuer)) {
		if r, there := a.revoked[s]; there && !r.Lifted {
			return r.exclusion(), true
		}
	}
	return Exclusion{}, false
}

// Digest is equal on two nodes that know the same charters and revocations.
func (a *Authority) Digest() [sha256.Size]byte {
	h := sha256.New()
	for _, raw := range slices.Concat(a.Chain(0), a.Revocations()) {
		sum := sha256.Sum256(raw)
		h.Write(sum[:]) // never fails
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// ErrContrary means that a charter does not agree with those known here, though a majority of the root keys of one of
// them signed it.
var ErrContrary = errors.New("charter: it is signed with root keys of the world, and contrary to what this node knows")

// AddCharter adds the next charter. It reports whether it is new; an older charter is not, and no error.
//
// If there are two with the number of the newest, the one with the greater hash counts, on all nodes. Any other charter
// that does not follow from those known here is refused: what this node knows remains.
func (a *Authority) AddCharter(raw []byte) (added bool, err error) {
	c, keys, err := ReadCharter(raw)
	switch {
	case err != nil:
		return false, err
	case c.Number > a.charter.Number && len(a.chain) >= MaxCharters:
		return false, fmt.Errorf("charter: number %d, more than %d", c.Number, MaxCharters)
	}
	if added, err = a.addCharter(sealedCharter{c, raw}); err != nil && c.World == a.charter.World && a.signedOnce(keys) {
		err = fmt.Errorf("%w: %w", ErrContrary, err)
	}
	return added, err
}

func (a *Authority) addCharter(c sealedCharter) (added bool, err error) {
	switch {
	case c.Number < a.charter.Number || c.Number == 0:
		return false, a.rival(c.Charter)
	case c.Number == a.charter.Number:
		return a.addRival(c)
	}
	if _, err := a.charter.Succeed(c.raw); err != nil {
		return false, err
	}
	a.charter, a.chain = c.Charter, append(a.chain, c)
	a.forgetNotEntitled()
	return true, nil
}

// addRival adds a charter with the number of the newest, if it is the one that counts.
func (a *Authority) addRival(c sealedCharter) (added bool, err error) {
	if a.rival(c.Charter) == nil || bytes.Compare(c.hash(), a.charter.hash()) < 0 {
		return false, nil
	}
	if _, err := a.before().Succeed(c.raw); err != nil {
		return false, err
	}
	a.charter, a.chain[len(a.chain)-1] = c.Charter, c
	a.forgetNotEntitled()
	return true, nil
}

// before returns the charter that the newest one follows, or the first one.
func (a *Authority) before() Charter {
	if len(a.chain) > 1 {
		return a.chain[len(a.chain)-2].Charter
	}
	return FirstCharter(a.charter.World, a.roots)
}

// signedOnce reports whether a majority of the root keys of any charter known here is among the keys.
func (a *Authority) signedOnce(keys []Key) bool {
	return FirstCharter(a.charter.World, a.roots).signedBy(keys) ||
		slices.ContainsFunc(a.chain, func(c sealedCharter) bool { return c.signedBy(keys) })
}

// forgetNotEntitled removes the revocations of nodes that are issuers no more.
func (a *Authority) forgetNotEntitled() {
	maps.DeleteFunc(a.revoked, func(_ Subject, r sealedRevocation) bool { return !a.charter.entitles(r) })
}

// NotEntitled returns the revocations whose signers may not revoke by another charter, in a fixed order: nodes forget
// them with that charter.
func (a *Authority) NotEntitled(next Charter) (all []Revocation) {
	for r := range maps.Values(a.revoked) {
		if !next.entitles(r) {
			all = append(all, r.Revocation)
		}
	}
	slices.SortFunc(all, func(a, b Revocation) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), bytes.Compare(a.Subject, b.Subject))
	})
	return all
}

// rival returns an error if a charter differs from the one of the same number that is known here, and not only in its
// signatures.
func (a *Authority) rival(c Charter) error {
	i := slices.IndexFunc(a.chain, func(known sealedCharter) bool { return known.Number == c.Number })
	if i < 0 || a.chain[i].Equal(c) {
		return nil
	}
	return fmt.Errorf("charter: there are two with number %d, and this node has the other one", c.Number)
}

// AddRevocation adds a revocation that an issuer or a majority of the root keys signed, and returns it. It reports
// whether it changes anything.
func (a *Authority) AddRevocation(raw []byte, now time.Time) (r Revocation, added bool, err error) {
	sealed, err := readRevocation(raw)
	if err != nil {
		return Revocation{}, false, err
	}
	added, err = a.addRevocation(sealed, now)
	return sealed.Revocation, added, err
}

// AddStored adds the revocations that a node has stored, the newest first. It leaves out those that do not count any
// more, because their signers may not revoke, and returns how many of the others are more than MaxRevocations.
func (a *Authority) AddStored(stored [][]byte, now time.Time) (tooMany int, err error) {
	all := make([]sealedRevocation, len(stored))
	for i, raw := range stored {
		if all[i], err = readRevocation(raw); err != nil {
			return 0, err
		}
	}
	slices.SortFunc(all, func(a, b sealedRevocation) int { return cmp.Or(cmp.Compare(b.At, a.At), bytes.Compare(b.raw, a.raw)) })
	for _, r := range all {
		switch _, err := a.addRevocation(r, now); {
		case errors.Is(err, errManyRevocations):
			tooMany++
		case err != nil && !errors.Is(err, ErrNotEntitled):
			return 0, err
		}
	}
	return tooMany, nil
}

func (a *Authority) addRevocation(r sealedRevocation, now time.Time) (added bool, err error) {
	switch {
	case r.World != a.charter.World:
		return false, errors.New("revocation: it is of another world")
	case !a.charter.entitles(r):
		return false, ErrNotEntitled
	}
	if r.At > now.Add(Skew).UnixMilli() {
		return false, errors.New("revocation: it is from the future: set this machine's clock")
	}
	if a.obsolete(r.Revocation, now) {
		return false, nil
	}
	old, known := a.revoked[r.Of()]
	switch {
	case known && !r.after(old):
		return false, nil
	case !known && len(a.revoked) >= MaxRevocations:
		return false, errManyRevocations
	}
	a.revoked[r.Of()] = r
	return true, nil
}

// ErrNotEntitled means that the signers of a revocation may not revoke.
var ErrNotEntitled = errors.New("revocation: it is signed neither by an issuer nor by a majority of the root keys")

// Forget removes revocations that have no effect any more. It reports whether there were any.
func (a *Authority) Forget(now time.Time) bool {
	before := len(a.revoked)
	maps.DeleteFunc(a.revoked, func(_ Subject, r sealedRevocation) bool { return a.obsolete(r.Revocation, now) })
	return len(a.revoked) < before
}

// obsolete reports whether a revocation has no effect any more: all certificates that it ended have expired, and can be
// renewed no more. The revocation of an operator, a token or an issuer also concerns later certificates, and that of a
// former issuer those that it backdates.
func (a *Authority) obsolete(r Revocation, now time.Time) bool {
	return r.Kind == RevokeNode && time.UnixMilli(r.At).Add(Lifetime+RenewAfter+3*Skew).Before(now) &&
		!slices.ContainsFunc(a.chain, func(c sealedCharter) bool { return c.Issues(Key(r.Subject)) })
}

// RevokeAt returns the time of a revocation of a subject, in Unix milliseconds, with which it counts and not the one
// that is known: now, or later if that one is of a node whose clock is ahead.
func (a *Authority) RevokeAt(s Subject, now time.Time) int64 {
	if known, there := a.revoked[s]; there {
		return max(now.UnixMilli(), known.At+1)
	}
	return now.UnixMilli()
}

// Revoked reports whether a subject is revoked, and why.
func (a *Authority) Revoked(s Subject) (reason string, revoked bool) {
	r, there := a.revoked[s]
	if !there || r.Lifted {
		return "", false
	}
	return r.Reason, true
}

// Check returns the certificate in raw if it is that of the node and admits it now.
func (a *Authority) Check(raw []byte, node Key, now time.Time) (Certificate, error) {
	c, issuer, err := ReadCertificate(raw)
	if err != nil {
		return Certificate{}, err
	}
	if err := a.CheckRead(c, issuer, node, now); err != nil {
		return Certificate{}, err
	}
	return c, nil
}

// CheckRead is Check for a certificate and an issuer that ReadCertificate has returned: it verifies no signature again.
func (a *Authority) CheckRead(c Certificate, issuer, node Key, now time.Time) error {
	if err := a.checkUndated(c, issuer, node); err != nil {
		return err
	}
	return c.Valid(now)
}

// Renewable returns an error unless a certificate admits the node, or would if it were not for the date.
func (a *Authority) Renewable(c Certificate, issuer, node Key, now time.Time) error {
	if now.Add(-RenewAfter).After(c.Expires()) {
		return c.Valid(now)
	}
	return a.checkUndated(c, issuer, node)
}

func (a *Authority) checkUndated(c Certificate, issuer, node Key) error {
	switch {
	case c.Node != node || c.World != a.charter.World:
		return ErrNotOwn
	case !a.charter.Issues(issuer) && !a.issuedBefore(c, issuer):
		return fmt.Errorf("%w: issuer %v, charter %d, and %d is the newest here", ErrNotIssued, issuer, c.Charter, a.charter.Number)
	}
	reason, revoked := a.Excluded(c)
	if !revoked {
		reason, revoked = a.Revoked(NodeSubject(issuer))
	}
	if revoked {
		return fmt.Errorf("%w: %s", ErrRevoked, reason)
	}
	return nil
}

// issuedBefore reports whether the issuer of a certificate was one when it was issued, and has been dismissed since.
// What it had issued until then stays valid: charters have their times as numbers. A charter without issuers ends all
// that was issued before.
func (a *Authority) issuedBefore(c Certificate, issuer Key) bool {
	if issued, _ := a.Issued(c.Charter, issuer); !issued {
		return false
	}
	dismissed := uint64(0)
	for _, later := range a.chain {
		if later.Number <= c.Charter {
			continue
		}
		if len(later.Issuers) == 0 {
			return false
		}
		if dismissed == 0 && !later.Issues(issuer) {
			dismissed = later.Number
		}
	}
	return c.NotBefore < 0 || uint64(c.NotBefore) <= dismissed+uint64(Skew/time.Second)
}

// Excluded reports whether the node of a certificate, its operator or the token that it came with is revoked, and why.
func (a *Authority) Excluded(c Certificate) (reason string, revoked bool) {
	for _, s := range c.subjects() {
		if reason, revoked = a.Revoked(s); revoked {
			return reason, true
		}
	}
	return "", false
}

// Issue signs a certificate for a node, valid from now on. placement is random for a new node.
func (a *Authority) Issue(s Signer, node Key, operator string, placement [16]byte, token TokenID, now time.Time) ([]byte, error) {
	if !a.charter.Issues(s.Key()) {
		return nil, errors.New("this node is no issuer")
	}
	c := Certificate{
		World: a.charter.World, Node: node, Operator: operator, Placement: placement, Token: token,
		NotBefore: now.Unix(), NotAfter: now.Add(Lifetime).Unix(), Charter: a.charter.Number,
	}
	if reason, revoked := a.Excluded(c); revoked {
		return nil, fmt.Errorf("%w: %s", ErrRevoked, reason)
	}
	return c.issue(s)
}
