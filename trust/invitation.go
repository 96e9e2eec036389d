package trust

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Secret is what a join token holds.
type Secret [16]byte

// TokenID is the hash of a token's secret, by which issuers know and revoke the token.
type TokenID [16]byte

// ID returns the token's id.
func (s Secret) ID() TokenID {
	sum := sha256.Sum256(append([]byte("voxeld token 1\x00"), s[:]...))
	return TokenID(sum[:16])
}

// String returns the id in hex.
func (t TokenID) String() string { return hex.EncodeToString(t[:]) }

// MaxUses bounds the uses of an invitation that counts them.
const MaxUses = maxElements

// Invitation is what an issuer keeps of a token that it gave out.
type Invitation struct {
	Token    TokenID `cbor:"1,keyasint"`
	Operator string  `cbor:"2,keyasint"` // who runs the nodes that it admits
	NotAfter int64   `cbor:"3,keyasint"` // Unix seconds
	Uses     int     `cbor:"4,keyasint"` // nodes that it admits; 0: any number
	Nodes    []Key   `cbor:"5,keyasint"` // admitted so far, if uses are counted
	Issuer   bool    `cbor:"6,keyasint"` // they become issuers
}

// Validate returns an error that names what is wrong with the invitation.
func (i Invitation) Validate() error {
	if err := checkText(i.Operator); err != nil {
		return fmt.Errorf("invitation: operator: %w", err)
	}
	if i.Uses < 0 || i.Uses > MaxUses {
		return fmt.Errorf("invitation: %d uses, want 0 (any number) to %d", i.Uses, MaxUses)
	}
	if i.Uses == 0 && len(i.Nodes) > 0 || len(i.Nodes) > MaxUses {
		return errors.New("invitation: it lists too many nodes")
	}
	return nil
}

// Encode returns the stored form.
func (i Invitation) Encode() []byte { return must(encoding.Marshal(i)) }

// DecodeInvitation decodes the output of Encode.
func DecodeInvitation(raw []byte) (Invitation, error) {
	var i Invitation
	if err := decoding.Unmarshal(raw, &i); err != nil {
		return Invitation{}, fmt.Errorf("invitation: %w", err)
	}
	return i, i.Validate()
}

// Reasons for which an invitation admits no node.
var (
	ErrNoInvitation = errors.New("this node has given out no such token: copy the whole token, or get a new one with voxeld invite")
	ErrUsed         = errors.New("the token was used as often as it may be: get a new one with voxeld invite")
	ErrTooLate      = errors.New("the token has expired: get a new one with voxeld invite")
)

// Redeem returns the invitation after it has admitted a node. A node that asks again, because it did not get the
// answer, is admitted again without a use.
func (i Invitation) Redeem(node Key, now time.Time) (Invitation, error) {
	if now.Unix() > i.NotAfter {
		return i, ErrTooLate
	}
	if i.Uses == 0 || slices.Contains(i.Nodes, node) {
		return i, nil
	}
	if len(i.Nodes) >= i.Uses {
		return i, ErrUsed
	}
	i.Nodes = append(slices.Clone(i.Nodes), node)
	return i, nil
}
