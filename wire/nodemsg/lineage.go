package nodemsg

import "github.com/voxelpopuli/voxeld/wire"

// Messages with which two nodes show each other that their storage is not older than what they have promised
// (docs/adr/0024). Question and answer are a Lineage each.

// Incarnation is one start of a node.
type Incarnation struct {
	ID [16]byte `cbor:"1,keyasint"` // random
	// Count is raised while the node runs, after it has promised something to others.
	Count uint64 `cbor:"2,keyasint,omitempty"`
	// RolledBack is how often the node had noticed that its storage was put back. What it stored before the last time
	// is not used.
	RolledBack uint64 `cbor:"4,keyasint,omitempty"`
}

// SignedIncarnation is an incarnation that a node has announced.
type SignedIncarnation struct {
	Incarnation
	// Signature is by the key of the node itself: only its own signature makes a node believe that its storage is too
	// old.
	Signature []byte `cbor:"3,keyasint"`
}

// Lineage shows the incarnations of the sender that are in its storage.
type Lineage struct {
	// Incarnations are in the order of their starts; the last one runs now, and Signature is for it.
	Incarnations []Incarnation `cbor:"1,keyasint"`
	Signature    []byte        `cbor:"2,keyasint"`
	// Remembered is what the sender remembers of the receiver, if the receiver's incarnations do not continue it: the
	// receiver's storage was put back to an earlier state. The sender takes no raft message of the receiver meanwhile.
	Remembered *SignedIncarnation `cbor:"3,keyasint,omitempty"`
}

// Limits of a Lineage.
const (
	// MaxIncarnations is the most incarnations that are shown: about 1,000 restarts.
	MaxIncarnations = 1024
	// MaxSignature is the longest signature, in bytes.
	MaxSignature = 128
)

// Running returns the incarnation that runs now.
func (l Lineage) Running() SignedIncarnation {
	return SignedIncarnation{Incarnation: l.Incarnations[len(l.Incarnations)-1], Signature: l.Signature}
}

// Valid always returns nil.
func (Incarnation) Valid() error { return nil }

// Valid returns an error if the signature is too long.
func (s SignedIncarnation) Valid() error { return checkSignature(s.Signature) }

// Valid returns an error if there are no incarnations or too many, or if a signature is too long.
func (l Lineage) Valid() error {
	if n := len(l.Incarnations); n == 0 || n > MaxIncarnations {
		return wire.Refuse(wire.FailBadValue, "a lineage has 1 to %d incarnations, not %d", MaxIncarnations, n)
	}
	if l.Remembered != nil {
		if err := l.Remembered.Valid(); err != nil {
			return err
		}
	}
	return checkSignature(l.Signature)
}

func checkSignature(s []byte) error {
	if len(s) > MaxSignature {
		return wire.Refuse(wire.FailTooLong, "a signature of %d bytes; at most %d are allowed", len(s), MaxSignature)
	}
	return nil
}

// EncodeLineage encodes a valid Lineage in CBOR.
func EncodeLineage(l Lineage) ([]byte, error) { return wire.EncodeCBOR(l, wire.MaxQuestion) }

// DecodeLineage decodes and validates what EncodeLineage wrote.
func DecodeLineage(b []byte) (Lineage, error) { return wire.DecodeCBOR[Lineage](b, wire.MaxQuestion) }

// EncodeIncarnation encodes a valid SignedIncarnation in CBOR.
func EncodeIncarnation(s SignedIncarnation) ([]byte, error) {
	return wire.EncodeCBOR(s, wire.MaxQuestion)
}

// DecodeIncarnation decodes and validates what EncodeIncarnation wrote.
func DecodeIncarnation(b []byte) (SignedIncarnation, error) {
	return wire.DecodeCBOR[SignedIncarnation](b, wire.MaxQuestion)
}
