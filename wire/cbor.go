package wire

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/fxamacker/cbor/v2"
)

// CBOREncoding is canonical CBOR (RFC 8949 §4.2.1): each value has exactly one encoding, as signatures require.
var CBOREncoding = must(cbor.CoreDetEncOptions().UserBufferEncMode())

// CBORDecoding bounds messages between nodes before anything is allocated. It ignores unknown fields, so that nodes of
// two versions can work together during an upgrade. Signed records refuse unknown fields (see DecodeRegion).
var CBORDecoding = must(cbor.DecOptions{
	DupMapKey:        cbor.DupMapKeyEnforcedAPF,
	MaxNestedLevels:  12, // the deepest message, FromRegion, has 8
	MaxArrayElements: MaxBlocks,
	MaxMapPairs:      32, // maps are structs
	IndefLength:      cbor.IndefLengthForbidden,
	TagsMd:           cbor.TagsForbidden,
	UTF8:             cbor.UTF8RejectInvalid,
	NaN:              cbor.NaNDecodeForbidden,
	Inf:              cbor.InfDecodeForbidden,
	BignumTag:        cbor.BignumTagForbidden,
}.DecMode())

// must returns the mode. It panics if the options of the mode are invalid.
func must[M any](mode M, err error) M {
	if err != nil {
		panic(err)
	}
	return mode
}

// validator is a message that checks its own lists, names and numbers.
type validator interface{ Valid() error }

// EncodeCBOR encodes a valid value in at most most bytes.
func EncodeCBOR(v validator, most int) ([]byte, error) {
	var b bytes.Buffer
	if err := encodeInto(&b, v, most); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// encodeInto appends the encoding of a valid value to the buffer.
func encodeInto(b *bytes.Buffer, v validator, most int) error {
	before := b.Len()
	if err := v.Valid(); err != nil {
		return fmt.Errorf("encode %T: %w", v, err)
	}
	if err := CBOREncoding.MarshalToBuffer(v, b); err != nil {
		return fmt.Errorf("encode %T: %w", v, err)
	}
	if n := b.Len() - before; n > most {
		return fmt.Errorf("encode %T: %w", v, Refuse(FailTooLong, "%d bytes; at most %d are allowed", n, most))
	}
	return nil
}

// DecodeCBOR decodes one value, which must take up all of b, and validates it. A refusal wraps an *Error.
func DecodeCBOR[T validator](b []byte, most int) (T, error) {
	var v, none T
	if len(b) > most {
		return none, fmt.Errorf("decode %T: %w", v, Refuse(FailTooLong, "%d bytes; at most %d are allowed", len(b), most))
	}
	if err := CBORDecoding.Unmarshal(b, &v); err != nil {
		return none, fmt.Errorf("decode %T: %w", v, Refuse(FailBadValue, "%v", err))
	}
	if err := v.Valid(); err != nil {
		return none, fmt.Errorf("decode %T: %w", v, err)
	}
	return v, nil
}

// DecodeCanonicalCBOR is DecodeCBOR for signed values: b must be the canonical encoding, so it has no unknown field.
func DecodeCanonicalCBOR[T validator](b []byte) (T, error) {
	v, err := DecodeCBOR[T](b, MaxQuestion)
	if err != nil {
		return v, err
	}
	again, err := CBOREncoding.Marshal(v)
	if err != nil {
		return v, fmt.Errorf("decode %T: %w", v, err)
	}
	if !bytes.Equal(again, b) {
		var none T
		return none, fmt.Errorf("decode %T: %w", v, Refuse(FailBadValue, "not the canonical encoding"))
	}
	return v, nil
}

// WriteFrame writes a 4-byte big-endian length and the value in CBOR, in one Write. If the value is invalid or longer
// than MaxFrame, it returns an error and writes nothing.
func WriteFrame(w io.Writer, v validator) error {
	var frame bytes.Buffer
	frame.Write(make([]byte, 4))
	if err := encodeInto(&frame, v, MaxFrame); err != nil {
		return err
	}
	binary.BigEndian.PutUint32(frame.Bytes(), uint32(frame.Len()-4))
	if _, err := w.Write(frame.Bytes()); err != nil {
		return fmt.Errorf("write frame: %w", err)
	}
	return nil
}

// trustedBytes is the most memory, in bytes, that a frame's length prefix can reserve before its bytes have arrived.
const trustedBytes = 64 << 10

// ReadFrame reads one value that WriteFrame wrote, of at most most bytes, and validates it. Memory grows as bytes
// arrive: the length prefix reserves only a small buffer. A refused value is a wrapped *Error, and the stream cannot be
// used any more. Between frames the end of the stream is a bare io.EOF; within one it is a wrapped io.ErrUnexpectedEOF.
func ReadFrame[T validator](r *bufio.Reader, most int) (T, error) {
	return ReadGuardedFrame[T](r, most, nil)
}

// ReadGuardedFrame is ReadFrame with a guard.
func ReadGuardedFrame[T validator](r *bufio.Reader, most int, guard Guard) (T, error) {
	var none T
	size, err := ReadFrameSize(r, most)
	if err != nil {
		return none, err
	}
	body, err := guard.ReadBody(r, make([]byte, 0, min(size, trustedBytes)), size)
	if err != nil {
		return none, fmt.Errorf("read frame: %w", err)
	}
	return DecodeCBOR[T](body, most)
}

// ReadFrameSize reads the length prefix of a frame.
func ReadFrameSize(r *bufio.Reader, most int) (int, error) {
	var prefix [4]byte
	if _, err := io.ReadFull(r, prefix[:]); err != nil {
		if err == io.EOF {
			return 0, io.EOF
		}
		return 0, fmt.Errorf("read frame: %w", err)
	}
	size := binary.BigEndian.Uint32(prefix[:])
	if size == 0 || uint64(size) > uint64(most) {
		return 0, fmt.Errorf("read frame: %w", Refuse(FailTooLong, "a frame of %d bytes; want 1 to %d", size, most))
	}
	return int(size), nil
}
