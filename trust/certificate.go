package trust

import (
	"errors"
	"fmt"
	"time"
)

const (
	// Lifetime is how long a certificate is valid.
	Lifetime = 30 * 24 * time.Hour
	// RenewBefore is what is left of it when it is renewed.
	RenewBefore = 20 * 24 * time.Hour
	// RenewAfter is how long after its end it can still be renewed, by itself: the node was off, or clocks were wrong.
	// Revocations are kept for longer.
	RenewAfter = 400 * 24 * time.Hour

	// Skew is the difference between the clocks of an issuer and of another node that does no harm.
	Skew = 26 * time.Hour
)

// Certificate admits a node to a world. It is shown on every connection.
type Certificate struct {
	World     World    `cbor:"1,keyasint"`
	Node      Key      `cbor:"2,keyasint"`
	Operator  string   `cbor:"3,keyasint"` // who runs the node, as the invitation says
	Placement [16]byte `cbor:"4,keyasint"` // drawn by the issuer; a renewal keeps it
	Token     TokenID  `cbor:"5,keyasint"` // of the invitation with which the node was admitted
	NotBefore int64    `cbor:"6,keyasint"` // Unix seconds
	NotAfter  int64    `cbor:"7,keyasint"` // Unix seconds
	Charter   uint64   `cbor:"8,keyasint"` // the charter that names the issuer
}

// Validate returns an error that names what is wrong with the certificate.
func (c Certificate) Validate() error {
	if err := checkText(c.Operator); err != nil {
		return fmt.Errorf("certificate: operator: %w", err)
	}
	if life := c.NotAfter - c.NotBefore; life <= 0 || life > int64((Lifetime+Skew)/time.Second) {
		return fmt.Errorf("certificate: valid for %d s, want at most %v", life, Lifetime)
	}
	return nil
}

// Expires returns when the certificate ends.
func (c Certificate) Expires() time.Time { return time.Unix(c.NotAfter, 0) }

// NewerThan reports whether the certificate was issued after another one of the node: of two that end in the same second,
// the one of the later charter was.
func (c Certificate) NewerThan(other Certificate) bool {
	return c.NotAfter > other.NotAfter || c.NotAfter == other.NotAfter && c.Charter > other.Charter
}

// RenewAt returns when to renew the certificate.
func (c Certificate) RenewAt() time.Time { return c.Expires().Add(-RenewBefore) }

// Valid returns an error if the certificate is not valid at a time. The error tells the operator about the clock,
// because a wrong one is the usual reason.
func (c Certificate) Valid(now time.Time) error {
	switch {
	case now.Add(Skew).Before(time.Unix(c.NotBefore, 0)):
		return fmt.Errorf("%w: it is valid from %s on, and here it is %s: set this machine's clock",
			ErrExpired, stamp(time.Unix(c.NotBefore, 0)), stamp(now))
	case now.Add(-Skew).After(c.Expires()):
		return fmt.Errorf("%w: it ended at %s, and here it is %s: if the clock is right, an issuer renews it within %d days, afterwards the node needs a new token of voxeld invite",
			ErrExpired, stamp(c.Expires()), stamp(now), RenewAfter/(24*time.Hour))
	}
	return nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// issue signs the certificate as an issuer.
func (c Certificate) issue(s Signer) ([]byte, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return seal(certificatePurpose, c, s)
}

// ReadCertificate returns the certificate in raw, and the key of whoever signed it. Authority.Check decides whether
// that is an issuer.
func ReadCertificate(raw []byte) (Certificate, Key, error) {
	var c Certificate
	keys, err := open(certificatePurpose, raw, &c)
	switch {
	case err != nil:
		return Certificate{}, Key{}, fmt.Errorf("certificate: %w", err)
	case len(keys) != 1:
		return Certificate{}, Key{}, errors.New("certificate: more than one signature")
	}
	return c, keys[0], c.Validate()
}

// Reasons for which a certificate is refused.
var (
	ErrExpired   = errors.New("the certificate is not valid at this time")
	ErrRevoked   = errors.New("the certificate is revoked")
	ErrNotIssued = errors.New("the certificate is not signed by an issuer of this world")
	ErrNotOwn    = errors.New("the certificate is of another node or world")
)
