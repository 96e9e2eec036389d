package trust

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
)

const (
	// MaxRevocations bounds what an Authority keeps.
	MaxRevocations = 4096
	// MaxRevocation is the largest size of a revocation with its signatures, in bytes.
	MaxRevocation = 640
)

// Kind is what a revocation names.
type Kind uint8

// The kinds of revocations.
const (
	RevokeNode     Kind = 1 // a node's key
	RevokeOperator Kind = 2 // all nodes of an operator
	RevokeToken    Kind = 3 // all nodes admitted with a token, and the token itself
)

// Subject is who is revoked.
type Subject struct {
	Kind Kind
	Name string // bytes of the key or token id, or the operator's name
}

// NodeSubject returns the subject of a revocation of one node.
func NodeSubject(k Key) Subject { return Subject{RevokeNode, string(k[:])} }

// OperatorSubject returns the subject of a revocation of all nodes of an operator.
func OperatorSubject(name string) Subject { return Subject{RevokeOperator, name} }

// TokenSubject returns the subject of a revocation of a token, and of all nodes admitted with it.
func TokenSubject(t TokenID) Subject { return Subject{RevokeToken, string(t[:])} }

// subjects returns whom a revocation may name to end the certificate.
func (c Certificate) subjects() []Subject {
	return []Subject{NodeSubject(c.Node), OperatorSubject(c.Operator), TokenSubject(c.Token)}
}

// Names reports whether a revocation of the subject ends the certificate.
func (c Certificate) Names(s Subject) bool { return slices.Contains(c.subjects(), s) }

// Revocation ends the certificates of a subject, or lifts an earlier revocation. Of two with one subject, the later one
// counts.
type Revocation struct {
	World   World  `cbor:"1,keyasint"`
	Kind    Kind   `cbor:"2,keyasint"`
	Subject []byte `cbor:"3,keyasint"`
	At      int64  `cbor:"4,keyasint"` // Unix milliseconds
	Lifted  bool   `cbor:"5,keyasint"`
	Reason  string `cbor:"6,keyasint"` // for people
}

// Of returns who is revoked.
func (r Revocation) Of() Subject { return Subject{r.Kind, string(r.Subject)} }

// Validate returns an error that names what is wrong with the revocation.
func (r Revocation) Validate() error {
	switch {
	case r.Kind == RevokeNode && len(r.Subject) == len(Key{}), r.Kind == RevokeToken && len(r.Subject) == len(TokenID{}):
	case r.Kind == RevokeOperator:
		if err := checkText(string(r.Subject)); err != nil {
			return fmt.Errorf("revocation: operator: %w", err)
		}
	default:
		return fmt.Errorf("revocation: kind %d with %d bytes", r.Kind, len(r.Subject))
	}
	if err := checkText(r.Reason); err != nil {
		return fmt.Errorf("revocation: reason: %w", err)
	}
	return nil
}

// Seal signs the revocation.
func (r Revocation) Seal(signers ...Signer) ([]byte, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	raw, err := seal(revocationPurpose, r, signers...)
	if err == nil && len(raw) > MaxRevocation {
		return nil, fmt.Errorf("revocation: %d bytes, more than %d: let an issuer sign it", len(raw), MaxRevocation)
	}
	return raw, err
}

func readRevocation(raw []byte) (sealedRevocation, error) {
	if len(raw) > MaxRevocation {
		return sealedRevocation{}, fmt.Errorf("revocation: %d bytes, more than %d", len(raw), MaxRevocation)
	}
	r := sealedRevocation{raw: raw}
	var err error
	if r.signers, err = open(revocationPurpose, raw, &r.Revocation); err != nil {
		return sealedRevocation{}, fmt.Errorf("revocation: %w", err)
	}
	return r, r.Validate()
}

// sealedRevocation is a revocation with its signed form.
type sealedRevocation struct {
	Revocation
	signers []Key
	raw     []byte
}

// Exclusion is a revocation in force.
type Exclusion struct {
	Revocation
	By     Key    // whose key signed it: an issuer's, or a root key
	Sealed []byte // the revocation with its signatures
}

func (r sealedRevocation) exclusion() Exclusion { return Exclusion{r.Revocation, r.signers[0], r.raw} }

// entitles reports whether the signers of a revocation may revoke. An issuer may not lift its own revocation.
func (c Charter) entitles(r sealedRevocation) bool {
	return c.signedBy(r.signers) || slices.ContainsFunc(r.signers, func(k Key) bool {
		return c.Issues(k) && (!r.Lifted || r.Of() != NodeSubject(k))
	})
}

// after reports whether this revocation counts and not the other one.
func (r sealedRevocation) after(other sealedRevocation) bool {
	return cmp.Or(cmp.Compare(r.At, other.At), bytes.Compare(r.raw, other.raw)) > 0
}

var errManyRevocations = fmt.Errorf("there are %d revocations already: wait until some of nodes end, after 14 months; those of operators, tokens and issuers do not", MaxRevocations)
