package nodemsg

import "github.com/voxelpopuli/voxeld/wire"

// EncodeQuestion encodes a valid Question in CBOR.
func EncodeQuestion(q Question) ([]byte, error) { return wire.EncodeCBOR(q, wire.MaxQuestion) }

// DecodeQuestion decodes and validates what EncodeQuestion wrote.
func DecodeQuestion(b []byte) (Question, error) {
	return wire.DecodeCBOR[Question](b, wire.MaxQuestion)
}

// EncodeAnswer encodes a valid Answer in CBOR.
func EncodeAnswer(a Answer) ([]byte, error) { return wire.EncodeCBOR(a, wire.MaxQuestion) }

// DecodeAnswer decodes and validates what EncodeAnswer wrote.
func DecodeAnswer(b []byte) (Answer, error) {
	return wire.DecodeCBOR[Answer](b, wire.MaxQuestion)
}

// EncodeRegion encodes a valid Region in canonical CBOR, for signing.
func EncodeRegion(r Region) ([]byte, error) { return wire.EncodeCBOR(r, wire.MaxQuestion) }

// DecodeRegion decodes and validates what EncodeRegion wrote. It refuses any other encoding of the same Region.
func DecodeRegion(b []byte) (Region, error) { return wire.DecodeCanonicalCBOR[Region](b) }

// EncodePlayerRecord encodes a valid PlayerRecord in canonical CBOR, for signing.
func EncodePlayerRecord(p PlayerRecord) ([]byte, error) { return wire.EncodeCBOR(p, wire.MaxQuestion) }

// DecodePlayerRecord decodes and validates what EncodePlayerRecord wrote. It refuses any other encoding of the same
// record.
func DecodePlayerRecord(b []byte) (PlayerRecord, error) {
	return wire.DecodeCanonicalCBOR[PlayerRecord](b)
}
