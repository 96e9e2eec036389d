package admission

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/fxamacker/cbor/v2"

	"github.com/voxelpopuli/voxeld/trust"
)

// Protocol is the protocol in which nodes show each other their certificates, without a world's prefix: newcomers use
// it, too.
const Protocol = "/voxeld/admission/1"

const (
	// maxMessage is the largest size of a message, in bytes.
	maxMessage = 48 << 10
	// maxCharters bounds the size of the charters in a message, and maxPart the number of the revocations, of
	// trust.MaxRevocation bytes each. What remains follows in the next rounds.
	maxCharters = 16 << 10
	maxPart     = 48
	// maxRounds bounds the rounds of an exchange.
	maxRounds = 2 + trust.MaxRevocations/maxPart + trust.MaxCharters
)

// message is a question or an answer of Protocol.
type message struct {
	World       trust.World   `cbor:"1,keyasint"`
	Charter     uint64        `cbor:"2,keyasint"`            // number of the newest charter known
	Digest      [32]byte      `cbor:"3,keyasint"`            // of charters and revocations
	Certificate []byte        `cbor:"4,keyasint,omitempty"`  // of the sender; none yet if it is a newcomer
	Charters    [][]byte      `cbor:"5,keyasint,omitempty"`  // that the receiver lacks, in order
	Revocations [][]byte      `cbor:"6,keyasint,omitempty"`  // some of the sender's, in the order of their bytes
	After       []byte        `cbor:"12,keyasint,omitempty"` // question: the last one that the asker has got
	Secret      *trust.Secret `cbor:"7,keyasint,omitempty"`  // question: of the token with which a newcomer asks for a certificate
	Renew       bool          `cbor:"8,keyasint,omitempty"`  // question: asks for a newer certificate
	Issued      []byte        `cbor:"9,keyasint,omitempty"`  // answer: the certificate asked for
	Genesis     []byte        `cbor:"10,keyasint,omitempty"`
	Refused     string        `cbor:"11,keyasint,omitempty"` // answer: why the certificate does not admit the asker
	Roots       []trust.Key   `cbor:"13,keyasint,omitempty"` // answer to a newcomer: the world's first root keys

	admitted bool // not sent: the receiver is admitted here
}

var (
	encoding = must(cbor.CoreDetEncOptions().EncMode())
	decoding = must(cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
		IndefLength:       cbor.IndefLengthForbidden,
		TagsMd:            cbor.TagsForbidden,
		MaxNestedLevels:   4,
		MaxArrayElements:  512,
		MaxMapPairs:       16,
	}.DecMode())
)

func must[T any](v T, err error) T {
	if err != nil {
		panic("admission: " + err.Error()) // this package fixes both the types and the encoding
	}
	return v
}

func encode(m message) []byte { return must(encoding.Marshal(m)) }

func decode(raw []byte) (message, error) {
	if len(raw) > maxMessage {
		return message{}, fmt.Errorf("decode admission message: %d bytes, more than %d", len(raw), maxMessage)
	}
	var m message
	if err := decoding.Unmarshal(raw, &m); err != nil {
		return message{}, fmt.Errorf("decode admission message: %w", err)
	}
	return m, nil
}

// fitting returns the first charters that fit into a message, at least one.
func fitting(charters [][]byte) [][]byte {
	size := 0
	for i, c := range charters {
		if size += len(c); size > maxCharters && i > 0 {
			return charters[:i]
		}
	}
	return charters
}

// following returns the next revocations after a given one. They are in the order of their bytes.
func following(revocations [][]byte, after []byte) [][]byte {
	i, there := slices.BinarySearchFunc(revocations, after, bytes.Compare)
	if there {
		i++
	}
	return revocations[i:min(i+maxPart, len(revocations))]
}
