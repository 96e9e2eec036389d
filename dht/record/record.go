package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/fxamacker/cbor/v2"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
)

// maxRecord is the largest size of a signed record, in bytes. libp2p would store up to 4 MiB for any peer.
const maxRecord = 4 << 10

// signatureDomain is the prefix of everything signed here, so that no signature serves another purpose.
const signatureDomain = "voxeld record 1\x00"

// envelope is the value stored in the DHT under a key: a payload with its signature.
//
// On the wire it is a CBOR map in core deterministic form (RFC 8949 §4.2.1). Signature is Ed25519 over
//
//	"voxeld record 1\x00" · u32 length of world id · world id · u32 length of key · key · payload
//
// with lengths in bytes, big-endian. It covers the world and the key, so that a record cannot be moved to another world
// or key.
type envelope struct {
	Payload   []byte `cbor:"1,keyasint"` // a region or player record as package wire encodes it
	PublicKey []byte `cbor:"2,keyasint"` // Ed25519, in libp2p's protobuf
	Signature []byte `cbor:"3,keyasint"` // 64 bytes
}

var (
	envelopeEnc = must(cbor.CoreDetEncOptions().EncMode())
	envelopeDec = must(cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
		IndefLength:       cbor.IndefLengthForbidden,
		TagsMd:            cbor.TagsForbidden,
		MaxNestedLevels:   4,
		MaxArrayElements:  16,
		MaxMapPairs:       16,
	}.DecMode())
)

func must[T any](v T, err error) T {
	if err != nil {
		panic("record: " + err.Error()) // this package fixes both the types and the encoding
	}
	return v
}

// signed is an envelope whose signature was verified.
type signed struct {
	payload []byte
	signer  peer.ID
}

// Seal signs a payload for a key of a world.
func Seal(key crypto.PrivKey, world, recordKey string, payload []byte) ([]byte, error) {
	public, err := crypto.MarshalPublicKey(key.GetPublic())
	if err != nil {
		return nil, fmt.Errorf("sign record: %w", err)
	}
	signature, err := key.Sign(signedBytes(world, recordKey, payload))
	if err != nil {
		return nil, fmt.Errorf("sign record: %w", err)
	}
	raw, err := envelopeEnc.Marshal(envelope{Payload: payload, PublicKey: public, Signature: signature})
	if err != nil {
		return nil, fmt.Errorf("encode record: %w", err)
	}
	if len(raw) > maxRecord {
		return nil, fmt.Errorf("encode record: %d bytes, more than %d", len(raw), maxRecord)
	}
	return raw, nil
}

// open decodes an envelope and verifies its signature for a key of a world.
func open(world, recordKey string, raw []byte) (signed, error) {
	e, err := decodeEnvelope(raw)
	if err != nil {
		return signed{}, err
	}
	public, err := crypto.UnmarshalPublicKey(e.PublicKey)
	if err != nil {
		return signed{}, fmt.Errorf("decode record: public key: %w", err)
	}
	if public.Type() != crypto.Ed25519 {
		return signed{}, fmt.Errorf("decode record: public key of type %s, want Ed25519", public.Type())
	}
	if strict, err := crypto.MarshalPublicKey(public); err != nil || !bytes.Equal(strict, e.PublicKey) {
		return signed{}, errors.New("decode record: public key is not in strict form")
	}
	good, err := public.Verify(signedBytes(world, recordKey, e.Payload), e.Signature)
	if err != nil {
		return signed{}, fmt.Errorf("verify record: %w", err)
	}
	if !good {
		return signed{}, errors.New("verify record: wrong signature")
	}
	signer, err := peer.IDFromPublicKey(public)
	if err != nil {
		return signed{}, fmt.Errorf("verify record: %w", err)
	}
	return signed{payload: e.Payload, signer: signer}, nil
}

// Signer returns the public key that is in a record, which was verified before; "" if it is no record.
func Signer(raw []byte) string {
	e, err := decodeEnvelope(raw)
	if err != nil {
		return ""
	}
	return string(e.PublicKey)
}

// decodeEnvelope accepts exactly the bytes to which the result is encoded again.
func decodeEnvelope(raw []byte) (envelope, error) {
	if len(raw) > maxRecord {
		return envelope{}, fmt.Errorf("decode record: %d bytes, more than %d", len(raw), maxRecord)
	}
	var e envelope
	if err := envelopeDec.Unmarshal(raw, &e); err != nil {
		return envelope{}, fmt.Errorf("decode record: %w", err)
	}
	strict, err := envelopeEnc.Marshal(e)
	if err != nil {
		return envelope{}, fmt.Errorf("decode record: %w", err)
	}
	if !bytes.Equal(strict, raw) {
		return envelope{}, errors.New("decode record: not in strict form")
	}
	return e, nil
}

func signedBytes(world, recordKey string, payload []byte) []byte {
	b := make([]byte, 0, len(signatureDomain)+8+len(world)+len(recordKey)+len(payload))
	b = append(b, signatureDomain...)
	b = append(binary.BigEndian.AppendUint32(b, uint32(len(world))), world...)
	b = append(binary.BigEndian.AppendUint32(b, uint32(len(recordKey))), recordKey...)
	return append(b, payload...)
}
