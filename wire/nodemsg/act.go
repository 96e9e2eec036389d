package nodemsg

import (
	"crypto/ed25519"
	"crypto/sha256"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
)

// Messages that change the world's policy, and those that distribute it (package policy).

// Act is a command as the catalog's log has it: of a player, or of the operator of a node.
type Act struct {
	At  int64  `cbor:"1,keyasint"` // Unix milliseconds, by the clock of the catalog's leader
	Key []byte `cbor:"2,keyasint"` // the Ed25519 public key that signs: a player's or a node's
	// Seq grows with each command that the key signs: microseconds since 1970.
	Seq  uint64 `cbor:"3,keyasint"`
	Name string `cbor:"4,keyasint,omitempty"` // the player's name; empty for an operator
	// Operator means that the key is a node's. Charter is then the number of the charter by which the node is an
	// issuer; 0 in an open world.
	Operator  bool   `cbor:"5,keyasint,omitempty"`
	Charter   uint64 `cbor:"6,keyasint,omitempty"`
	Text      string `cbor:"7,keyasint"`
	Signature []byte `cbor:"8,keyasint"`
}

const (
	// ActsPage is the most acts that answer one ActsRequest.
	ActsPage = 64
	// MaxAct is the longest encoded Act, in bytes.
	MaxAct = 1 << 10
)

// ActsRequest requests the acts after the first After ones, which have this digest on the asker.
type ActsRequest struct {
	After  uint64     `cbor:"1,keyasint"`
	Digest ActsDigest `cbor:"2,keyasint"`
}

// ActsDigest is equal on two nodes that have the same acts. It is zero if there are none; each further act is hashed
// with the digest before it.
type ActsDigest [16]byte

// Next returns the digest with one more act.
func (d ActsDigest) Next(act Act) (ActsDigest, error) {
	encoded, err := EncodeAct(act)
	if err != nil {
		return d, err
	}
	sum := sha256.Sum256(append(d[:], encoded...))
	return ActsDigest(sum[:len(d)]), nil
}

// Valid returns an error if the act is malformed. It does not verify the signature.
func (a Act) Valid() error {
	if len(a.Key) != ed25519.PublicKeySize || len(a.Signature) != ed25519.SignatureSize {
		return wire.Refuse(wire.FailBadValue, "an act with a key of %d bytes and a signature of %d", len(a.Key), len(a.Signature))
	}
	if a.At < 0 {
		return wire.Refuse(wire.FailBadValue, "the time of an act is before 1970")
	}
	if a.Operator != (a.Name == "") || !a.Operator && a.Charter != 0 {
		return wire.Refuse(wire.FailBadValue, "an act is either a player's, with a name, or an operator's")
	}
	if !a.Operator {
		if err := player.CheckName(a.Name); err != nil {
			return wire.Refuse(wire.FailBadName, "%v", err)
		}
	}
	return wire.CheckChat(a.Text)
}

// Valid always returns nil.
func (ActsRequest) Valid() error { return nil }

// EncodeAct encodes a valid Act in canonical CBOR.
func EncodeAct(a Act) ([]byte, error) { return wire.EncodeCBOR(a, MaxAct) }

// DecodeAct decodes and validates what EncodeAct wrote.
func DecodeAct(b []byte) (Act, error) { return wire.DecodeCBOR[Act](b, MaxAct) }
