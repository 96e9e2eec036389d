package trust

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/fxamacker/cbor/v2"
)

// Key is an Ed25519 public key.
type Key [ed25519.PublicKeySize]byte

// String returns the key in hex.
func (k Key) String() string { return hex.EncodeToString(k[:]) }

// Signer signs with the private key of a root or of a node.
type Signer interface {
	Key() Key
	Sign(text []byte) ([]byte, error)
}

// PrivateKey is a Signer whose key is in memory.
type PrivateKey ed25519.PrivateKey

// Key returns the public key.
func (k PrivateKey) Key() Key { return Key(ed25519.PrivateKey(k).Public().(ed25519.PublicKey)) }

// Sign signs the text.
func (k PrivateKey) Sign(text []byte) ([]byte, error) {
	return ed25519.Sign(ed25519.PrivateKey(k), text), nil
}

// MaxDocument is the largest size of a charter, certificate or revocation with its signatures, in bytes.
const MaxDocument = 8 << 10

const (
	maxSignatures = 2 * maxKeys // of the old roots and of the new ones
	maxKeys       = 9
	maxElements   = 256 // of any list
)

// document is a body with its signatures, as it is stored and sent: a CBOR map in core deterministic form (RFC 8949
// §4.2.1). Each signature is Ed25519 over the purpose and the body.
type document struct {
	Body       []byte      `cbor:"1,keyasint"`
	Signatures []signature `cbor:"2,keyasint"`
}

type signature struct {
	Key   Key    `cbor:"1,keyasint"`
	Bytes []byte `cbor:"2,keyasint"`
}

// A purpose is the prefix of what is signed, so that no signature serves another purpose.
type purpose string

const (
	charterPurpose     purpose = "voxeld charter 1\x00"
	certificatePurpose purpose = "voxeld certificate 1\x00"
	revocationPurpose  purpose = "voxeld revocation 1\x00"
)

func (p purpose) signed(body []byte) []byte { return append([]byte(p), body...) }

var (
	encoding = must(cbor.CoreDetEncOptions().EncMode())
	decoding = must(cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
		IndefLength:       cbor.IndefLengthForbidden,
		TagsMd:            cbor.TagsForbidden,
		MaxNestedLevels:   5,
		MaxArrayElements:  maxElements,
		MaxMapPairs:       16,
	}.DecMode())
)

func must[T any](v T, err error) T {
	if err != nil {
		panic("trust: " + err.Error()) // this package fixes both the types and the encoding
	}
	return v
}

// seal encodes and signs a body.
func seal(p purpose, body any, signers ...Signer) ([]byte, error) {
	d := document{Body: must(encoding.Marshal(body))}
	for _, s := range signers {
		b, err := s.Sign(p.signed(d.Body))
		if err != nil {
			return nil, fmt.Errorf("sign: %w", err)
		}
		d.Signatures = append(d.Signatures, signature{Key: s.Key(), Bytes: b})
	}
	raw := must(encoding.Marshal(d))
	if len(raw) > MaxDocument {
		return nil, fmt.Errorf("sign: the document has %d bytes, more than %d", len(raw), MaxDocument)
	}
	return raw, nil
}

// open decodes a document, verifies all its signatures, and returns the keys that signed it, each once.
func open(p purpose, raw []byte, body any) ([]Key, error) {
	var d document
	if err := strictly(raw, &d); err != nil {
		return nil, err
	}
	if len(d.Signatures) == 0 || len(d.Signatures) > maxSignatures {
		return nil, fmt.Errorf("%d signatures, want 1 to %d", len(d.Signatures), maxSignatures)
	}
	text := p.signed(d.Body)
	var keys []Key
	for _, s := range d.Signatures {
		if slices.Contains(keys, s.Key) {
			return nil, errors.New("two signatures of one key")
		}
		if !ed25519.Verify(s.Key[:], text, s.Bytes) {
			return nil, errors.New("wrong signature")
		}
		keys = append(keys, s.Key)
	}
	if err := strictly(d.Body, body); err != nil {
		return nil, err
	}
	return keys, nil
}

// strictly decodes exactly the bytes to which the result is encoded again.
func strictly(raw []byte, into any) error {
	if len(raw) > MaxDocument {
		return fmt.Errorf("%d bytes, more than %d", len(raw), MaxDocument)
	}
	if err := decoding.Unmarshal(raw, into); err != nil {
		return err
	}
	if again, err := encoding.Marshal(into); err != nil || !bytes.Equal(again, raw) {
		return errors.New("not in strict form")
	}
	return nil
}
